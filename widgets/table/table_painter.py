"""The lines of a table as drawn on the screen: widths, layout, marks of groups, matches of the filter."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

from widgets.table.column_layout import Layout, lay_out
from widgets.table.row_arrangement import Arrangement, Group, TableQuery
from widgets.table.table_column import TableColumn
from widgets.table.table_lines import GUTTER, LineMarkers, group_line, header, needed, row_line, visible_rows
from widgets.table.table_state import TableState
from widgets.text import Line


class TablePainter:
    """Draws what a :class:`TableState` holds. A column is as wide as the widest cell seen in it, so that no number
    is cut; scrolling never makes it narrower.
    """

    def __init__(self, columns: Sequence[TableColumn[Any]], noun: str) -> None:
        self._columns = columns
        self._noun = noun
        self._needs: dict[str, int] = {}
        self._matches: re.Pattern[str] | None = None
        self._marked: dict[str, int] = {}
        self._marked_of: tuple[Arrangement[Any], frozenset[Hashable]] | None = None
        self.layout = Layout((), ())

    def forget_widths(self) -> None:
        """Other rows came: widths start anew."""
        self._needs = {}

    def highlight(self, query: TableQuery[Any]) -> None:
        """Highlights what the filter of ``query`` finds."""
        found = query.filter
        plain = found is None or found.inverse or found.problem() is not None
        self._matches = None if found is None or plain else found.finder()

    def lay_out(self, arrangement: Arrangement[Any], top: int, height: int, width: int) -> None:
        """Chooses the columns and their widths by the rows on ``height`` lines from ``top`` on."""
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
