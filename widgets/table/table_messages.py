"""The messages that a table posts. Handler names follow this pattern: ``on_row_table_cursor_moved``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from textual.message import Message
from textual.widget import Widget

from widgets.table.table_state import RowCounts


class TableMessage(Message, namespace="row_table"):
    """Comes from ``table``."""

    def __init__(self, table: Widget) -> None:
        super().__init__()
        self.table = table

    @property
    def control(self) -> Widget:
        return self.table


class CursorMoved(TableMessage, namespace="row_table"):
    """The cursor is on another row, or its row has other values. None on a heading and in an empty table.
    ``by_hand``: the operator moved it; False where the rows changed under it.
    """

    def __init__(self, table: Widget, key: Hashable | None, row: Any, *, by_hand: bool) -> None:
        super().__init__(table)
        self.key = key
        self.row = row
        self.by_hand = by_hand


class Activated(TableMessage, namespace="row_table"):
    """Enter or a double click on a row."""

    def __init__(self, table: Widget, key: Hashable, row: Any) -> None:
        super().__init__(table)
        self.key = key
        self.row = row


class RowGone(TableMessage, namespace="row_table"):
    """The row under the cursor is no longer there. The cursor is on ``now``; nothing else was done. ``before`` are
    all rows that were there.
    """

    def __init__(
        self, table: Widget, key: Hashable, row: Any, now: Hashable | None, before: Sequence[Any] = ()
    ) -> None:
        super().__init__(table)
        self.key = key
        self.row = row
        self.now = now
        self.before = before


class MarksChanged(TableMessage, namespace="row_table"):
    """Other rows are marked."""

    def __init__(self, table: Widget, marks: frozenset[Hashable]) -> None:
        super().__init__(table)
        self.marks = marks


class MarksGone(TableMessage, namespace="row_table"):
    """Marked rows that are no longer there, and so are marked no longer."""

    def __init__(self, table: Widget, keys: frozenset[Hashable]) -> None:
        super().__init__(table)
        self.keys = keys


class Counted(TableMessage, namespace="row_table"):
    """The numbers of rows changed."""

    def __init__(self, table: Widget, counts: RowCounts) -> None:
        super().__init__(table)
        self.counts = counts


class Narrowed(TableMessage, namespace="row_table"):
    """There is room for other columns than before."""
