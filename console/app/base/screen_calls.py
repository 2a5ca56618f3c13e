"""The functions of the app and of the main screen that the parts of the main screen get instead of these."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from textual.screen import Screen

from console.program import Program
from widgets.text import Tone


class Owner(Protocol):
    """``take_warnings`` returns the warnings from opening the cluster, once."""

    program: Program

    def take_warnings(self) -> list[str]: ...

    def is_leaving(self) -> bool: ...

    def report(self, error: BaseException) -> str: ...

    def pick(self) -> None: ...

    def leave(self, status: int = 0) -> None: ...


T = TypeVar("T")


class Say(Protocol):
    """Shows one message at the bottom."""

    def __call__(self, text: str, tone: Tone = Tone.PLAIN) -> None: ...


class Ask(Protocol):
    """Opens a dialog and returns its answer, None if there is none. Only for a task, because it waits."""

    async def __call__(self, dialog: Screen[T], /) -> T | None: ...


Begin = Callable[[str, Coroutine[Any, Any, None]], None]
"""Starts a task under a name ("comparing"), unless one is running (:class:`RunningTask`)."""

OpenScreen = Callable[[Screen[Any]], Awaitable[object]]
"""Opens a screen on top; it is shown when the call returns."""

Handlers = dict[str, Callable[[], object]]
"""The functions of the actions, by the action's name in the registry."""
