"""Where a filter is typed."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input

from widgets.lifecycle import when_ready
from widgets.table import RowFilter
from widgets.table.row_filter import parse_filter
from widgets.text import Line, Piece, Tone, cut, fit, line
from widgets.text_lines import Lines


class FilterBar(Horizontal):
    """Hidden until it is opened. Enter keeps the filter, escape takes it away. One that cannot be used lets no row
    in, and keeps the bar open.
    """

    DEFAULT_CSS = """
    FilterBar { height: 1; display: none; }
    FilterBar.open { display: block; }
    FilterBar > .prompt { width: 8; }
    FilterBar > Input { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    FilterBar > Input:focus { border: none; }
    FilterBar > .hint { width: 2fr; padding: 0 0 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "drop", "No filter", show=False)]

    class FilterChanged(Message):
        """Another filter was typed; None: no filter."""

        def __init__(self, parse_filter: RowFilter | None) -> None:
            super().__init__()
            self.filter = parse_filter

    class FilterBarClosed(Message):
        """The bar is closed; ``filter_stays``: what it shows stays filtered."""

        def __init__(self, filter_stays: bool) -> None:
            super().__init__()
            self.filter_stays = filter_stays

    def compose(self) -> ComposeResult:
        yield Lines(self._prompt, focusable=False, classes="prompt")
        yield Input(id="filter-input")
        yield Lines(self._hint, focusable=False, id="filter-hint", classes="hint")

    def _prompt(self, width: int) -> list[Line]:
        return [line(Piece("filter:"[:width], Tone.CURSOR))]

    def open(self, text: str | None = None) -> None:
        """Shows the bar and takes the keys; ``text`` takes the place of what was typed last."""
        field = self.query_one(Input)
        if text is not None:
            field.value = text
        self.add_class("open")
        field.focus()

    def close(self) -> None:
        """Hides the bar; the caller gets the keys again. From now on the field takes none: the next may be there
        already.
        """
        self.remove_class("open")
        if self.query_one(Input).has_focus:
            self.screen.set_focus(None)

    @property
    def value(self) -> RowFilter | None:
        return parse_filter(self.query_one(Input).value)

    @when_ready
    def on_input_changed(self, message: Input.Changed) -> None:
        message.stop()
        self.query_one("#filter-hint", Lines).show(self._hint)
        self.post_message(self.FilterChanged(self.value))

    @when_ready
    def on_input_submitted(self, message: Input.Submitted) -> None:
        message.stop()
        found = self.value
        if found is not None and found.problem() is not None:
            return
        self.close()
        self.post_message(self.FilterBarClosed(filter_stays=found is not None))

    def action_drop(self) -> None:
        self.query_one(Input).value = ""
        self.close()
        self.post_message(self.FilterChanged(None))
        self.post_message(self.FilterBarClosed(filter_stays=False))

    def _hint(self, width: int) -> list[Line]:
        found = self.value if self.is_mounted else None
        problem = None if found is None else found.problem()
        if problem is not None:
            return [line(Piece(cut(problem, width), Tone.BAD))]
        if found is None:
            return [
                line(Piece(fit("! first: without  / first: regular expression", width).rstrip(), Tone.DIM))
            ]
        how = ("not " if found.inverse else "") + ("regex" if found.regex else "text")
        return [line(Piece(fit(f"{how} · Enter keeps, Esc drops", width).rstrip(), Tone.DIM))]
