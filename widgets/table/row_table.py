"""The table widget: rows of any number, of which only the visible lines are drawn. Nothing is animated."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import ClassVar, TypeAlias

from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.worker import Worker

from widgets.fields import Field, Row, text_of_all
from widgets.table import table_messages
from widgets.table.row_arrangement import Arrangement, TableQuery, arrange, keys_in_slices
from widgets.table.row_filter import RowFilter
from widgets.table.sliced_jobs import Job, SlicedJobs
from widgets.table.table_column import Grouping
from widgets.table.table_painter import TablePainter
from widgets.table.table_state import RowCounts, TableState, rearranged
from widgets.table.table_surface import TableSurface, top_after
from widgets.text_lines import navigation_bindings

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
        id: str | None = None,
    ) -> None:
        query = TableQuery(key, search or text_of_all(columns))
        super().__init__(columns, query, noun=noun, empty=empty, id=id)
        self.groupings = tuple(groupings)
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
        self._painter.highlight(self._query)
        self._fit_scroll_range()
        if arrangement.rows is not before.arrangement.rows:
            self._painter.forget_widths()
        if changed.marks_gone:
            self.post_message(self.MarksGone(self, changed.marks_gone))
            self.post_message(self.MarksChanged(self, self.marks))
        if changed.cursor_gone:
            self.post_message(self.RowGone(self, before.cursor.key, before.cursor_row, self.cursor_key))
        self._report_counts()
        self._scroll_top(top_after(before, self._state, top, self._body))
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

    def _change_marks(self, state: TableState[Row]) -> None:
        before, self._state = self._state, state
        if state.marks != before.marks:
            self.post_message(self.MarksChanged(self, state.marks))
            self._report_counts()
            self._repaint()

    def _move_cursor(self, number: int) -> None:
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
