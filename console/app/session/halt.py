"""Signals while the console is open: what is in flight is finished or undone first, as on the command line."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from console.signals import StopRequest, Supervisor

T = TypeVar("T")


class Halt(StopRequest):
    """True after the person stopped this operation or leaves the console, or after a signal."""

    def __init__(self, whole: StopRequest, leaving: Callable[[], bool]) -> None:
        super().__init__()
        self._whole = whole
        self._leaving = leaving
        self.asked = False
        self._task: asyncio.Task[Any] | None = None

    def __bool__(self) -> bool:
        return self.asked or self._leaving() or bool(self._whole)

    def begun(self) -> None:
        """The work has started as the current task of the sending thread."""
        self._task = asyncio.current_task()

    def now(self) -> None:
        """Stops: what is in flight ends by itself, and nothing else starts. Must run in the sending thread,
        because only there nothing can be sent meanwhile.
        """
        self.asked = True
        if not self.flights and self._task is not None:
            self._task.cancel()

    @contextlib.contextmanager
    def in_flight(self) -> Iterator[None]:
        """Also counted for the whole process: a signal waits for it."""
        with super().in_flight(), self._whole.in_flight():
            yield


class ConsoleSupervisor(Supervisor):
    """A supervisor that asks the console to end, where the usual one cancels the work.

    ``asked`` is called in the event loop by the first signal. A second signal, or the end of the time limit,
    calls ``last_words`` and leaves at once.
    """

    def __init__(self, last_words: Callable[[int], str], limit: float | None = None) -> None:
        super().__init__(last_words, limit)
        self.asked: Callable[[], None] | None = None

    def run(self, work: Callable[[StopRequest], Coroutine[Any, Any, T]]) -> T:
        """The work's result; a signal that came before the console was open ends it as soon as it is open."""
        return super().run(work)

    def _begin_stop(self) -> None:
        if self.asked is not None:
            self.asked()
        else:
            super()._begin_stop()

    def _announce(self) -> None:
        """The screen shows it: a line on stderr would be written over the screen."""
