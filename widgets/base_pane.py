"""What all panes have in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from recovery.wording.quantity_text import counted, printable
from widgets.lifecycle import is_ready, screen_is_open, when_ready
from widgets.table import RowTable
from widgets.text import Line, Piece, Tone, fold, line
from widgets.text_lines import Lines
from widgets.theme import FADED

SUMMARY_LINES = 6
"""So many lines stand above the table, unless its rows are few."""


class Pane(Vertical):
    """One pane: some lines, its table, and the details of the row under the cursor."""

    DEFAULT_CSS = """
    Pane { height: 1fr; }
    Pane > .summary { height: auto; max-height: 6; }
    Pane .details { height: auto; max-height: 60%; padding: 0 0 0 1; border-top: solid $panel; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._details_of: Hashable | None = None

    @property
    def table(self) -> RowTable[Any]:
        """The pane's main table."""
        return self.query_one(RowTable)

    @on(RowTable.CursorMoved)
    def _another_row(self, message: RowTable.CursorMoved) -> None:
        if message.key != self._details_of:
            self._details_of = message.key
            for lines in self.query(".details").results(Lines):
                lines.to_the_top()

    def on_resize(self) -> None:
        for lines in self.query(Lines):
            lines.refresh()  # its last line that is seen may be another one

    def on_row_table_narrowed(self) -> None:
        for lines in self.query(Lines):
            lines.show_again()

    def left_out(self, width: int, whose: str = "") -> list[Line]:
        """What the table has no room for, of the row under the cursor: nothing is out of reach at 80 columns."""
        cells = self.table.left_out
        if not cells:
            return []
        # The heading has room for the bare number: here is what it counts.
        count = counted(self.table.without_room, "column")
        pieces = [Piece(f"+{count}{' of ' if whose else ':'}", Tone.DIM)]
        pieces += [Piece(f"{whose}:", Tone.STRONG)] if whose else []
        for title, text in cells:
            pieces += [
                Piece("  "),
                Piece(f"{title.lower()} ", Tone.DIM),
                Piece(printable(text)),
            ]
        return fold(line(*pieces), width, "  ")

    def fade(self, faded: bool) -> None:
        """Shows everything dim, or in its colours again: an old picture must not look current."""
        if faded is self.has_class(FADED):
            return
        self.set_class(faded, FADED)
        for part in (*self.query(Lines), *self.query(RowTable)):
            part.set_class(faded, FADED)
            part.refresh()

    def focus_first(self) -> None:
        """Puts the keys where the rows are."""
        self.table.focus()

    def export(self, kind: str) -> Iterator[str]:
        """The main table's shown rows as ``csv`` or ``json``, in chunks."""
        return self.table.export(kind)


class TablePane(Pane):
    """A pane of a summary, one table, and the details of the row under the cursor, each drawn anew when the cursor
    or the counts change. ``NAME`` begins the ids of the texts.

    A short terminal has no room for all of the summary: the details begin with it while they have the focus. A pane
    that has a drawing (``DRAWS``) shows it where the screen is wide: below the table (its classes ``-wide`` and
    ``-tall``), or beside it (``-broad``, or too few lines); ``DRAWING_KEY`` shows what of it has no room. Where the
    rows are few (``-few``), the details follow right below them and have all the room that is left.
    """

    DEFAULT_CSS = """
    TablePane > .body { height: 1fr; }
    TablePane .list { height: 1fr; width: 1fr; }
    TablePane RowTable { height: 1fr; min-height: 4; }
    TablePane .drawing { display: none; width: 52%; height: 1fr; padding: 0 0 0 1; border-left: solid $panel; }
    TablePane.-few RowTable { height: auto; min-height: 2; }
    TablePane.-few > .summary { max-height: 50%; }
    TablePane.-few .details { height: 1fr; max-height: 100%; }
    """
    NAME: ClassVar[str]
    DRAWS: ClassVar[bool] = False
    DRAWING_KEY: ClassVar[str] = ""

    def make_table(self) -> RowTable[Any]:
        raise NotImplementedError

    def summary_lines(self, width: int) -> list[Line]:
        """What is above the table."""
        raise NotImplementedError

    def detail_lines(self, width: int) -> list[Line]:
        """What is below the table."""
        raise NotImplementedError

    def has_drawing(self) -> bool:
        """Whether there is something to draw now: the table has the whole width where there is not."""
        return self.table.cursor_row is not None

    def drawing_lines(self, width: int) -> list[Line]:  # noqa: ARG002  # for the panes that draw
        """What stands beside the table on a wide screen: a drawing of the row under the cursor, with its words."""
        return []

    def rest_lines(self, width: int) -> list[Line]:
        """What the details begin with while they have the focus: what there may be no room for above."""
        return self.summary_lines(width)

    def details_key(self) -> str:
        """The key that the details name at their end where they do not fit; "": Tab leads to them, and they
        scroll.
        """
        return ""

    def has_rest(self) -> bool:
        """Whether something above the table, or the details, have no room now."""
        details = self.query_one(f"#{self.NAME}-details", Lines)
        return self.query_one(f"#{self.NAME}-summary", Lines).is_cut or not details.size.height

    def compose(self) -> ComposeResult:
        yield Lines(id=f"{self.NAME}-summary", classes="summary", focusable=False, fixed=True, key="Tab")
        with Horizontal(classes="body"):
            with Vertical(classes="list"):
                yield self.make_table()
                yield Lines(id=f"{self.NAME}-details", classes="details", key=self.details_key())
            if self.DRAWS:
                yield Lines(
                    id=f"{self.NAME}-drawing",
                    classes="drawing",
                    focusable=False,
                    fixed=True,
                    key=self.DRAWING_KEY,
                )

    def on_mount(self) -> None:
        if screen_is_open(self):  # else it was removed before it was mounted
            self.show_lines()

    def on_resize(self) -> None:
        super().on_resize()
        if is_ready(self):
            self.show_lines()  # what is told depends on the room for it, also where the width is the same

    def _fit_rows(self) -> None:
        """Few rows leave their room to what is said above and below them."""
        room = self.size.height - SUMMARY_LINES
        self.set_class(0 < 2 * (self.table.lines + 1) <= room, "-few")

    @property
    def is_wide(self) -> bool:
        """Whether the drawing is shown. Its size is known only when the screen was laid out anew."""
        screen = self.screen
        below = screen.has_class("-wide") and screen.has_class("-tall")
        hidden = self.has_class("-undrawn") or (below and self.has_class("-reading"))
        return self.DRAWS and (screen.has_class("-wide") or screen.has_class("-broad")) and not hidden

    @when_ready
    def on_row_table_cursor_moved(self) -> None:
        self.show_lines()

    @when_ready
    def on_row_table_counted(self) -> None:
        self.show_lines()

    def show_lines(self) -> None:
        """Draws the summary and the details anew."""
        if self.DRAWS:
            self.set_class(not self.has_drawing(), "-undrawn")
        self.query_one(f"#{self.NAME}-summary", Lines).show(self.summary_lines)
        self.query_one(f"#{self.NAME}-details", Lines).show(self._details)
        if self.DRAWS:
            self.query_one(f"#{self.NAME}-drawing", Lines).show(self.drawing_lines)
        self._fit_rows()

    def _details(self, width: int) -> list[Line]:
        above = self.rest_lines(width) if self.has_class("-reading") else []
        return [*above, *self.detail_lines(width)]

    @on(events.DescendantFocus)
    def _focus_moved(self, event: events.DescendantFocus) -> None:
        reading = isinstance(event.widget, Lines) and (self.has_class("-reading") or self.has_rest())
        if reading is not self.has_class("-reading"):
            self.set_class(reading, "-reading")
            self.show_lines()
            self.query_one(f"#{self.NAME}-details", Lines).to_the_top()
