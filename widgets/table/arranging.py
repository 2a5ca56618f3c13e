"""The table's state: which rows, in which order, where the cursor is, what is marked. No drawing here."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Generic

from widgets.table import table_messages
from widgets.table.row_arrangement import Arrangement, Group, GroupKey, TableQuery, arrange, keys_in_slices
from widgets.table.row_cursor import Cursor, cursor_at, followed, keys_of
from widgets.table.row_filter import RowFilter
from widgets.table.slicing import Slicing
from widgets.table.table_column import Grouping, Row, TableColumn
from widgets.table.table_messages import RowCounts

AT_ONCE = 2_000
"""Rows that are arranged within the call; more of them are arranged in slices, between other events."""


class Arranging(Slicing, Generic[Row]):
    """Rows that come, are sorted, filtered, grouped and marked.

    New rows are arranged in slices; until that is done the former picture stays, whole. A later wish takes the
    place of one that is not done yet.
    """

    def __init__(
        self,
        columns: Sequence[TableColumn[Row]],
        key: Callable[[Row], Hashable],
        groupings: Sequence[Grouping[Row]],
        search: Callable[[Row], str] | None,
        id: str | None,
    ) -> None:
        super().__init__(id)
        self.columns = tuple(columns)
        self.groupings = tuple(groupings)
        self._wanted: TableQuery[Row] = TableQuery(key, search or self._all_text)
        self._rows: Sequence[Row] = ()
        self._arranged: Arrangement[Row] = Arrangement((), (), (), (), key)
        self._finder: re.Pattern[str] | None = None
        self._cursor = Cursor(0, None)
        self._marks: frozenset[Hashable] = frozenset()
        self._marked_by_group: dict[str, int] = {}
        self._anchor: Hashable | None = None
        self._needs: dict[str, int] = {}
        self._counts = RowCounts(0, 0, 0, 0)
        self._told: tuple[Hashable | None, Row | None] = (None, None)

    def _all_text(self, row: Row) -> str:
        return "\n".join(column.text(row) for column in self.columns)

    # What others give and ask

    def update(self, rows: Sequence[Row]) -> None:
        """Shows these rows from now on; they must not change. Returns at once."""
        if rows is not self._rows:
            self._rows = rows
            self._rearrange()

    def redraw(self) -> None:
        """Draws the lines that came to look different, where cells depend on more than their row."""
        if self.is_attached:
            self._repaint()

    @property
    def cursor_key(self) -> Hashable | None:
        """The key of the row under the cursor; None on a heading and in an empty table."""
        return None if isinstance(self._cursor.key, GroupKey) else self._cursor.key

    @property
    def cursor_row(self) -> Row | None:
        """The row under the cursor; None on a heading and in an empty table."""
        return self._arranged.row(self._cursor.number) if self._arranged.lines else None

    @property
    def shown_rows(self) -> tuple[Row, ...]:
        """The rows that the filter shows, in their order."""
        return tuple(self._arranged.rows[n] for n in self._arranged.shown)

    @property
    def marks(self) -> frozenset[Hashable]:
        """The keys of the marked rows, of those too that the filter hides."""
        return self._marks

    @property
    def marked_rows(self) -> tuple[Row, ...]:
        """The marked rows in the order that they came in, those too that the filter hides."""
        key = self._wanted.key
        return tuple(row for row in self._arranged.rows if key(row) in self._marks) if self._marks else ()

    @property
    def counts(self) -> RowCounts:
        return self._counts

    @property
    def sort_state(self) -> tuple[str | None, bool]:
        """The column that sorts, None for the order that the rows came in; and whether from high to low."""
        sort = self._wanted.sort
        return (None if sort is None else sort.id), self._wanted.reverse

    @property
    def filter(self) -> RowFilter | None:
        return self._wanted.filter

    @property
    def grouping(self) -> str | None:
        return None if self._wanted.grouping is None else self._wanted.grouping.id

    def sort_by(self, column: str | None, reverse: bool = False) -> None:
        """Sorts by that column; None: in the order that the rows came in. Raises KeyError for an unknown one."""
        found = None if column is None else {c.id: c for c in self.columns}[column]
        self._wish(replace(self._wanted, sort=found, reverse=reverse and found is not None))
        self.post_message(table_messages.SortChanged(self, column, self._wanted.reverse))

    def sort_next(self, step: int = 1) -> None:
        """Sorts by the next column; past the last one, in the order that the rows came in."""
        choices = [None, *(column.id for column in self.columns)]
        now = choices.index(self.sort_state[0])
        self.sort_by(choices[(now + step) % len(choices)])

    def reverse_sort(self) -> None:
        """From high to low, or back."""
        column, reverse = self.sort_state
        if column is not None:
            self.sort_by(column, not reverse)

    def filter_by(self, wanted: RowFilter | None) -> None:
        """Shows the rows that pass; one that cannot be looked for (:meth:`RowFilter.problem`) changes nothing."""
        if wanted is not None and not wanted.pattern:
            wanted = None
        if wanted is not None and wanted.problem() is not None:
            return
        if wanted != self._wanted.filter:
            self._wish(replace(self._wanted, filter=wanted))

    def group_by(self, grouping: str | None) -> None:
        """Puts the rows under headings; None: without. Raises KeyError for an unknown grouping."""
        found = None if grouping is None else {g.id: g for g in self.groupings}[grouping]
        if found is not self._wanted.grouping:
            self._wish(replace(self._wanted, grouping=found, folded=frozenset()))

    def toggle_group(self) -> None:
        """Folds or unfolds the group that the cursor is in."""
        group = self._arranged.heading(self._cursor.number) if self._arranged.lines else None
        if group is not None:
            self._wish(replace(self._wanted, folded=self._wanted.folded ^ {group.label}))

    def fold_all(self, fold: bool) -> None:
        """Folds every group, or none."""
        labels = frozenset(group.label for group in self._arranged.groups) if fold else frozenset()
        if self._wanted.grouping is not None:
            self._wish(replace(self._wanted, folded=labels))

    def set_marks(self, keys: frozenset[Hashable]) -> None:
        """Marks exactly the rows of these keys."""
        if keys == self._marks:
            return
        self._marks = keys
        self._marked_by_group.clear()
        self.post_message(table_messages.MarksChanged(self, keys))
        self._count()
        self._repaint()

    def mark_all_shown(self) -> None:
        """Marks every row that the filter shows, in folded groups too."""
        arranged = self._arranged
        few = len(arranged.shown) <= AT_ONCE
        self._run("marking", keys_in_slices(arranged, arranged.shown), self._add_marks, now=few)

    def _add_marks(self, keys: frozenset[Hashable]) -> None:
        self.set_marks(self._marks | keys)

    # How it comes about

    def _wish(self, wanted: TableQuery[Row]) -> None:
        self._wanted = wanted
        self._rearrange()

    def _rearrange(self) -> None:
        if self.is_attached:
            cursor = self.cursor_key if self._rows is not self._arranged.rows else None
            wanted = replace(self._wanted, marks=self._marks, cursor=cursor)
            self._run("arranging", arrange(self._rows, wanted), self._put, now=len(self._rows) <= AT_ONCE)

    def _put(self, arranged: Arrangement[Row]) -> None:
        """Takes the place of the former picture; what was at the cursor, or at the top, stays where it was."""
        before, refilled = self._arranged, arranged.rows is not self._arranged.rows
        old, top = self._cursor, self.scroll_offset.y
        cursor, there = followed(old, before, arranged)
        self._arranged, self._cursor = arranged, cursor
        wanted = self._wanted.filter
        self._finder = None if wanted is None or wanted.inverse else wanted.finder()
        self._marked_by_group.clear()
        self._resized()
        if refilled:
            self._needs = {}
            self._drop_marks(arranged)
        if not there and refilled and old.key is not None and self._hidden(arranged, old.key) is False:
            self.post_message(table_messages.RowGone(self, old.key, cursor.key))
        self._count()
        self._keep_place(before, old, top)
        self._repaint()
        self._tell_cursor()

    def _keep_place(self, before: Arrangement[Row], old: Cursor, top: int) -> None:
        """The cursor's line stays where it was on the screen. Where somebody had scrolled it away, the topmost line
        stays in a refill; what they wished themselves shows the cursor.
        """
        if top <= old.number < top + max(self.size.height - 1, 1):
            self._scroll(self._cursor.number - (old.number - top))
        elif before.lines and before.rows is not self._arranged.rows:
            seen = cursor_at(before, top)
            self._scroll(followed(seen, before, self._arranged)[0].number)
            return
        self._show_cursor()

    def _scroll(self, top: int) -> None:
        """Shows the lines from ``top`` on, at once; by force, since the scroll bar may not be there yet."""
        self.scroll_to(y=max(top, 0), animate=False, force=True)

    def _hidden(self, arranged: Arrangement[Row], key: Hashable) -> bool:
        """Whether a row that is not on the lines is only hidden by filter or fold."""
        return any(arranged.key(row) == key for row in arranged.rows)

    def _drop_marks(self, arranged: Arrangement[Row]) -> None:
        """Marks of rows that are gone; those that came while it was arranged were not looked for."""
        late = self._marks - arranged.looked_for
        found = arranged.marked | (late & keys_of(arranged, range(len(arranged.rows))) if late else late)
        gone = self._marks - found
        if gone:
            self._marks &= found
            self.post_message(table_messages.MarksGone(self, gone))
            self.post_message(table_messages.MarksChanged(self, self._marks))

    def _count(self) -> None:
        # What is marked on the screen is shown; only an arrangement hides marks.
        hidden = len(self._arranged.hidden & self._marks) if self._marks else 0
        counts = RowCounts(len(self._rows), len(self._arranged.shown), len(self._marks), hidden)
        if counts != self._counts:
            self._counts = counts
            self.post_message(table_messages.Counted(self, counts))

    def _marked_in(self, group: Group) -> int:
        if not self._marks:
            return 0
        if group.label not in self._marked_by_group:
            key, rows = self._arranged.key, self._arranged.rows
            self._marked_by_group[group.label] = sum(1 for n in group.rows if key(rows[n]) in self._marks)
        return self._marked_by_group[group.label]

    def _tell_cursor(self) -> None:
        told = (self.cursor_key, self.cursor_row)
        if told != self._told:
            self._told = told
            self.post_message(table_messages.CursorMoved(self, *told))

    # What the drawing half does

    def _repaint(self) -> None:
        raise NotImplementedError

    def _resized(self) -> None:
        raise NotImplementedError

    def _show_cursor(self) -> None:
        raise NotImplementedError
