"""Aligned columns of plain text.

Not rich's tables: for 9,000 rows of twelve columns they take seven seconds, this module a twentieth of a
second, and a whole cluster is read and described in less than a second.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

GAP = "  "
_BELOW = "    "
_BETWEEN = " · "
_NARROWEST = 40


class TextColumn(NamedTuple):
    """A column's heading; numbers are right-aligned.

    ``below``: if the terminal is too narrow for all columns, this one moves below its row.
    """

    title: str
    right: bool = False
    below: bool = False


def width() -> int | None:
    """The width of the terminal in columns, or KTRIAGE_WIDTH if it is set; None: a pipe or a file, one line
    per row.
    """
    width = os.environ.get("KTRIAGE_WIDTH", "")
    if width.isdecimal():
        return max(int(width), _NARROWEST)
    try:
        found = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError, AttributeError):  # a pipe, a file, or no stdout at all
        return None
    # A terminal without a size (script, docker -t, CI) reports 0.
    return max(found or shutil.get_terminal_size().columns, _NARROWEST)


def table(columns: Sequence[TextColumn], rows: Sequence[Sequence[str]], indent: str = "") -> Iterator[str]:
    """The heading and the rows; columns that are empty in every row are left out.

    One line per row. If the terminal is too narrow, columns marked ``below`` follow on their own lines.
    """
    used = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    most = width()
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


def _block_title(column: TextColumn, cell: str) -> str:
    """What a row of its own begins with: a bare number says what it numbers."""
    return f"{column.title.lower()} {cell}" if column.right else cell


def _under(
    columns: Sequence[TextColumn], row: Sequence[str], shown: Sequence[int], indent: str, most: int
) -> Iterator[str]:
    below = [f"{columns[i].title.lower()}: {row[i]}" for i in shown if row[i]]
    if below:
        yield from fold(_BETWEEN.join(below), most, indent + _BELOW)


def fold(text: str, most: int, indent: str = "") -> list[str]:
    """``text`` in lines of at most ``most`` columns, broken between words only."""
    return textwrap.wrap(
        text,
        most,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _widths(columns: Sequence[TextColumn], rows: Sequence[Sequence[str]], used: Sequence[int]) -> list[int]:
    return [max(len(columns[i].title), *(len(row[i]) for row in rows)) for i in used]


def _needed(
    columns: Sequence[TextColumn], rows: Sequence[Sequence[str]], used: Sequence[int], indent: str
) -> int:
    widths = _widths(columns, rows, used)
    return len(indent) + sum(widths) + len(GAP) * (len(widths) - 1)


def _aligned(
    columns: Sequence[TextColumn], rows: Sequence[Sequence[str]], used: Sequence[int], indent: str
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
