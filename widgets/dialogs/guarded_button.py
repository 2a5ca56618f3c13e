"""Buttons that report the key that pressed them."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Button


class GuardedButton(Button):
    """A button that reports the key. The second click of a double click presses nothing: it may have been meant for
    what was on the screen before.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "press_by('enter')", "Press", show=False),
    ]

    class PressedBy(Message):
        """Pressed by that key, or by the mouse ("")."""

        def __init__(self, button: GuardedButton, key: str) -> None:
            super().__init__()
            self.button = button
            self.key = key

    def action_press_by(self, key: str) -> None:
        if not self.disabled:
            self.post_message(self.PressedBy(self, key))

    async def _on_click(self, event: events.Click) -> None:
        event.stop()
        if event.chain == 1 and not self.disabled:
            self.post_message(self.PressedBy(self, ""))
