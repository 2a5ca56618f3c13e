"""The table widget: rows of any number, of which only the visible lines are drawn. Nothing is animated."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Callable, Coroutine, Generator, Hashable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from time import perf_counter
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from textual import events, on
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.worker import Worker

from widgets.fields import Field, Row, text_of_all
from widgets.table import table_messages
from widgets.table.row_arrangement import Arrangement, TableQuery, arrange, keys_in_slices
from widgets.table.row_filter import RowFilter
from widgets.table.table_column import Grouping
from widgets.table.table_painter import TablePainter
from widgets.table.table_state import RowCounts, TableState, rearranged
from widgets.text import Line, Piece, Tone
from widgets.text_lines import navigation_bindings, strip_of
from widgets.theme import cursor as cursor_style
from widgets.theme import tone_styles

# What is seen of a table: the visible lines of its rows, the columns that have room, and scrolling.


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
        self._empty = empty
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

    @property
    def empty(self) -> str:
        """What a table without rows says in their place."""
        return self._empty

    @empty.setter
    def empty(self, text: str) -> None:
        """Drawn at once: the same empty rows may come with another reason."""
        if text != self._empty:
            self._empty = text
            self.redraw()

    def narrowed(self) -> None:
        """Other columns than before have no room."""

    def redraw(self) -> None:
        """Draws the lines that look different now, where cells depend on more than their row."""
        if self.is_attached:
            self._painter.measure_again()
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
            return self._empty
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
        top = top_showing(self._state.cursor.number, self.scroll_offset.y, self._body)
        self._scroll_top(self._with_heading(top))

    def _with_heading(self, top: int) -> int:
        """One line higher where the first line shown is the first row of a group: its heading is seen too."""
        arrangement, heading = self._state.arrangement, top - 1
        cut = 0 <= heading < len(arrangement.lines) and arrangement.group(heading) is not None
        return heading if cut and self._state.cursor.number - heading < self._body else top

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


T = TypeVar("T")

Job = Callable[[], Coroutine[Any, Any, None]]

SLICE_SECONDS = 0.01
ROWS_IN_ONE_CALL = 2_000
"""A job over at most this many rows ends within the call; a longer one runs in slices, between other events."""


# Long work in slices on the event loop, so that a table of any length never blocks the screen. No threads.


class SlicedJobs:
    """Jobs by name. A later job of the same name replaces an earlier one that is not finished.

    ``start`` runs a job as a task of its own, and cancels the task of the same name that still runs.
    """

    def __init__(self, start: Callable[[str, Job], object]) -> None:
        self._start = start
        self._generation = 0
        self._running: dict[str, int] = {}
        self._finished = asyncio.Event()
        self._finished.set()

    @property
    def finished(self) -> bool:
        """Whether no job is under way."""
        return self._finished.is_set()

    async def wait_finished(self) -> None:
        """Returns when no job is under way."""
        await self._finished.wait()

    def run(
        self, name: str, slices: Generator[None, None, T], then: Callable[[T], None], *, rows: int
    ) -> None:
        """Runs ``slices``, a job over ``rows`` rows, and calls ``then`` with the result."""
        self._generation += 1
        self._running[name] = self._generation
        self._finished.clear()
        if rows <= ROWS_IN_ONE_CALL:
            self._end(name, self._generation, run_to_end(slices), then)
            return
        self._start(name, partial(self._run_slices, name, self._generation, slices, then))

    async def _run_slices(
        self, name: str, generation: int, slices: Generator[None, None, T], then: Callable[[T], None]
    ) -> None:
        pause = perf_counter() + SLICE_SECONDS
        while self._running.get(name) == generation:
            try:
                next(slices)
            except StopIteration as done:
                self._end(name, generation, done.value, then)
                return
            if perf_counter() >= pause:
                await asyncio.sleep(0)
                pause = perf_counter() + SLICE_SECONDS

    def _end(self, name: str, generation: int, result: T, then: Callable[[T], None]) -> None:
        then(result)
        if self._running.get(name) == generation:
            del self._running[name]
        if not self._running:
            self._finished.set()


def run_to_end(slices: Generator[None, None, T]) -> T:
    """The result of the slices, all of them run in one go."""
    while True:
        try:
            next(slices)
        except StopIteration as done:
            result: Any = done.value
            return result  # type: ignore[no-any-return]  # a generator's value has no type here


CHUNK = 500


class Export(StrEnum):
    """The form of an exported table."""

    CSV = "csv"
    JSON = "json"


def exported(arranged: Arrangement[Row], columns: Sequence[Field[Row]], kind: Export) -> Iterator[str]:
    """The rows that are shown, with all columns, wide or narrow; a chunk of text every :data:`CHUNK` rows."""
    return _csv(arranged, columns) if kind is Export.CSV else _json(arranged, columns)


def _csv(arranged: Arrangement[Row], columns: Sequence[Field[Row]]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([column.id for column in columns])
    for start in range(0, max(len(arranged.shown), 1), CHUNK):
        for n in arranged.shown[start : start + CHUNK]:
            writer.writerow([_scalar(column, arranged.rows[n]) for column in columns])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _scalar(column: Field[Row], row: Row) -> object:
    value = column.value(row)
    if isinstance(value, dict):
        return column.cell(row)
    if isinstance(value, (list, tuple)):
        return " ".join(str(item) for item in value)
    return "" if value is None else value


def _json(arranged: Arrangement[Row], columns: Sequence[Field[Row]]) -> Iterator[str]:
    opening = "["
    for start in range(0, len(arranged.shown), CHUNK):
        objects = (
            json.dumps({column.id: column.value(arranged.rows[n]) for column in columns}, ensure_ascii=False)
            for n in arranged.shown[start : start + CHUNK]
        )
        yield opening + "\n  " + ",\n  ".join(objects)
        opening = ","
    yield "[]\n" if opening == "[" else "\n]\n"


class RowTable(TableSurface[Row], can_focus=True):
    """Rows under a fixed heading; cursor and marks are kept by key.

    Until new rows, or a new order, are arranged, the former lines stay, whole. A later request replaces an earlier
    one that is not finished.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *navigation_bindings("cursor(-1)", "cursor(1)", "page(-1)", "page(1)", "first", "last"),
        Binding("left", "fold(True)", "Fold the group", show=False),
        Binding("right", "fold(False)", "Unfold the group", show=False),
        Binding("space", "mark", "Mark the row", show=False),
        Binding("enter", "activate", "Open the row", show=False),
    ]
    CursorMoved: TypeAlias = table_messages.CursorMoved
    Activated: TypeAlias = table_messages.Activated
    RowGone: TypeAlias = table_messages.RowGone
    MarksChanged: TypeAlias = table_messages.MarksChanged
    MarksGone: TypeAlias = table_messages.MarksGone
    Counted: TypeAlias = table_messages.Counted
    Narrowed: TypeAlias = table_messages.Narrowed

    def __init__(
        self,
        columns: Sequence[Field[Row]],
        key: Callable[[Row], Hashable],
        *,
        groupings: Sequence[Grouping[Row]] = (),
        search: Callable[[Row], str] | None = None,
        noun: str = "row",
        empty: str = "nothing here",
        stays_on_top: bool = False,
        id: str | None = None,
    ) -> None:
        """``stays_on_top``: the cursor is on the first row, whichever that becomes, until somebody acts."""
        query = TableQuery(key, search or text_of_all(columns))
        super().__init__(columns, query, noun=noun, empty=empty, id=id)
        self.groupings = tuple(groupings)
        self._stays_on_top = stays_on_top
        self._touched = False
        self._jobs = SlicedJobs(self._start)
        self._wanted_columns = self.columns
        self._counts = RowCounts(0, 0, 0, 0)
        self._cursor_reported: tuple[Hashable | None, Row | None] = (None, None)

    def _start(self, name: str, job: Job) -> None:
        _worker: Worker[None] = self.run_worker(job, group=name, exclusive=True)

    # Rows, and how they are arranged

    def update(self, rows: Sequence[Row], columns: Sequence[Field[Row]] = ()) -> None:
        """Shows these rows from now on; they must not change. Returns at once. ``columns``: where the rows are of
        another kind than before; then their order and their filter start anew.
        """
        if columns and tuple(columns) != self._wanted_columns:
            self._wanted_columns = tuple(columns)
            self._query = TableQuery(self._query.key, text_of_all(columns))
        if rows is not self._rows:
            self._rows = rows
            self._arrange()

    @property
    def settled(self) -> bool:
        """Whether the lines are arranged as requested last."""
        return self._jobs.finished

    async def wait_settled(self) -> None:
        """Returns when the lines are arranged as requested last."""
        await self._jobs.wait_finished()

    @property
    def filtered(self) -> bool:
        """Whether a filter is set."""
        return self._query.filter is not None

    @property
    def lines(self) -> int:
        """How many lines there are below the heading; an empty table has a line that says so."""
        return max(len(self._state.arrangement.lines), 1)

    @property
    def counts(self) -> RowCounts:
        return self._counts

    @property
    def shown_rows(self) -> tuple[Row, ...]:
        """The rows that the filter shows, in their order."""
        return self._state.shown_rows

    @property
    def sort_state(self) -> tuple[str | None, bool]:
        """The column that sorts, None for the order in which the rows came; and whether from high to low."""
        return self._query.sort_id, self._query.reverse

    @property
    def grouping(self) -> str | None:
        return None if self._query.grouping is None else self._query.grouping.id

    def sort_by(self, column: str | None, reverse: bool = False) -> None:
        """Sorts by that column; None: in the order in which the rows came. Raises KeyError for an unknown one."""
        found = None if column is None else {c.id: c for c in self.columns}[column]
        self._request(self._query.sorted_by(found, reverse))

    def filter_by(self, wanted: RowFilter | None) -> None:
        """Shows the rows that pass. A filter that cannot be used (:meth:`RowFilter.problem`) changes nothing."""
        self._request(self._query.filtered_by(wanted))

    def group_by(self, grouping: str | None) -> None:
        """Puts the rows under headings; None: without. Raises KeyError for an unknown grouping."""
        found = None if grouping is None else {g.id: g for g in self.groupings}[grouping]
        self._request(self._query.grouped_by(found))

    def toggle_group(self) -> None:
        """Folds or unfolds the group that the cursor is in."""
        group = self._state.cursor_group
        if group is not None:
            self._request(self._query.toggled(group.label))

    def fold_all(self) -> bool:
        """Folds every group, or unfolds them where all are folded; returns whether they are folded now."""
        labels = frozenset(group.label for group in self._state.arrangement.groups)
        folded = not labels <= self._query.folded
        self._request(self._query.with_folded(labels if folded else frozenset()))
        return folded

    def export(self, kind: Export | str) -> Iterator[str]:
        """The rows shown as CSV or JSON, with all columns, in chunks. Later changes do not touch it."""
        return exported(self._state.arrangement, self.columns, Export(kind))

    def _request(self, query: TableQuery[Row]) -> None:
        if query is not self._query:
            self._query = query
            self._arrange()

    def _arrange(self) -> None:
        if self.is_attached:
            state = self._state
            cursor = state.cursor_key if self._rows is not state.arrangement.rows else None
            wanted = replace(self._query, marks=state.marks, cursor=cursor)
            self._jobs.run("arrange", arrange(self._rows, wanted), self._put, rows=len(self._rows))

    def _put(self, arrangement: Arrangement[Row]) -> None:
        """Takes the place of the former lines; what was at the cursor, or at the top, stays where it was."""
        if self._wanted_columns is not self.columns and arrangement.rows is self._rows:
            self.columns = self._wanted_columns
            self._painter = TablePainter(self.columns, self.noun)
        before, top = self._state, self.scroll_offset.y
        changed = rearranged(before, arrangement)
        self._state = changed.state
        on_top = self._stays_on_top and not self._touched and changed.state.cursor.number != 0
        if on_top:
            self._state = changed.state.with_cursor(0)
        self._painter.highlight(self._query)
        self._fit_scroll_range()
        if arrangement.rows is not before.arrangement.rows:
            self._painter.forget_widths()
        if changed.marks_gone:
            self.post_message(self.MarksGone(self, changed.marks_gone))
            self.post_message(self.MarksChanged(self, self.marks))
        if changed.cursor_gone:
            was, rows = before.cursor, before.arrangement.rows
            self.post_message(self.RowGone(self, was.key, before.cursor_row, self.cursor_key, rows))
        self._report_counts()
        self._scroll_top(0 if on_top else self._with_heading(top_after(before, self._state, top, self._body)))
        self._repaint()
        self._report_cursor(by_hand=False)

    # Cursor and marks

    @property
    def cursor_key(self) -> Hashable | None:
        """The key of the row under the cursor; None on a heading and in an empty table."""
        return self._state.cursor_key

    @property
    def marks(self) -> frozenset[Hashable]:
        """The keys of the marked rows, including those that the filter hides."""
        return self._state.marks

    @property
    def marked_rows(self) -> tuple[Row, ...]:
        """The marked rows in the order in which they came, including those that the filter hides."""
        return self._state.marked_rows

    def move_to(self, key: Hashable) -> bool:
        """Puts the cursor on the row of that key; False where it is not shown."""
        number = self._state.arrangement.find(key)
        if number is not None:
            self._move_cursor(number)
        return number is not None

    def unfold_for(self, key: Hashable) -> bool:
        """Unfolds the groups that the row of that key is folded away in; False where there are none."""
        arrangement = self._state.arrangement
        folded = frozenset(
            group.label
            for group in arrangement.groups
            if group.folded and any(arrangement.key(arrangement.rows[number]) == key for number in group.rows)
        )
        if folded:
            self._request(self._query.with_folded(self._query.folded - folded))
        return bool(folded)

    def shows(self, key: Hashable | None) -> bool:
        """Whether the row of that key is shown."""
        return key is not None and self._state.arrangement.find(key) is not None

    def toggle_mark(self) -> None:
        """Marks the row under the cursor, or no longer; on a heading, all its rows."""
        self._change_marks(self._state.mark_toggled())

    def mark_range(self) -> None:
        """Marks every row from the one that was marked last to the cursor."""
        self._change_marks(self._state.range_marked())

    def mark_all_shown(self) -> None:
        """Marks every row that the filter shows, in folded groups too."""
        arrangement, shown = self._state.arrangement, self._state.arrangement.shown
        self._jobs.run("mark", keys_in_slices(arrangement, shown), self._add_marks, rows=len(shown))

    def clear_marks(self) -> None:
        self._change_marks(self._state.unmarked())

    def _add_marks(self, keys: frozenset[Hashable]) -> None:
        self._change_marks(self._state.with_marks(self.marks | keys))

    def touched(self) -> None:
        """Somebody acts: from now on the cursor stays on its row."""
        self._touched = True

    def _change_marks(self, state: TableState[Row]) -> None:
        self.touched()
        before, self._state = self._state, state
        if state.marks != before.marks:
            self.post_message(self.MarksChanged(self, state.marks))
            self._report_counts()
            self._repaint()

    def _move_cursor(self, number: int) -> None:
        self.touched()
        self._state = self._state.with_cursor(number)
        self._scroll_to_cursor()
        self._repaint()
        self._report_cursor(by_hand=True)

    def _report_cursor(self, *, by_hand: bool) -> None:
        stands_on = (self.cursor_key, self.cursor_row)
        if stands_on != self._cursor_reported:
            self._cursor_reported = stands_on
            self.post_message(self.CursorMoved(self, *stands_on, by_hand=by_hand))

    def _report_counts(self) -> None:
        counts = self._state.counts(len(self._rows))
        if counts != self._counts:
            self._counts = counts
            self.post_message(self.Counted(self, counts))

    # Events

    def narrowed(self) -> None:
        self.post_message(self.Narrowed(self))

    def on_mount(self) -> None:
        self.watch(self.app, "theme", self._redraw_all, init=False)
        self._arrange()

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            column = self._painter.layout.column_at(event.x)
            if column is not None:
                self._request(self._query.sorted_by_click(column))
            return
        number = event.y - 1 + self.scroll_offset.y
        if number >= len(self._state.arrangement.lines):
            return
        self._move_cursor(number)
        if self._state.arrangement.group(number) is not None:
            self.toggle_group()
        elif event.chain == 2:
            self.action_activate()

    # Keys

    def action_cursor(self, step: int) -> None:
        self._move_cursor(self._state.cursor.number + step)

    def action_page(self, step: int) -> None:
        self.action_cursor(step * max(self.size.height - 2, 1))

    def action_first(self) -> None:
        self._move_cursor(0)

    def action_last(self) -> None:
        self._move_cursor(len(self._state.arrangement.lines) - 1)

    def action_mark(self) -> None:
        self.toggle_mark()
        self.action_cursor(1)

    def action_activate(self) -> None:
        """Opens the row; a heading folds or unfolds."""
        key, row = self._state.cursor.key, self.cursor_row
        if row is not None and key is not None:
            self.post_message(self.Activated(self, key, row))
        elif key is not None:
            self.toggle_group()
        else:
            raise SkipAction  # the screen says that there is no row

    def action_fold(self, fold: bool) -> None:
        group = self._state.cursor_group
        if group is not None and group.folded != fold:
            self.toggle_group()
