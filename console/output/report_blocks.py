"""The parts that a report is made of. What they hold is plain text: each form of output escapes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from recovery.plan.values import PlanRow
from widgets.fields import Field, Row


class ReportHeading(NamedTuple):
    """``level`` 1 is the title."""

    level: int
    text: str


class ReportText(NamedTuple):
    text: str


class ReportList(NamedTuple):
    items: tuple[str, ...]


class ReportTable(NamedTuple):
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class ReportCommands(NamedTuple):
    """Lines to be copied into a shell."""

    lines: tuple[str, ...]


class ReportDrawing(NamedTuple):
    """The logs of a planned row, and what its election cuts off."""

    row: PlanRow


class ReportBars(NamedTuple):
    """A bar chart of the ``measure``; each row is a name, the number as text, and the bar's length from 0 to 1."""

    measure: str
    rows: tuple[tuple[str, str, float], ...]


ReportBlock: TypeAlias = (
    ReportHeading | ReportText | ReportList | ReportTable | ReportCommands | ReportDrawing | ReportBars
)


def report_table(
    fields: Iterable[Field[Row]], rows: Sequence[Row], most: int = 0, left_out: str = ""
) -> Iterator[ReportBlock]:
    """``most`` rows (0: all); nothing without rows. ``left_out``: what is said of the number of others."""
    shown, used = rows[: most or None], [field for field in fields if field.printed]
    if shown:
        cells = tuple(tuple(field.cell(row) for field in used) for row in shown)
        yield ReportTable(tuple(field.title.lower() for field in used), cells)
    if len(rows) > len(shown):
        yield ReportText(f"{len(rows) - len(shown):,} {left_out}")
