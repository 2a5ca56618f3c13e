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
    """A key and what it does."""

    key: str
    what: str


class HelpSection(NamedTuple):
    """Keys that belong together, or (``works`` False) that do nothing now for the reason in the title."""

    title: str
    rows: tuple[HelpRow, ...]
    works: bool = True


def help_lines(sections: Sequence[HelpSection], width: int) -> list[Line]:
    """Every key with what it does, under its heading."""
    lines: list[Line] = []
    for section in sections:
        room = max((len(row.key) for row in section.rows), default=0) + 2
        title = line(Piece(section.title, Tone.HEAD if section.works else Tone.WARN))
        lines += [*([BLANK] if lines else []), *fold(title, width, "  ")]
        for row in section.rows:
            key = Piece(f"{row.key:<{room}}", Tone.KEY if section.works else Tone.DIM)
            what = Piece(row.what, Tone.PLAIN if section.works else Tone.DIM)
            lines += fold(line(key, what), width, " " * room)
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
