"""Tables of few rows with bars, as rich draws them, fitted to the terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple, TypeAlias, TypeVar

from widgets.fields import Field, text_field, text_rows
from widgets.text import terminal_width

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


Row = Sequence[str]

CLUSTER = "cluster"
"""The heading of a column that usually has the same value in every row; people copy the value, so it is never
broken.
"""

WIDE = 100
"""The terminal width in columns from which there is room for bars."""

WORD = 14
"""The longest word for which a table is made wider."""

_BETWEEN = 3
"""The width that rich puts between two columns of this box."""


def rendered(title: str, columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """A table as rich draws it; numbers are right-aligned. A single cluster id moves into the title. Several
    clusters get a table each if their ids do not fit next to the other columns.
    """
    listed, room = list(rows), terminal_width() or 160
    if room >= WIDE or CLUSTER not in columns:
        yield from _drawn(title, columns, listed, room)
        return
    place = columns.index(CLUSTER)
    for number, name in enumerate(dict.fromkeys(row[place] for row in listed)):
        yield from [""] * bool(number)
        yield from _drawn(title, columns, [row for row in listed if row[place] == name], room)


def _drawn(title: str, columns: Sequence[str], listed: Sequence[Row], room: int) -> Iterator[str]:
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415  # slow to import, and only for this
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    title, unused = _titled(title, columns, listed)
    columns, listed = _without([unused], columns, listed)
    # Bars, which have no heading, are shown only if there is room.
    bars = [place for place, head in enumerate(columns) if not head]
    sizes = widths(columns, listed, room)
    if room < WIDE or any(len(row[place]) > sizes[place] for row in listed for place in bars):
        columns, listed = _without(bars, columns, listed)
        sizes = widths(columns, listed, room)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for place, size in enumerate(sizes):
        numeric = all(_numeric(row[place]) for row in listed)
        table.add_column(columns[place], justify="right" if numeric else "left", overflow="fold", width=size)
    for row in listed:
        table.add_row(*(Text(cell) for cell in row))
    console = Console(width=room, color_system=None, force_terminal=False, highlight=False)
    with console.capture() as captured:
        console.print(table)
    yield title
    yield from (line.rstrip() for line in captured.get().splitlines())


def _without(
    places: Collection[int | None], columns: Sequence[str], rows: Sequence[Row]
) -> tuple[Sequence[str], Sequence[Row]]:
    """The table without those columns."""
    places_left = [place for place in range(len(columns)) if place not in places]
    return [columns[place] for place in places_left], [
        tuple(row[place] for place in places_left) for row in rows
    ]


def by_id(title: str, columns: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    """A table with ids in the first column: in a narrow terminal the last columns move below their rows, so
    that ids are not broken.
    """
    if (terminal_width() or 160) >= WIDE:
        yield from rendered(title, columns, rows)
        return
    shown = [place for place, head in enumerate(columns) if head]
    parts: list[Field[Row]] = [
        text_field(columns[place], itemgetter(place), right=place > 0, below=place >= _BESIDE)
        for place in shown
    ]
    yield from (title, "", *text_rows(parts, rows))


_BESIDE = 5


def _titled(title: str, columns: Sequence[str], rows: Sequence[Row]) -> tuple[str, int | None]:
    """The title, and the column that it replaces."""
    if CLUSTER not in columns:
        return title, None
    place = columns.index(CLUSTER)
    names = {row[place] for row in rows}
    return (f"{title}, cluster {names.pop()}", place) if len(names) == 1 else (title, None)


def widths(heads: Sequence[str], rows: Sequence[Row], room: int) -> list[int]:
    """The width of each column: texts are folded between words, and within a word only if there is no room."""
    texts = [[head, *(row[place] for row in rows)] for place, head in enumerate(heads)]
    whole = [max(map(len, column)) for column in texts]
    words = [max((len(word) for text in column for word in text.split()), default=1) for column in texts]
    free = room - _BETWEEN * (len(heads) - 1) - 2
    unbroken = [head == CLUSTER for head in heads]
    found = _least(words, unbroken, free) or _least(words, [False] * len(heads), free) or [4] * len(heads)
    return _shared(found, whole, free)


def _least(words: Sequence[int], unbroken: Sequence[bool], free: int) -> list[int] | None:
    """The width that each column needs for its words, with the longest words broken if necessary; None if
    that is not enough.
    """
    for most in range(WORD, 3, -1):
        found = [word if whole else min(word, most) for word, whole in zip(words, unbroken, strict=True)]
        if sum(found) <= free:
            return found
    return None


def _shared(found: list[int], whole: Sequence[int], free: int) -> list[int]:
    """Divides the rest equally among all columns that need more, so that one long text takes no room from the
    others.
    """
    left = free - sum(found)
    while left > 0 and (open_ := [place for place, size in enumerate(whole) if found[place] < size]):
        share = max(1, left // len(open_))
        for place in open_:
            given = min(share, whole[place] - found[place], left)
            found[place] += given
            left -= given
    return found


def _numeric(cell: str) -> bool:
    return not cell or cell.lstrip("-≥").replace(",", "").split(" ")[0].replace(".", "").isdecimal()


def bar(value: float, most: float, size: int = 18) -> str:
    """A bar of at most ``size`` cells, in eighths; a value above 0 is always visible."""
    if value <= 0 or most <= 0:
        return ""
    eighths = max(1, round(value / most * size * 8))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[rest]
