"""Rows filtered, sorted and grouped, in slices, so that 200,000 rows never block the screen.

Each function is a generator that yields between slices and returns its result. Rows are sorted in runs, which
``list.sort`` then merges: it finds two sorted runs and only merges them. The order is stable.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple

from widgets.fields import Field, Row
from widgets.table.row_filter import RowFilter
from widgets.table.table_column import Grouping

SLICE = 2_000
RUN = 4_096


class Group(NamedTuple):
    """A heading: its label, the row numbers below it, whether they are folded away, and what they come to."""

    label: str
    rows: Sequence[int]
    folded: bool
    total: str = ""


class GroupKey(NamedTuple):
    """The identity of a heading."""

    label: str


@dataclass(frozen=True, slots=True)
class TableQuery(Generic[Row]):
    """How to arrange the rows. ``folded`` are the labels of the folded groups. ``marks`` are the keys of the marked
    rows, and ``cursor`` the key of the row under the cursor (None: none): they are looked up on the way.
    """

    key: Callable[[Row], Hashable]
    search: Callable[[Row], str]
    filter: RowFilter | None = None
    sort: Field[Row] | None = None
    reverse: bool = False
    grouping: Grouping[Row] | None = None
    folded: frozenset[str] = frozenset()
    marks: frozenset[Hashable] = frozenset()
    cursor: Hashable | None = None

    @property
    def sort_id(self) -> str | None:
        """The column that sorts; None: the order in which the rows came."""
        return None if self.sort is None else self.sort.id

    def sorted_by(self, column: Field[Row] | None, reverse: bool = False) -> TableQuery[Row]:
        """Sorted by that column; None: in the order in which the rows came."""
        return replace(self, sort=column, reverse=reverse and column is not None)

    def sorted_by_click(self, column: Field[Row]) -> TableQuery[Row]:
        """After a click on the heading: sorted by that column, and the other way round if it was so already."""
        return self.sorted_by(column, column.id == self.sort_id and not self.reverse)

    def filtered_by(self, wanted: RowFilter | None) -> TableQuery[Row]:
        """With that filter; an empty one counts as none."""
        if wanted is not None and not wanted.pattern:
            wanted = None
        return self if wanted == self.filter else replace(self, filter=wanted)

    def grouped_by(self, grouping: Grouping[Row] | None) -> TableQuery[Row]:
        """Under these headings, all of them unfolded; None: without headings."""
        return self if grouping is self.grouping else replace(self, grouping=grouping, folded=frozenset())

    def with_folded(self, labels: frozenset[str]) -> TableQuery[Row]:
        """With exactly these groups folded."""
        return replace(self, folded=labels)

    def toggled(self, label: str) -> TableQuery[Row]:
        """With the group of that label folded, or unfolded if it was folded."""
        return replace(self, folded=self.folded ^ {label})


@dataclass(frozen=True, slots=True)
class Arrangement(Generic[Row]):
    """The lines of the table: in ``lines`` a row's number in ``rows``, or -1 - g for the heading ``groups[g]``.

    ``shown`` are the rows that the filter keeps, in order, each once; a row may stand in several groups. Of the
    keys ``looked_for``, ``marked`` have a row, and those in ``hidden`` one that is not shown.
    ``sought_row`` is the number of the row with the key ``sought``, None where there is none.
    """

    rows: Sequence[Row]
    lines: Sequence[int]
    shown: Sequence[int]
    groups: Sequence[Group]
    key: Callable[[Row], Hashable]
    looked_for: frozenset[Hashable] = frozenset()
    marked: frozenset[Hashable] = frozenset()
    hidden: frozenset[Hashable] = frozenset()
    sought: Hashable | None = None
    sought_row: int | None = None

    def identity(self, number: int) -> Hashable:
        """The key of the row, or of the heading, on line ``number``."""
        at = self.lines[number]
        return self.key(self.rows[at]) if at >= 0 else GroupKey(self.groups[-1 - at].label)

    def row(self, number: int) -> Row | None:
        """The row on line ``number``; None for a heading."""
        at = self.lines[number]
        return self.rows[at] if at >= 0 else None

    def group(self, number: int) -> Group | None:
        """The heading on line ``number``; None for a row."""
        at = self.lines[number]
        return None if at >= 0 else self.groups[-1 - at]

    def heading(self, number: int) -> Group | None:
        """The group that line ``number`` stands in, or heads."""
        if not self.groups:
            return None
        while number >= 0:
            if self.lines[number] < 0:
                return self.groups[-1 - self.lines[number]]
            number -= 1
        return None

    def find(self, wanted: Hashable, near: int = 0) -> int | None:
        """The line of that identity, ``near`` first; None where there is none."""
        if near < len(self.lines) and self.identity(near) == wanted:
            return near
        if isinstance(wanted, GroupKey):
            heads = (n for n, at in enumerate(self.lines) if at < 0)
            return next((n for n in heads if self.identity(n) == wanted), None)
        key, rows = self.key, self.rows
        return next((n for n, at in enumerate(self.lines) if at >= 0 and key(rows[at]) == wanted), None)


def arrange(rows: Sequence[Row], wanted: TableQuery[Row]) -> Generator[None, None, Arrangement[Row]]:
    """Filters, groups and sorts the rows as the query asks; yields between slices."""
    passing = yield from _filtered(rows, wanted)
    if wanted.sort is not None:
        passing = yield from _sorted(rows, passing, wanted.sort, wanted.reverse)
    marked, hidden = yield from _marked(rows, passing, wanted)
    lines: Sequence[int] = passing
    groups: Sequence[Group] = ()
    if wanted.grouping is not None:
        lines, groups = yield from _grouped(rows, passing, wanted, wanted.grouping)
    row = yield from _sought(rows, wanted)
    return Arrangement(
        rows, lines, passing, groups, wanted.key, wanted.marks, marked, hidden, wanted.cursor, row
    )


def _sought(rows: Sequence[Row], wanted: TableQuery[Row]) -> Generator[None, None, int | None]:
    """The number of the row that the cursor is on."""
    if wanted.cursor is None:
        return None
    key, cursor = wanted.key, wanted.cursor
    for start in range(0, len(rows), SLICE):
        for n in range(start, min(start + SLICE, len(rows))):
            if key(rows[n]) == cursor:
                return n
        yield
    return None


def _filtered(rows: Sequence[Row], wanted: TableQuery[Row]) -> Generator[None, None, Sequence[int]]:
    if wanted.filter is None or not wanted.filter.pattern:
        return range(len(rows))
    if wanted.filter.problem() is not None:
        return ()  # all rows would look like what was asked for, and could be marked
    keeps, text = wanted.filter.keeps(), wanted.search
    passing: list[int] = []
    for start in range(0, len(rows), SLICE):
        passing.extend(n for n in range(start, min(start + SLICE, len(rows))) if keeps(text(rows[n])))
        yield
    return passing


def _sorted(
    rows: Sequence[Row], passing: Sequence[int], column: Field[Row], reverse: bool
) -> Generator[None, None, Sequence[int]]:
    values: dict[int, Any] = {}
    for start in range(0, len(passing), SLICE):
        values.update((n, column.sort_key(rows[n])) for n in passing[start : start + SLICE])
        yield
    runs = []
    for start in range(0, len(passing), RUN):
        runs.append(sorted(passing[start : start + RUN], key=values.__getitem__, reverse=reverse))
        yield
    while len(runs) > 1:
        joined = []
        for left in range(0, len(runs), 2):
            pair = [n for run in runs[left : left + 2] for n in run]
            pair.sort(key=values.__getitem__, reverse=reverse)
            joined.append(pair)
            yield
        runs = joined
    return runs[0] if runs else ()


def _grouped(
    rows: Sequence[Row], passing: Sequence[int], wanted: TableQuery[Row], grouping: Grouping[Row]
) -> Generator[None, None, tuple[Sequence[int], Sequence[Group]]]:
    members: dict[str, list[int]] = {}
    for start in range(0, len(passing), SLICE):
        for n in passing[start : start + SLICE]:
            for label in grouping.labels(rows[n]):
                members.setdefault(label, []).append(n)
        yield
    labels = sorted(members, key=grouping.order)
    groups: list[Group] = []
    for label in labels:
        numbers = members[label]
        total = "" if grouping.total is None else grouping.total([rows[n] for n in numbers])
        groups.append(Group(label, numbers, label in wanted.folded, total))
        if len(groups) % 50 == 0 or len(numbers) > SLICE:
            yield
    lines: list[int] = []
    for number, group in enumerate(groups):
        lines.append(-1 - number)
        if not group.folded:
            lines.extend(group.rows)
        if len(lines) % SLICE == 0:
            yield
    return lines, groups


def keys_in_slices(
    arranged: Arrangement[Row], numbers: Sequence[int]
) -> Generator[None, None, frozenset[Hashable]]:
    """The identities of the rows of these numbers."""
    key, rows = arranged.key, arranged.rows
    keys: set[Hashable] = set()
    for start in range(0, len(numbers), SLICE):
        keys.update(key(rows[n]) for n in numbers[start : start + SLICE])
        yield
    return frozenset(keys)


def _marked(
    rows: Sequence[Row], passing: Sequence[int], wanted: TableQuery[Row]
) -> Generator[None, None, tuple[frozenset[Hashable], frozenset[Hashable]]]:
    """The marked keys that have a row, and those of them that are not shown."""
    if not wanted.marks:
        return frozenset(), frozenset()
    there = yield from _keys_among(rows, range(len(rows)), wanted)
    if len(passing) == len(rows):
        return there, frozenset()
    shown = yield from _keys_among(rows, passing, wanted)
    return there, there - shown


def _keys_among(
    rows: Sequence[Row], numbers: Sequence[int], wanted: TableQuery[Row]
) -> Generator[None, None, frozenset[Hashable]]:
    key, marks = wanted.key, wanted.marks
    found: set[Hashable] = set()
    for start in range(0, len(numbers), SLICE):
        found.update(k for n in numbers[start : start + SLICE] if (k := key(rows[n])) in marks)
        yield
    return frozenset(found)
