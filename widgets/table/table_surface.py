"""What is seen of a table: the visible lines of its rows, the columns that have room, and scrolling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from textual import events, on
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from widgets.fields import Field, Row
from widgets.table.row_arrangement import Arrangement, TableQuery
from widgets.table.row_filter import RowFilter
from widgets.table.table_painter import TablePainter
from widgets.table.table_state import TableState
from widgets.text import Line, Piece, Tone
from widgets.text_lines import strip_of
from widgets.theme import cursor as cursor_style
from widgets.theme import tone_styles


def top_showing(number: int, top: int, body: int) -> int:
    """The topmost line, moved from ``top`` only as far as line ``number`` needs to be visible."""
    return min(max(top, number - body + 1), number)


def top_after(before: TableState[Row], now: TableState[Row], top: int, body: int) -> int:
    """The topmost line after a new arrangement, given the topmost line before it.

    A visible cursor keeps its line on the screen. If the cursor was scrolled out of sight, new rows keep the
    topmost line, and a new order of the same rows shows the cursor.
    """
    at = before.cursor.number
    if top <= at < top + body:
        return top_showing(now.cursor.number, max(now.cursor.number - (at - top), 0), body)
    if before.arrangement.lines and before.arrangement.rows is not now.arrangement.rows:
        return before.line_in(top, now.arrangement)
    return top_showing(now.cursor.number, top, body)


class TableSurface(ScrollView, Generic[Row]):
    """Draws a table's state, and nothing but the lines that changed. Whoever changes the state repaints."""

    DEFAULT_CSS = """
    TableSurface { height: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }
    """

    def __init__(
        self,
        columns: Sequence[Field[Row]],
        query: TableQuery[Row],
        *,
        noun: str,
        empty: str,
        id: str | None,
    ) -> None:
        super().__init__(id=id)
        self.columns = tuple(columns)
        self.noun = noun
        self.empty = empty
        self._rows: Sequence[Row] = ()
        self._query = query
        self._state: TableState[Row] = TableState(Arrangement((), (), (), (), query.key))
        self._painter = TablePainter(self.columns, noun)
        self._painted: dict[int, tuple[Line, bool]] = {}
        self._laid_out_for = -1

    @property
    def filter(self) -> RowFilter | None:
        return self._query.filter

    @property
    def cursor_row(self) -> Row | None:
        """The row under the cursor; None on a heading and in an empty table."""
        return self._state.cursor_row

    def narrowed(self) -> None:
        """Other columns than before have no room."""

    def redraw(self) -> None:
        """Draws the lines that look different now, where cells depend on more than their row."""
        if self.is_attached:
            self._repaint()

    @property
    def without_room(self) -> int:
        """How many columns are not drawn; the heading says it too."""
        return len(self._painter.layout.dropped)

    @property
    def left_out(self) -> tuple[tuple[str, str], ...]:
        """Title and text of the cells without room, of the row under the cursor; without empty texts."""
        return () if self.cursor_row is None else self._painter.layout.left_out(self.cursor_row)

    def render_line(self, y: int) -> Strip:
        if self._laid_out_for != self._columns_wide:
            self.call_later(self._lay_out)  # a scroll bar came or went
        line, under_cursor = self._painted[y] = self._line_at(y)
        strip = strip_of(line, tone_styles(self), self._columns_wide)
        if under_cursor:
            strip = strip.apply_style(cursor_style(self.app.theme, focused=self.has_focus))
        return strip.apply_style(self.rich_style)

    @property
    def _columns_wide(self) -> int:
        """The screen columns beside the scroll bar."""
        return self.scrollable_content_region.width

    def _line_at(self, y: int) -> tuple[Line, bool]:
        """The line at screen line ``y``, and whether the cursor is on it."""
        if y == 0:
            return self._painter.header(self._query, self._columns_wide), False
        if y == 1 and not self._state.arrangement.lines:
            return (Piece(f"   {self._why_empty()}", Tone.DIM),), False
        return self._painter.line(y - 1 + self.scroll_offset.y, self._state)

    def _why_empty(self) -> str:
        rows = len(self._rows)
        if not rows:
            return self.empty
        problem = None if self.filter is None else self.filter.problem()
        why = f"no {self.noun} for {self.filter}" if problem is None else problem
        return f"the filter hides all {rows:,}: {why}"

    def _lay_out(self) -> None:
        """Widths by what is seen; a change of the layout draws everything anew."""
        self._laid_out_for = self._columns_wide
        before, height = self._painter.layout, max(self.size.height - 1, 0)
        self._painter.lay_out(self._state.arrangement, self.scroll_offset.y, height, self._columns_wide)
        now = self._painter.layout
        if now != before:
            if now.dropped != before.dropped:
                self.narrowed()
            self.refresh()

    def _repaint(self) -> None:
        """Draws the lines that look different from what is on the screen, and no others."""
        self._lay_out()
        for y in range(self.size.height):
            if self._painted.get(y) != self._line_at(y):
                self.refresh(Region(0, y, self._columns_wide, 1))

    # Scrolling

    def _fit_scroll_range(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._state.arrangement.lines) + 1)

    @property
    def _body(self) -> int:
        """The screen lines below the heading."""
        return max(self.size.height - 1, 1)

    def _scroll_to_cursor(self) -> None:
        self._scroll_top(top_showing(self._state.cursor.number, self.scroll_offset.y, self._body))

    def _scroll_top(self, top: int) -> None:
        """Shows the lines from ``top`` on, at once; by force, since the scroll bar may not be there yet."""
        if top != self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, force=True)

    # Events

    def on_resize(self) -> None:
        self._fit_scroll_range()
        self._scroll_to_cursor()
        self._lay_out()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._lay_out()

    @on(events.Focus)
    @on(events.Blur)
    def _redraw_all(self) -> None:
        self.refresh()
