"""What a table shows of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from widgets.text import Tone

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class TableColumn(Generic[Row]):
    """One column. ``text`` is the cell; ``sort`` what it is sorted by (default: the text).

    ``priority`` 0 is never dropped; where the table is too narrow, the highest goes first. ``flex``: takes what
    width is left, and loses its middle where that is too little; every other column is as wide as what is seen in
    it, so that no number is cut. ``width`` is the least it takes. ``export`` is the value for CSV and JSON
    (default: the text). ``shown_below``: the details below the table show it in any case.
    """

    id: str
    title: str
    text: Callable[[Row], str]
    sort: Callable[[Row], Any] | None = None
    tone: Callable[[Row], Tone] | Tone = Tone.PLAIN
    export: Callable[[Row], object] | None = None
    width: int = 0
    priority: int = 0
    right: bool = False
    flex: bool = False
    shown_below: bool = False

    def tone_of(self, row: Row) -> Tone:
        return self.tone if isinstance(self.tone, Tone) else self.tone(row)

    def sort_key(self, row: Row) -> Any:
        return self.text(row) if self.sort is None else self.sort(row)

    def exported(self, row: Row) -> object:
        return self.text(row) if self.export is None else self.export(row)


def text_of_all(columns: Sequence[TableColumn[Row]]) -> Callable[[Row], str]:
    """The text of a row in all columns, one line per column."""
    return lambda row: "\n".join(column.text(row) for column in columns)


@dataclass(frozen=True, slots=True)
class Grouping(Generic[Row]):
    """Rows under headings: ``labels`` names every group a row stands in, ``order`` sorts the groups."""

    id: str
    title: str
    labels: Callable[[Row], tuple[str, ...]]
    order: Callable[[str], Any] = str
