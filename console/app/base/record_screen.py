"""What a command prints, as a page of the console."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from recovery.wording.quantity_text import printable
from widgets.dialogs.dismiss_once import DismissOnce
from widgets.text import fold, line
from widgets.text_lines import Lines


class RecordScreen(DismissOnce[None], ModalScreen[None]):
    """What a command prints, as a page: the journal, the hand-over, or a proof."""

    DEFAULT_CSS = """
    RecordScreen { align: center middle; }
    RecordScreen > Lines { width: 95%; height: 85%; border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,J,H,P,M", "close", "Close", show=False)]

    def __init__(self, title: str, text: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._text = tuple(printable(one) for one in text)

    def compose(self) -> ComposeResult:
        shown = Lines(lambda width: [part for one in self._text for part in fold(line(one), width, "  ")])
        shown.border_title = self._title
        shown.border_subtitle = "Esc closes"
        yield shown

    def action_close(self) -> None:
        self.dismiss(None)
