"""What is shown of a thing, described once: its pane, its text table, its JSON and its exports come from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from widgets.text import Tone
from widgets.text_table import TextColumn, table

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Field(Generic[Row]):
    """One column. ``value`` is what JSON and exports take, and what rows are sorted by unless there is ``sort``.
    ``text`` is the cell (default: the value, numbers with commas, "unknown" for None). ``screen``, ``printed`` and
    ``json``: which forms have it.

    In a pane, ``short`` is the heading and ``brief`` the cell where title and text are too wide. ``priority`` 0 is
    never dropped; where the table is too narrow, the highest goes first. ``flex``: takes what width is left, and
    loses its middle where that is too little; every other column is as wide as what is seen in it, so that no
    number is cut. ``width`` is the least it takes. ``shown_below``: the details below the table show it in any
    case. In a text table, ``below``: it moves below its row if the terminal is too narrow.
    """

    id: str
    title: str
    value: Callable[[Row], Any]
    text: Callable[[Row], str] | None = None
    tone: Callable[[Row], Tone] | Tone = Tone.PLAIN
    sort: Callable[[Row], Any] | None = None
    width: int = 0
    priority: int = 0
    right: bool = False
    flex: bool = False
    below: bool = False
    shown_below: bool = False
    screen: bool = True
    printed: bool = True
    json: bool = True
    short: str = ""
    brief: Callable[[Row], str] | None = None

    def cell(self, row: Row) -> str:
        if self.text is not None:
            return self.text(row)
        value = self.value(row)
        if isinstance(value, int):
            return f"{value:,}"
        return "unknown" if value is None else str(value)

    def tone_of(self, row: Row) -> Tone:
        return self.tone if isinstance(self.tone, Tone) else self.tone(row)

    def sort_key(self, row: Row) -> Any:
        if self.sort is not None:
            return self.sort(row)
        value = self.value(row)
        return (value is None, value if isinstance(value, (int, float, str)) else self.cell(row))


def on_screen(fields: Iterable[Field[Row]]) -> tuple[Field[Row], ...]:
    """The columns of a pane."""
    return tuple(
        replace(field, title=field.short or field.title, text=field.brief or field.text)
        for field in fields
        if field.screen
    )


def text_rows(fields: Iterable[Field[Row]], rows: Sequence[Row], indent: str = "") -> Iterator[str]:
    """The heading and the rows, as :func:`widgets.text_table.table` prints them."""
    used = [field for field in fields if field.printed]
    cells = [tuple(field.cell(row) for field in used) for row in rows]
    return table([TextColumn(field.title, field.right, field.below) for field in used], cells, indent)


def json_of(fields: Iterable[Field[Row]]) -> Callable[[Row], dict[str, object]]:
    """From a row to its object in a JSON document, for the many rows of a cluster."""
    values = [(field.id, field.value) for field in fields if field.json]
    return lambda row: {name: value(row) for name, value in values}


def json_row(fields: Iterable[Field[Row]], row: Row) -> dict[str, object]:
    """The row as an object of a JSON document."""
    return json_of(fields)(row)


def text_of_all(fields: Sequence[Field[Row]]) -> Callable[[Row], str]:
    """The text of a row in all fields, one line per field."""
    return lambda row: "\n".join(field.cell(row) for field in fields)
