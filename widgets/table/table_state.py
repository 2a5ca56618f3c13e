"""What a table shows, where its cursor is and what is marked, as one value. Every change is a new value."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple

from widgets.fields import Row
from widgets.table.row_arrangement import Arrangement, Group, GroupKey

NEIGHBOURS = 200
"""How many lines below and above are searched for a row that is left."""


class Cursor(NamedTuple):
    """The line of the cursor and what stands there; ``key`` None in an empty table.

    ``label`` is the group it stands in: a row may stand in several.
    """

    number: int
    key: Hashable | None
    label: str | None = None


def cursor_at(arranged: Arrangement[Any], number: int) -> Cursor:
    """The cursor on line ``number``, or the last one before it that there is."""
    if not arranged.lines:
        return Cursor(0, None)
    number = max(0, min(number, len(arranged.lines) - 1))
    group = arranged.heading(number)
    return Cursor(number, arranged.identity(number), None if group is None else group.label)


def followed(cursor: Cursor, before: Arrangement[Any], after: Arrangement[Any]) -> tuple[Cursor, bool]:
    """The cursor after the lines changed, and whether what it stood on is still there.

    Where it is gone the cursor goes to its nearest neighbour that is left, at or below it first.
    """
    if cursor.key is None:
        return cursor_at(after, cursor.number), True
    found = _same_row(cursor, before, after)
    if found is None:
        found = _find(after, cursor)
    if found is not None:
        return cursor_at(after, found), True
    return cursor_at(after, _nearest(cursor.number, before, after)), False


def _same_row(cursor: Cursor, before: Arrangement[Any], after: Arrangement[Any]) -> int | None:
    """Where the row's number is known, its line is found by that, and much quicker.

    It is known where the rows are the same and stand only otherwise, and where it was looked for beforehand.
    """
    if after.groups or before.row(cursor.number) is None:
        return None
    row = before.lines[cursor.number] if before.rows is after.rows else after.sought_row
    if row is None or (before.rows is not after.rows and after.sought != cursor.key):
        return None
    try:
        return after.lines.index(row)
    except ValueError:
        return None


def _nearest(number: int, before: Arrangement[Any], after: Arrangement[Any]) -> int:
    """The line of the nearest of what stood around line ``number`` and is left; 0 where none of it is."""
    group = before.group(number)
    if group is not None and group.rows:
        found = after.find(before.key(before.rows[group.rows[0]]))
        if found is not None:
            return found
    below = range(number + 1, min(number + 1 + NEIGHBOURS, len(before.lines)))
    above = range(number - 1, max(number - 1 - NEIGHBOURS, -1), -1)
    rank = {before.identity(n): place for place, n in enumerate((*below, *above))}
    lines = ((rank.get(after.identity(n)), n) for n in range(len(after.lines))) if rank else ()
    return min(((place, n) for place, n in lines if place is not None), default=(0, 0))[1]


def _find(after: Arrangement[Any], cursor: Cursor) -> int | None:
    if after.groups and cursor.label is not None and not isinstance(cursor.key, GroupKey):
        start = after.find(GroupKey(cursor.label))
        if start is not None:
            group = after.group(start)
            size = 0 if group is None or group.folded else len(group.rows)
            for number in range(start + 1, start + 1 + size):
                if after.identity(number) == cursor.key:
                    return number
            if group is not None and group.folded and any(_is(after, n, cursor.key) for n in group.rows):
                return start
    return after.find(cursor.key, cursor.number)


def _is(arranged: Arrangement[Any], row: int, key: Hashable) -> bool:
    return arranged.key(arranged.rows[row]) == key


def keys_of(arranged: Arrangement[Any], rows: Iterable[int]) -> frozenset[Hashable]:
    """The identities of rows by their numbers."""
    return frozenset(arranged.key(arranged.rows[n]) for n in rows)


def between(arranged: Arrangement[Any], one: int, other: int) -> frozenset[Hashable]:
    """The identities of the rows on the lines from ``one`` to ``other``, both included."""
    first, last = sorted((one, other))
    return keys_of(arranged, (at for at in arranged.lines[first : last + 1] if at >= 0))


NO_CURSOR = Cursor(0, None)


class RowCounts(NamedTuple):
    """How many rows there are, are shown, are marked, and are marked though they are not shown."""

    rows: int
    shown: int
    marked: int
    hidden_marks: int


@dataclass(frozen=True, slots=True)
class TableState(Generic[Row]):
    """``marks`` are the keys of the marked rows, including those that the filter hides. ``anchor`` is the key
    that was marked last: a range starts there.
    """

    arrangement: Arrangement[Row]
    cursor: Cursor = NO_CURSOR
    marks: frozenset[Hashable] = frozenset()
    anchor: Hashable | None = None

    @property
    def cursor_key(self) -> Hashable | None:
        """The key of the row under the cursor; None on a heading and in an empty table."""
        return None if isinstance(self.cursor.key, GroupKey) else self.cursor.key

    @property
    def cursor_row(self) -> Row | None:
        """The row under the cursor; None on a heading and in an empty table."""
        return self.arrangement.row(self.cursor.number) if self.arrangement.lines else None

    @property
    def cursor_group(self) -> Group | None:
        """The group that the cursor is in; None without groups."""
        return self.arrangement.heading(self.cursor.number) if self.arrangement.lines else None

    @property
    def shown_rows(self) -> tuple[Row, ...]:
        """The rows that the filter shows, in their order."""
        return tuple(self.arrangement.rows[n] for n in self.arrangement.shown)

    @property
    def marked_rows(self) -> tuple[Row, ...]:
        """The marked rows in the order in which they came."""
        key, marks = self.arrangement.key, self.marks
        return tuple(row for row in self.arrangement.rows if key(row) in marks) if marks else ()

    def counts(self, rows: int) -> RowCounts:
        """The numbers of rows; ``rows`` is how many the table was given last."""
        # Only a new arrangement hides marks: what is marked on the screen is shown.
        hidden = len(self.arrangement.hidden & self.marks) if self.marks else 0
        return RowCounts(rows, len(self.arrangement.shown), len(self.marks), hidden)

    def with_cursor(self, number: int) -> TableState[Row]:
        """The cursor on line ``number``, or on the last line before it."""
        return replace(self, cursor=cursor_at(self.arrangement, number))

    def with_marks(self, keys: frozenset[Hashable]) -> TableState[Row]:
        """Exactly these keys are marked."""
        return replace(self, marks=keys)

    def unmarked(self) -> TableState[Row]:
        return replace(self, marks=frozenset(), anchor=None)

    def mark_toggled(self) -> TableState[Row]:
        """The row under the cursor is marked, or no longer; on a heading, all rows of the group."""
        if self.cursor.key is None:
            return self
        group = self.arrangement.group(self.cursor.number)
        keys = frozenset([self.cursor.key]) if group is None else keys_of(self.arrangement, group.rows)
        marks = self.marks - keys if keys <= self.marks else self.marks | keys
        return replace(self, marks=marks, anchor=self.cursor.key)

    def range_marked(self) -> TableState[Row]:
        """Every row from the one that was marked last to the cursor is marked."""
        start = None if self.anchor is None else self.arrangement.find(self.anchor, self.cursor.number)
        if start is None:
            return self.mark_toggled()
        return self.with_marks(self.marks | between(self.arrangement, start, self.cursor.number))

    def line_in(self, number: int, arrangement: Arrangement[Row]) -> int:
        """Where line ``number`` stands in ``arrangement``, or its nearest neighbour that is left."""
        cursor = cursor_at(self.arrangement, number)
        return followed(cursor, self.arrangement, arrangement)[0].number


class Rearranged(NamedTuple, Generic[Row]):
    """A state after other lines took the place of the former ones. ``cursor_gone``: the cursor's row is no longer
    among the rows. ``marks_gone`` are marked keys that are no longer among them, and so are marked no longer.
    """

    state: TableState[Row]
    cursor_gone: bool
    marks_gone: frozenset[Hashable]


def rearranged(before: TableState[Row], arrangement: Arrangement[Row]) -> Rearranged[Row]:
    """``before`` with these lines: cursor and marks stay on their rows, by key."""
    cursor, found = followed(before.cursor, before.arrangement, arrangement)
    state = replace(before, arrangement=arrangement, cursor=cursor)
    if arrangement.rows is before.arrangement.rows:
        return Rearranged(state, False, frozenset())
    gone = _gone(before.marks, arrangement)
    if gone:
        state = state.with_marks(state.marks - gone)
    key = before.cursor.key
    return Rearranged(state, not found and key is not None and not _has_row(arrangement, key), gone)


def _has_row(arrangement: Arrangement[Row], key: Hashable) -> bool:
    """Whether a row that is on no line is only hidden, by the filter or in a folded group."""
    return any(arrangement.key(row) == key for row in arrangement.rows)


def _gone(marks: frozenset[Hashable], arrangement: Arrangement[Row]) -> frozenset[Hashable]:
    """The marks without a row. Those that were set while the rows were arranged have not been looked for yet."""
    late = marks - arrangement.looked_for
    found = keys_of(arrangement, range(len(arrangement.rows))) if late else frozenset()
    return marks - arrangement.marked - (late & found)
