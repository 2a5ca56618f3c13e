"""Whether a widget can still be told something: one that is being taken away loses its parts one by one, and what
comes just then, from its own queue or from another thread, would look for them in vain.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from textual.dom import NoScreen
from textual.types import NoActiveAppError
from textual.widget import Widget

W = TypeVar("W", bound=Widget)
P = ParamSpec("P")


def screen_is_open(widget: Widget) -> bool:
    """Its screen is among those of the app: a screen leaves these before its widgets go."""
    try:
        screen = widget.screen
        stack = screen.app.screen_stack
    except (NoScreen, NoActiveAppError):  # it has no parent any more
        return False
    return screen in stack


def is_ready(widget: Widget) -> bool:
    """Mounted, and not closed."""
    return widget.is_mounted and screen_is_open(widget)


def when_ready(handler: Callable[Concatenate[W, P], None]) -> Callable[Concatenate[W, P], None]:
    """A handler of messages that does nothing once its widget is being taken away."""

    @functools.wraps(handler)
    def handled(self: W, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if is_ready(self):
            handler(self, *args, **kwargs)

    told: Callable[Concatenate[W, P], None] = handled
    return told
