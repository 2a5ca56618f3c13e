"""Dialogs that can be dismissed only once."""

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
    """A screen that dismisses itself and nothing else. Textual's ``dismiss`` pops whatever screen is on top, so a
    second key that came before the first was handled would pop the screen below. Must be the first base class.
    """

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """As Textual's; nothing where this screen is not on top, or is gone already."""
        return super().dismiss(result) if self.is_active else AwaitComplete()
