"""Whether a widget can still be updated. A widget that is being removed loses its children one by one; an event
that arrives just then, from its own queue or from another thread, would not find them.
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
    """Whether its screen is on the app's stack: a screen leaves the stack before its widgets are removed."""
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
    """A message handler that does nothing once its widget is being removed."""

    @functools.wraps(handler)
    def handled(self: W, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if is_ready(self):
            handler(self, *args, **kwargs)

    guarded: Callable[Concatenate[W, P], None] = handled
    return guarded
