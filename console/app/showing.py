"""Whether a screen can still be told something."""

from __future__ import annotations

from typing import Any

from textual.screen import Screen
from textual.types import NoActiveAppError


def is_up(screen: Screen[Any]) -> bool:
    """Mounted, and not closed: one that is off the stack counts as mounted while its widgets go one by one, and
    what the backend's thread tells just then would look for them in vain.
    """
    if not screen.is_mounted:
        return False
    try:
        return screen in screen.app.screen_stack
    except NoActiveAppError:  # it has no parent any more
        return False
