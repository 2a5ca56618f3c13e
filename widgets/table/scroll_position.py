"""Which line of a table is the topmost on the screen. Pure functions; ``body`` is the lines below the heading."""

from __future__ import annotations

from widgets.table.table_column import Row
from widgets.table.table_state import TableState


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
