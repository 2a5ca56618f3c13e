"""Where a table draws its columns, and how its rows are grouped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

from rich.cells import cell_len

from widgets.fields import Field, Row, natural


@dataclass(frozen=True, slots=True)
class Grouping(Generic[Row]):
    """Rows under headings: ``labels`` names every group a row stands in, ``order`` sorts the groups. ``total`` says
    what the rows of a group come to, behind their number.
    """

    id: str
    title: str
    labels: Callable[[Row], tuple[str, ...]]
    order: Callable[[str], Any] = natural
    total: Callable[[Sequence[Row]], str] | None = None


GAP = 2
LEAST_FLEX = 14


class PlacedColumn(NamedTuple):
    """A column from ``start`` on, ``width`` columns wide."""

    column: Field[Any]
    start: int
    width: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns that are drawn, and those that there is no room for."""

    placed: tuple[PlacedColumn, ...]
    dropped: tuple[Field[Any], ...]

    def column_at(self, x: int) -> Field[Any] | None:
        """The column drawn at ``x``, the gap behind it counted in."""
        return next((p.column for p in self.placed if p.start <= x < p.start + p.width + GAP), None)

    def left_out(self, row: Any) -> tuple[tuple[str, str], ...]:
        """Title and text of the cells of ``row`` that are not drawn, without empty ones and those shown below."""
        cells = ((c.title, c.cell(row)) for c in self.dropped if not c.shown_below)
        return tuple((title, text) for title, text in cells if text)


def lay_out(columns: Sequence[Field[Any]], needs: Mapping[str, int], width: int, start: int = 0) -> Layout:
    """Places ``columns`` in ``width`` screen columns from ``start``. ``needs`` is how wide each is as it is.

    A column that may be dropped and has been empty in all that was seen is not drawn, and not missed.
    """
    empty = [c for c in columns if c.priority > 0 and not needs.get(c.id, 0)] if any(needs.values()) else []
    shown = [column for column in columns if column not in empty]
    while len(shown) > 1 and _needed(shown, needs) > width - start:
        droppable = [column for column in shown if column.priority > 0]
        if not droppable:
            break
        shown.remove(max(reversed(droppable), key=lambda column: column.priority))
    placed = []
    spare = width - start - sum(_width(c, needs) for c in shown if not c.flex) - GAP * (len(shown) - 1)
    flexible = [column for column in shown if column.flex]
    for column in shown:
        wide = _width(column, needs)
        if column.flex:
            wide = max(min(wide, spare // len(flexible)), 1)
            flexible, spare = flexible[1:], spare - wide
        placed.append(PlacedColumn(column, start, wide))
        start += wide + GAP
    dropped = tuple(column for column in columns if column not in shown and column not in empty)
    return Layout(tuple(placed), dropped)


def _needed(columns: Sequence[Field[Any]], needs: Mapping[str, int]) -> int:
    widths = (
        min(_width(c, needs), max(LEAST_FLEX, c.width)) if c.flex else _width(c, needs) for c in columns
    )
    return sum(widths) + GAP * (len(columns) - 1)


def _width(column: Field[Any], needs: Mapping[str, int]) -> int:
    # One more than the title for the arrow that shows the order.
    return max(needs.get(column.id, 0), column.width, cell_len(column.title) + 1)
