"""Pane 3: what offline partitions wait for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recovery.model import Unknown
from recovery.wording.quantity_text import either, ids, printable
from recovery.wording.replica_text import elr_text
from widgets.base_pane import TablePane
from widgets.eligible.eligible_row import EligibleRow
from widgets.eligible.eligible_text import details, returns, summary
from widgets.table import Grouping, RowTable, TableColumn
from widgets.text import Line, Piece, Tone, fold, line


@dataclass(frozen=True, slots=True)
class EligibleView:
    """The partitions in the order to show them. ``known`` False: their logs have not been read yet, so an empty
    list is not good news. ``doubt`` says why it may not be so now, "" where it is.
    """

    rows: Sequence[EligibleRow]
    known: bool = True
    doubt: str = ""


def _ends(row: EligibleRow) -> str:
    if not row.survey.state.offline:
        return "online"
    return either(row.clean) if row.clean else "nobody"


def _ends_tone(row: EligibleRow) -> Tone:
    if not row.survey.state.offline:
        return Tone.GOOD
    return Tone.STRONG if row.clean else Tone.WARN


def _waits(row: EligibleRow) -> str:
    waiting = row.waiting
    return printable(str(waiting)) if isinstance(waiting, Unknown) else waiting.sentence


COLUMNS: tuple[TableColumn[EligibleRow], ...] = (
    TableColumn(
        "partition",
        "PARTITION",
        lambda r: str(r.survey.tp),
        sort=lambda r: r.survey.tp,
        tone=Tone.STRONG,
        flex=True,
    ),
    TableColumn("ends", "ELECTED ON RETURN", _ends, tone=_ends_tone),
    TableColumn("isr", "ISR", lambda r: ids(r.survey.state.isr)),
    TableColumn("elr", "ELR", lambda r: elr_text(r.survey.state.elr)),
    TableColumn("lastKnownElr", "LASTKNOWNELR", lambda r: elr_text(r.survey.state.last_known_elr)),
    TableColumn("minIsr", "MIN ISR", lambda r: printable(str(r.survey.min_isr)), priority=3),
    TableColumn("waits", "THE CONTROLLER", _waits, priority=5, flex=True, width=34),
)
GROUPINGS: tuple[Grouping[EligibleRow], ...] = (
    Grouping("topic", "by topic", lambda r: (r.survey.state.topic,)),
    Grouping("broker", "by whose return ends it", lambda r: (_ends(r),)),
)


class EligiblePane(TablePane):
    """ISR, ELR, LastKnownELR, and what the controller is waiting for. The table's keys are topic-partitions."""

    DEFAULT_CSS = """
    EligiblePane > .details { max-height: 70%; }
    """

    NAME = "eligible"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view = EligibleView((), known=False)
        self._returns = returns(())

    def make_table(self) -> RowTable[Any]:
        return RowTable(
            COLUMNS,
            lambda row: row.survey.tp,
            groupings=GROUPINGS,
            noun="partition",
            empty="no partition waits for a leader",
        )

    def update(self, view: EligibleView) -> None:
        """Shows a new picture; the cursor stays on its partition."""
        if view.rows != self._view.rows:
            self._returns = returns(view.rows)
        self._view = view
        self.table.update(view.rows)
        self.show_lines()

    def summary_lines(self, width: int) -> list[Line]:
        if not self._view.known:
            return fold(line(Piece("  who waits for a leader is not known yet", Tone.WARN)), width, "  ")
        return summary(self._returns, width, self._view.doubt)

    def detail_lines(self, width: int) -> list[Line]:
        row = self.table.cursor_row
        return details(row, width) if isinstance(row, EligibleRow) else []
