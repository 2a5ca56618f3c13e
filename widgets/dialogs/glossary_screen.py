"""The glossary: search a term, read what it means, and what it means now for the row under the cursor."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from recovery.wording.glossary import GlossaryEntry, search
from recovery.wording.quantity_text import printable
from widgets.dialogs.dismiss_once import DismissOnce
from widgets.lifecycle import when_ready
from widgets.text import BLANK, Line, Piece, Tone, fold, line
from widgets.text_lines import Lines

MeaningNow = Callable[[str], str]
"""What a term means now for the row under the cursor; "" where it says nothing about that row."""


def glossary_lines(found: tuple[GlossaryEntry, ...], meaning_now: MeaningNow, width: int) -> list[Line]:
    """The entries one below the other."""
    if not found:
        return [line(Piece("no term has that text", Tone.WARN))]
    lines: list[Line] = []
    for entry in found:
        names = f"  ({', '.join(entry.also)})" if entry.also else ""
        lines += [*([BLANK] if lines else [])]
        lines += fold(line(Piece(entry.term, Tone.HEAD), Piece(names, Tone.DIM)), width, "  ")
        lines += fold(line(Piece(f"  {entry.meaning}")), width, "  ")
        now = meaning_now(entry.term)
        if now:
            lines += fold(line(Piece("  Now: ", Tone.HEAD), Piece(printable(now), Tone.STRONG)), width, "  ")
    return lines


class GlossaryScreen(DismissOnce[None], ModalScreen[None]):
    """What is typed narrows the list; arrows and page keys scroll it. ``about`` names the row under the cursor."""

    DEFAULT_CSS = """
    GlossaryScreen { align: center middle; }
    GlossaryScreen > Vertical {
        width: 96%; max-width: 110; height: 96%; border: round $primary; padding: 0 1; background: $surface;
    }
    GlossaryScreen Input { height: 1; border: none; padding: 0 1; background: $panel; }
    GlossaryScreen Input:focus { border: none; }
    GlossaryScreen #glossary { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close", show=False),
        Binding("up", "scroll('scroll_up')", show=False, priority=True),
        Binding("down", "scroll('scroll_down')", show=False, priority=True),
        Binding("pageup", "scroll('page_up')", show=False, priority=True),
        Binding("pagedown", "scroll('page_down')", show=False, priority=True),
    ]

    def __init__(self, about: str, meaning_now: MeaningNow) -> None:
        super().__init__()
        self._about = about
        self._meaning_now = meaning_now
        self._found = search("")

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Lines(self._head, focusable=False)
            yield Input(placeholder="type a word: ISR, epoch, verdict …")
            yield Lines(self._entries, id="glossary", focusable=False)

    @when_ready
    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._found = search(event.value)
        entries = self.query_one("#glossary", Lines)
        entries.show_again()
        entries.to_the_top()

    def action_scroll(self, how: str) -> None:
        getattr(self.query_one("#glossary", Lines), f"action_{how}")()

    def action_leave(self) -> None:
        self.dismiss(None)

    def _head(self, width: int) -> list[Line]:
        row = f", and now for {self._about}" if self._about else ""
        head = line(
            Piece(f"What the words mean{printable(row)}", Tone.STRONG), Piece("  ↑ ↓ scroll, Esc closes")
        )
        return fold(head, width)

    def _entries(self, width: int) -> list[Line]:
        return glossary_lines(self._found, self._meaning_now, width)
