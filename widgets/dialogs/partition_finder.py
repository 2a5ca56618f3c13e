"""Finds a partition by what is typed of its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from recovery.model import TopicPartition
from recovery.wording.quantity_text import counted, printable
from widgets.dialogs.dismiss_once import DismissOnce
from widgets.fields import more
from widgets.lifecycle import when_ready
from widgets.text import Line, Piece, Tone, cut, fold, line
from widgets.text_lines import Lines

SHOWN = 200
"""So many matches are listed; to see others, type more of the name."""


def matching(partitions: Sequence[TopicPartition], text: str) -> list[TopicPartition]:
    """The partitions whose name has the text: those that begin with it first. Blanks stand for the hyphen."""
    wanted = text.strip().lower().replace(" ", "-")
    found = [tp for tp in partitions if wanted in str(tp).lower()]
    return sorted(
        found, key=lambda tp: (str(tp).lower() != wanted, not str(tp).lower().startswith(wanted), tp)
    )


class PartitionFinder(DismissOnce[TopicPartition | None], ModalScreen[TopicPartition | None]):
    """Ends with the partition that was chosen, or None. ``bookmarks`` were found earlier; they are offered before
    anything is typed.
    """

    DEFAULT_CSS = """
    PartitionFinder { align: center middle; }
    PartitionFinder > Vertical {
        width: 90%; max-width: 90; height: auto; max-height: 100%; border: round $primary; padding: 0 1;
        background: $surface;
    }
    PartitionFinder Input { height: 1; border: none; padding: 0 1; background: $panel; }
    PartitionFinder Input:focus { border: none; }
    PartitionFinder #matches { height: auto; max-height: 10; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Cancel", show=False),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
    ]

    def __init__(self, partitions: Sequence[TopicPartition], bookmarks: Sequence[TopicPartition]) -> None:
        super().__init__()
        self._partitions = partitions
        self._bookmarks = tuple(bookmarks)
        self._found: list[TopicPartition] = list(bookmarks)
        self._cursor = 0

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Lines(self._head, focusable=False)
            yield Input(placeholder="topic, or topic-partition")
            yield Lines(self._matches, id="matches", focusable=False)

    @when_ready
    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        typed = event.value.strip()
        self._found = matching(self._partitions, typed) if typed else list(self._bookmarks)
        self._cursor = 0
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._found:
            self.dismiss(self._found[self._cursor])

    def action_move(self, step: int) -> None:
        self._cursor = min(max(self._cursor + step, 0), max(len(self._found[:SHOWN]) - 1, 0))
        self._show()

    def action_leave(self) -> None:
        self.dismiss(None)

    def _show(self) -> None:
        matches = self.query_one("#matches", Lines)
        matches.show_again()
        matches.scroll_to(y=max(self._cursor - 5, 0), animate=False, force=True)

    def _head(self, width: int) -> list[Line]:
        head = line(
            Piece("Find a partition in every pane ", Tone.STRONG), Piece("Enter: go there   Esc: cancel")
        )
        return fold(head, width)

    def _matches(self, width: int) -> list[Line]:
        typed = self.is_mounted and bool(self.query_one(Input).value.strip())
        if not self._found:
            text = (
                "no partition has that name"
                if typed
                else f"{counted(len(self._partitions), 'partition')} known"
            )
            return [line(Piece(cut(f"  {text}", width), Tone.WARN if typed else Tone.DIM))]
        lines = [] if typed else [line(Piece("found before:", Tone.DIM))]
        for number, tp in enumerate(self._found[:SHOWN]):
            here = number == self._cursor
            lines.append(
                line(Piece(f"{'►' if here else ' '} {printable(str(tp))}", Tone.KEY if here else Tone.PLAIN))
            )
        left = more(len(self._found) - SHOWN, "", "  ")
        return [*lines, *(line(Piece(text, Tone.DIM)) for text in left)]
