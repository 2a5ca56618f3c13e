"""The lines of a table as drawn on the screen: widths, layout, marks of groups, matches of the filter."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len

from recovery.wording.quantity_text import counted, printable
from widgets.fields import Field
from widgets.table.row_arrangement import Arrangement, Group, TableQuery
from widgets.table.row_filter import spans
from widgets.table.table_column import Layout, lay_out
from widgets.table.table_state import TableState
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
        pieces += [Piece(" " * (start - used)), Piece(shown, Tone.CURSOR if arrow else Tone.HEAD)]
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
        text = printable(column.cell(row))
        pieces.append(Piece(" " * (start - used)))
        pieces.extend(_highlighted(_cell(text, wide, column), column.tone_of(row), finder))
        used = start + wide
    return tuple(pieces)


def _cell(text: str, wide: int, column: Field[Any]) -> str:
    if column.right:
        return text.rjust(wide) if cell_len(text) <= wide else "…".rjust(wide)
    return fit(text, wide)


def group_line(group: Group, noun: str, marked: int, signs: LineMarkers) -> Line:
    """A heading with its count."""
    sign = "▸" if group.folded else "▾"
    left = Piece(f"{sign} {printable(group.label)}", Tone.STRONG)
    total = f": {printable(group.total)}" if group.total else ""
    count = Piece(f"  {counted(len(group.rows), noun)}{total}", Tone.DIM)
    marks = Piece(f", {marked:,} marked", Tone.CURSOR) if marked else Piece("")
    return (_gutter(signs), left, count, marks)


def _gutter(signs: LineMarkers) -> Piece:
    return Piece((CURSOR if signs.cursor else " ") + (MARK if signs.marked else " ") + " ", Tone.CURSOR)


def _highlighted(cell: str, tone: Tone, finder: re.Pattern[str] | None) -> list[Piece]:
    found = [] if finder is None else spans(cell, finder)
    pieces, done = [], 0
    for start, end in found:
        pieces += [Piece(cell[done:start], tone), Piece(cell[start:end], Tone.MATCH)]
        done = end
    pieces.append(Piece(cell[done:], tone))
    return [piece for piece in pieces if piece.text]


def needed(columns: Sequence[Field[Any]], rows: Sequence[Any]) -> dict[str, int]:
    """How wide each column is in ``rows``."""
    return {
        column.id: max((cell_len(printable(column.cell(row))) for row in rows), default=0)
        for column in columns
    }


def visible_rows(arranged: Arrangement[Any], top: int, height: int) -> list[Any]:
    """The rows on the lines from ``top`` on."""
    return [arranged.rows[at] for at in arranged.lines[top : top + height] if at >= 0]


class TablePainter:
    """Draws what a :class:`TableState` holds. A column is as wide as the widest cell seen in it, so that no number
    is cut; scrolling never makes it narrower.
    """

    def __init__(self, columns: Sequence[Field[Any]], noun: str) -> None:
        self._columns = columns
        self._noun = noun
        self._needs: dict[str, int] = {}
        self._measured: tuple[Arrangement[Any], int, int] | None = None
        self._matches: re.Pattern[str] | None = None
        self._marked: dict[str, int] = {}
        self._marked_of: tuple[Arrangement[Any], frozenset[Hashable]] | None = None
        self.layout = Layout((), ())

    def forget_widths(self) -> None:
        """Other rows came: widths start anew."""
        self._needs, self._measured = {}, None

    def measure_again(self) -> None:
        """Cells that depend on more than their row may be others."""
        self._measured = None

    def highlight(self, query: TableQuery[Any]) -> None:
        """Highlights what the filter of ``query`` finds."""
        found = query.filter
        plain = found is None or found.inverse or found.problem() is not None
        self._matches = None if found is None or plain else found.finder()

    def lay_out(self, arrangement: Arrangement[Any], top: int, height: int, width: int) -> None:
        """Chooses the columns and their widths by the rows on ``height`` lines from ``top`` on."""
        lines = (arrangement, top, height)
        known = self._measured
        if known is not None and known[0] is arrangement and known[1:] == lines[1:]:
            # A cursor that moves measures nothing again: a cell may count thousands of replicas.
            self.layout = lay_out(self._columns, self._needs, width, GUTTER)
            return
        self._measured = lines
        for column, need in needed(self._columns, visible_rows(arrangement, top, height)).items():
            self._needs[column] = max(self._needs.get(column, 0), need)
        self.layout = lay_out(self._columns, self._needs, width, GUTTER)

    def header(self, query: TableQuery[Any], width: int) -> Line:
        return header(self.layout, width, query.sort_id, reverse=query.reverse)

    def line(self, number: int, state: TableState[Any]) -> tuple[Line, bool]:
        """Line ``number`` of the arrangement, and whether the cursor is on it; an empty line below the last one."""
        arrangement, here = state.arrangement, number == state.cursor.number
        if number >= len(arrangement.lines):
            return (), False
        group = arrangement.group(number)
        if group is not None:
            marked = self._marked_in(group, state)
            return group_line(group, self._noun, marked, LineMarkers(here, marked=False)), here
        signs = LineMarkers(here, arrangement.identity(number) in state.marks)
        return row_line(arrangement.row(number), self.layout, signs, self._matches), here

    def _marked_in(self, group: Group, state: TableState[Any]) -> int:
        """How many rows of the group are marked, counted once for the same lines and marks."""
        if not state.marks:
            return 0
        counted = self._marked_of
        if counted is None or counted[0] is not state.arrangement or counted[1] is not state.marks:
            self._marked, self._marked_of = {}, (state.arrangement, state.marks)
        if group.label not in self._marked:
            key, rows, marks = state.arrangement.key, state.arrangement.rows, state.marks
            self._marked[group.label] = sum(1 for n in group.rows if key(rows[n]) in marks)
        return self._marked[group.label]
