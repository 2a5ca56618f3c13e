"""A table of a pipeline's result, drawn for the terminal or for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from console.output.bar_table import bar, by_id, rendered

_Row = TypeVar("_Row")


class Share(NamedTuple):
    """A cell that is drawn as a bar: ``value`` of ``most``, at most ``cells`` wide in the terminal."""

    value: float
    most: float
    cells: int = 18


ResultRow: TypeAlias = Sequence[str | Share]


class ResultTable(NamedTuple):
    """``columns`` of shares have no heading. ``ids_first``: the first column holds ids, which are never broken."""

    title: str
    columns: Sequence[str]
    rows: Sequence[ResultRow]
    ids_first: bool = False


ResultPart: TypeAlias = str | ResultTable
"""A line of text, or a table."""


def terminal_lines(part: ResultPart) -> Iterator[str]:
    """The part as lines; an empty one stands before a table."""
    if isinstance(part, str):
        yield part
        return
    rows = [[bar(*cell) if isinstance(cell, Share) else cell for cell in row] for row in part.rows]
    yield ""
    yield from (by_id if part.ids_first else rendered)(part.title, part.columns, rows)


def first_rows(found: Sequence[_Row], rows: int) -> Sequence[_Row]:
    """The first ``rows``, 0 for all."""
    return found[:rows] if rows else found
