"""One line of a table as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len

from recovery.wording.quantity_text import counted, printable
from widgets.table.column_layout import Layout
from widgets.table.row_arrangement import Arrangement, Group
from widgets.table.row_filter import spans
from widgets.table.table_column import TableColumn
from widgets.text import Line, Piece, Tone, fit

CURSOR = "►"
MARK = "*"
GUTTER = 3
"""The cursor's sign, the mark's sign, and a blank."""


class LineMarkers(NamedTuple):
    """What stands before a line."""

    cursor: bool
    marked: bool


def header(layout: Layout, width: int, sort: str | None, *, reverse: bool) -> Line:
    """The titles, with an arrow at the column that sorts, and how many columns there is no room for.

    That number stands behind the last title, or before the first where there is no room behind.
    """
    last = layout.placed[-1] if layout.placed else None
    room = width - (0 if last is None else last.start + last.width)
    behind = next((text for text in _more(len(layout.dropped)) if len(text) <= room), "")
    before = f"+{len(layout.dropped)}" if layout.dropped and not behind else ""
    pieces = [Piece(before.ljust(GUTTER)[:GUTTER], Tone.DIM)]
    used = GUTTER
    for column, start, wide in layout.placed:
        arrow = ("▼" if reverse else "▲") if column.id == sort else ""
        title = column.title + arrow
        shown = title.rjust(wide)[:wide] if column.right else fit(title, wide)
        pieces += [Piece(" " * (start - used)), Piece(shown, Tone.KEY if arrow else Tone.HEAD)]
        used = start + wide
    return (*pieces, Piece(behind, Tone.DIM))


def _more(dropped: int) -> tuple[str, ...]:
    """How many columns there is no room for, in words that get shorter."""
    if not dropped:
        return ()
    plural = "" if dropped == 1 else "s"
    return f" +{dropped} column{plural}", f" +{dropped} col{plural}"


def row_line(row: Any, layout: Layout, signs: LineMarkers, finder: re.Pattern[str] | None) -> Line:
    """A row's cells."""
    pieces = [_gutter(signs)]
    used = GUTTER
    for column, start, wide in layout.placed:
        text = printable(column.text(row))
        pieces.append(Piece(" " * (start - used)))
        pieces.extend(_highlighted(_cell(text, wide, column), column.tone_of(row), finder))
        used = start + wide
    return tuple(pieces)


def _cell(text: str, wide: int, column: TableColumn[Any]) -> str:
    if column.right:
        return text.rjust(wide) if cell_len(text) <= wide else "…".rjust(wide)
    return fit(text, wide)


def group_line(group: Group, noun: str, marked: int, signs: LineMarkers) -> Line:
    """A heading with its count."""
    sign = "▸" if group.folded else "▾"
    left = Piece(f"{sign} {printable(group.label)}", Tone.STRONG)
    count = Piece(f"  {counted(len(group.rows), noun)}", Tone.DIM)
    marks = Piece(f", {marked:,} marked", Tone.KEY) if marked else Piece("")
    return (_gutter(signs), left, count, marks)


def _gutter(signs: LineMarkers) -> Piece:
    return Piece((CURSOR if signs.cursor else " ") + (MARK if signs.marked else " ") + " ", Tone.KEY)


def _highlighted(cell: str, tone: Tone, finder: re.Pattern[str] | None) -> list[Piece]:
    found = [] if finder is None else spans(cell, finder)
    pieces, done = [], 0
    for start, end in found:
        pieces += [Piece(cell[done:start], tone), Piece(cell[start:end], Tone.MATCH)]
        done = end
    pieces.append(Piece(cell[done:], tone))
    return [piece for piece in pieces if piece.text]


def needed(columns: Sequence[TableColumn[Any]], rows: Sequence[Any]) -> dict[str, int]:
    """How wide each column is in ``rows``."""
    return {
        column.id: max((cell_len(printable(column.text(row))) for row in rows), default=0)
        for column in columns
    }


def visible_rows(arranged: Arrangement[Any], top: int, height: int) -> list[Any]:
    """The rows on the lines from ``top`` on."""
    return [arranged.rows[at] for at in arranged.lines[top : top + height] if at >= 0]
