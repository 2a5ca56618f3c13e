"""Dialogs that end once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import Screen

T = TypeVar("T")

if TYPE_CHECKING:
    _Screen = Screen
else:

    class _Screen(Generic[T]):
        """No screen of its own: Textual takes styles from the first base that is one."""


class DismissOnce(_Screen[T]):
    """A screen that takes itself away, and nothing else: Textual's ``dismiss`` takes whatever is on top, so that a
    second key that had come before the first was done with would take the screen below. Stands before the screen
    among the bases.
    """

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """As Textual's; nothing where this screen is not on top, or is gone already."""
        return super().dismiss(result) if self.is_active else AwaitComplete()
