"""What is shown of a thing, described once: its pane, its text table, its JSON and its exports come from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Generic, TypeVar

from recovery.model import TopicPartition
from recovery.wording.quantity_text import more
from widgets.text import Line, Piece, Tone, fold_text, line, terminal_width

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


_DIGITS = re.compile(r"(\d+)")


def natural(name: str) -> tuple[str | int, ...]:
    """The order of names in which topic-2 comes before topic-10: text and numbers, alternately."""
    return tuple(int(part) if number % 2 else part for number, part in enumerate(_DIGITS.split(name)))


def natural_partition(tp: TopicPartition) -> tuple[tuple[str | int, ...], int]:
    """The same order for partitions."""
    return natural(tp.topic), tp.partition


def on_screen(fields: Iterable[Field[Row]]) -> tuple[Field[Row], ...]:
    """The columns of a pane."""
    return tuple(
        replace(field, title=field.short or field.title, text=field.brief or field.text)
        for field in fields
        if field.screen
    )


def data_field(name: str, value: Callable[[Row], Any]) -> Field[Row]:
    """For programs alone."""
    return Field(name, name, value, screen=False, printed=False)


def text_field(
    title: str, text: Callable[[Row], str], *, right: bool = False, below: bool = False
) -> Field[Row]:
    """For people alone: in JSON the same stands in other members."""
    return Field(title, title, text, screen=False, json=False, right=right, below=below)


def id_field(
    name: str, title: str, value: Callable[[Row], int | None], unknown: str = "?", *, json: bool = True
) -> Field[Row]:
    """A number that is no amount (a broker, an epoch): without commas; ``unknown``: the cell of None and of -1."""

    def text(row: Row) -> str:
        number = value(row)
        return unknown if number is None or number < 0 else str(number)

    return Field(name, title, value, text, right=True, screen=False, json=json)


def partition_fields(tp: Callable[[Row], TopicPartition], title: str = "PARTITION") -> tuple[Field[Row], ...]:
    """The partition that a row is about: one column of text, two members of JSON."""
    return (
        text_field(title, lambda row: str(tp(row))),
        data_field("topic", lambda row: tp(row).topic),
        data_field("partition", lambda row: tp(row).partition),
    )


ALL_SHOWN = " (--rows 0, or --output json, shows all)"
"""Where the rows are that a command does not show; said where the command can be run again."""


def text_rows(
    fields: Iterable[Field[Row]],
    rows: Sequence[Row],
    indent: str = "",
    *,
    limit: int = 0,
    rest: str = ALL_SHOWN,
) -> Iterator[str]:
    """The heading and ``limit`` rows (0: all), and how many more there are; ``rest``: where those are shown.
    Nothing without rows.

    One line per row, without columns that are empty in every row. If the terminal is too narrow, columns marked
    ``below`` follow on their own lines.
    """
    if not rows:
        return
    used = [field for field in fields if field.printed]
    cells = [tuple(field.cell(row) for field in used) for row in rows[: limit or None]]
    yield from _table(used, cells, indent)
    yield from more(len(rows) - len(cells), rest, indent)


def table_lines(
    fields: Iterable[Field[Row]], rows: Sequence[Row], width: int, indent: str = ""
) -> list[Line]:
    """The heading and the rows as lines of a screen, without columns that are empty in every row. Where they are
    too wide, the columns of the highest priority are left out. Nothing without rows.
    """
    shown = [field for field in fields if any(field.cell(row) for row in rows)]
    most = {field.id: max(len(field.title), *(len(field.cell(row)) for row in rows)) for field in shown}
    while len(shown) > 1 and sum(most[f.id] + len(GAP) for f in shown) + len(indent) > width:
        shown.remove(max(reversed(shown), key=lambda field: field.priority))
    if not shown:
        return []

    def cell(text: str, field: Field[Row]) -> str:
        wide = most[field.id]
        return (text.rjust(wide) if field.right else text.ljust(wide)) + GAP

    heading = line(Piece(indent + "".join(cell(field.title, field) for field in shown), Tone.DIM))
    return [
        heading,
        *(
            line(Piece(indent), *(Piece(cell(field.cell(row), field), field.tone_of(row)) for field in shown))
            for row in rows
        ),
    ]


def first_lines(
    lines: Sequence[str], limit: int, indent: str = "", *, rest: str = ALL_SHOWN
) -> Iterator[str]:
    """``limit`` lines (0: all), and how many more there are, as under a table."""
    yield from (indent + line for line in lines[: limit or None])
    yield from more(len(lines) - limit if limit else 0, rest, indent)


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


# Aligned columns of plain text. Not rich's tables: for 9,000 rows of twelve columns they take seven seconds, this a
# twentieth of a second, and a whole cluster is read and described in less than a second.

AnyField = Field[Any]
GAP = "  "
_BELOW = "    "
_BETWEEN = " · "


def _table(columns: Sequence[AnyField], rows: Sequence[Sequence[str]], indent: str = "") -> Iterator[str]:
    used = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    most = terminal_width()
    if most is None or _needed(columns, rows, used, indent) <= most:
        yield from _aligned(columns, rows, used, indent)
        return
    beside = [i for i in used if not columns[i].below]
    below = [i for i in used if columns[i].below]
    # A long name would pad every other row, so such a row gets its own block.
    short = [row for row in rows if len(row[used[0]]) <= most // 3]
    if not short or _needed(columns, short, beside, indent) > most:
        short = []
    lines = _aligned(columns, short, beside, indent) if short else iter(())
    yield from islice(lines, 1)
    aligned = {id(row) for row in short}
    for row in rows:
        if id(row) in aligned:
            yield next(lines)
            yield from _under(columns, row, below, indent, most)
        else:
            yield indent + _block_title(columns[used[0]], row[used[0]])
            yield from _under(columns, row, used[1:], indent, most)


def _block_title(column: AnyField, cell: str) -> str:
    """What a row of its own begins with: a bare number says what it numbers."""
    return f"{column.title.lower()} {cell}" if column.right else cell


def _under(
    columns: Sequence[AnyField], row: Sequence[str], shown: Sequence[int], indent: str, most: int
) -> Iterator[str]:
    below = [f"{columns[i].title.lower()}: {row[i]}" for i in shown if row[i]]
    if below:
        yield from fold_text(_BETWEEN.join(below), most, indent + _BELOW)


def _widths(columns: Sequence[AnyField], rows: Sequence[Sequence[str]], used: Sequence[int]) -> list[int]:
    return [max(len(columns[i].title), *(len(row[i]) for row in rows)) for i in used]


def _needed(
    columns: Sequence[AnyField], rows: Sequence[Sequence[str]], used: Sequence[int], indent: str
) -> int:
    widths = _widths(columns, rows, used)
    return len(indent) + sum(widths) + len(GAP) * (len(widths) - 1)


def _aligned(
    columns: Sequence[AnyField], rows: Sequence[Sequence[str]], used: Sequence[int], indent: str
) -> Iterator[str]:
    widths = _widths(columns, rows, used)
    lines = [[columns[i].title for i in used], *([row[i] for i in used] for row in rows)]
    rights = [columns[i].right for i in used]
    for cells in lines:
        padded = (
            cell.rjust(wide) if right else cell.ljust(wide)
            for cell, wide, right in zip(cells, widths, rights, strict=True)
        )
        yield indent + GAP.join(padded).rstrip()
