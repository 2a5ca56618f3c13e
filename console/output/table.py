"""Aligned columns of plain text.

Not rich's tables: 9,000 rows of twelve columns take those seven seconds and these a twentieth of one, and a
whole cluster is read and described in less than a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

GAP = "  "


class Column(NamedTuple):
    """A column's heading; numbers stand on the right."""

    title: str
    right: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], indent: str = "") -> Iterator[str]:
    """The heading and the rows, one line each; columns that are empty in every row are left out."""
    used = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    widths = [max(len(columns[i].title), *(len(row[i]) for row in rows)) for i in used]
    lines = [[columns[i].title for i in used], *([row[i] for i in used] for row in rows)]
    rights = [columns[i].right for i in used]
    for cells in lines:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, rights, strict=True)
        )
        yield indent + GAP.join(padded).rstrip()
