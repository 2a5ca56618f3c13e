"""Help from the live bindings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen

from widgets.dialogs.dismiss_once import DismissOnce
from widgets.text import BLANK, Line, Piece, Tone, fold, line
from widgets.text_lines import Lines


class HelpRow(NamedTuple):
    """A key and what it does; ``why_not`` is why it does nothing now, "" where it works."""

    key: str
    what: str
    why_not: str = ""


class HelpSection(NamedTuple):
    """Keys that belong together."""

    title: str
    rows: tuple[HelpRow, ...]


def help_lines(sections: Sequence[HelpSection], width: int) -> list[Line]:
    """Every key with what it does, and why it does nothing where it does not."""
    lines: list[Line] = []
    for section in sections:
        room = max((len(row.key) for row in section.rows), default=0) + 2
        lines += [*([BLANK] if lines else []), line(Piece(section.title, Tone.HEAD))]
        for row in section.rows:
            why = Piece(f"  (not now: {row.why_not})" if row.why_not else "", Tone.WARN)
            what = Piece(row.what, Tone.DIM if row.why_not else Tone.PLAIN)
            lines += fold(line(Piece(f"{row.key:<{room}}", Tone.KEY), what, why), width, " " * room)
    return lines


class HelpScreen(DismissOnce[None], ModalScreen[None]):
    """Scrolls; escape, q and ? close it."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll {
        width: 96%; max-width: 100; height: auto; max-height: 96%; border: round $primary; padding: 0 1;
        background: $surface; scrollbar-size-vertical: 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark", "leave", "Close")]

    def __init__(self, sections: Sequence[HelpSection]) -> None:
        super().__init__()
        self._sections = sections

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Lines(lambda width: help_lines(self._sections, width), focusable=False)

    def action_leave(self) -> None:
        self.dismiss(None)
