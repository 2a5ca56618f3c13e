"""The position of the cursor and the marked rows, by identity: a refresh never moves either onto another row."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

from widgets.table.row_arrangement import Arrangement, GroupKey

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
