"""Keys that come faster than the screen: each waits until the one before has acted, and the field that it opens is
there. A key reaches the app, then the widget in focus, and comes back to the app, which acts: without this, the
letters after ``f`` would be keys of the table before the finder is open.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from textual import events
from textual.command import CommandPalette
from textual.message import Message
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Input

from console.change.registry import KEYS
from widgets.dialogs.partition_finder import PartitionFinder
from widgets.lifecycle import screen_is_open

if TYPE_CHECKING:
    from console.app.main_screen.main_screen import MainScreen

Typed = events.Key | events.Paste

LEAVES = ("escape", "ctrl+c")
"""Keys that stop a task or leave a question, or say how: they act also before a question has opened."""

_FIELDS = (PartitionFinder, CommandPalette)
_ENDS = ("enter", "escape")
_COMMANDS = frozenset(action.key for action in KEYS)


class KeyHasActed(Message):
    """Goes the way of a key right behind it: where it reaches the app, the key has acted. It goes a second time,
    behind what the key made its widget say, such as the end of a filter: then that was heard too.
    """

    def __init__(self, rounds: int = 2) -> None:
        super().__init__()
        self.rounds = rounds


class TypedAhead:
    """What was typed and is not yet handed on, oldest first, with the screen that it was typed at."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Typed, Screen[object]]] = deque()
        self._acting: Widget | None = None
        self._had_field: Screen[object] | None = None

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, event: Typed, screen: Screen[object]) -> None:
        """Keeps it until those before it have acted."""
        self._waiting.append((event, screen))

    def take(self, screen: Screen[object]) -> Typed | None:
        """The oldest one; None where it would answer a question that nobody had seen: only a name to find and a
        command's name are typed ahead.
        """
        event, typed_at = self._waiting.popleft()
        leaves = isinstance(event, events.Key) and event.key in LEAVES
        expected = screen is typed_at or isinstance(screen, _FIELDS)
        return event if leaves or expected or not isinstance(screen, ModalScreen) else None

    def is_command(self, event: Typed, desk: MainScreen | None, screen: Screen[object]) -> bool:
        """Whether the key runs a command of the main screen, or ends what is typed into its filter."""
        if desk is None or screen is not desk or not isinstance(event, events.Key):
            return False
        return event.key in (_ENDS if isinstance(desk.focused, Input) else _COMMANDS)

    def acts(self, handed_to: Widget) -> None:
        """A key of a command was handed to that widget: its marker follows it."""
        if handed_to.post_message(KeyHasActed()):
            self._acting = handed_to

    def acted(self, marker: KeyHasActed) -> None:
        """The marker came back."""
        handed_to, self._acting = self._acting, None
        if handed_to is not None and marker.rounds > 1 and handed_to.post_message(KeyHasActed(1)):
            self._acting = handed_to

    def focused(self, field: Widget) -> None:
        """A field takes the keys of its screen: from now on nothing waits for it."""
        if isinstance(field, Input) and screen_is_open(field):
            self._had_field = field.screen

    def must_wait(self, desk: MainScreen | None, screen: Screen[object]) -> bool:
        """Whether the next key is to be kept: what the one before leads to is not there yet."""
        if self._acting is not None and screen_is_open(self._acting):
            return True
        if desk is not None and screen is desk:
            return desk.opens_field
        return isinstance(screen, _FIELDS) and screen is not self._had_field
