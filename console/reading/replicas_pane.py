"""Pane 2: every replica of a partition, and the picture of their logs."""

from __future__ import annotations

from typing import Any

from console.reading.replica_report import REPLICA, ReplicaRow
from recovery.model import Unknown
from recovery.old_leaders import old_leaders
from recovery.ranking import Ranking
from recovery.wording.quantity_text import ids, printable
from recovery.wording.replica_text import elr_text, min_isr_on_brokers, still_writes_text
from widgets.base_pane import TablePane
from widgets.fields import on_screen
from widgets.log_diagram import losses, picture
from widgets.table import RowTable
from widgets.text import BLANK, Line, Piece, Tone, fold, line


class ReplicasPane(TablePane):
    """Every replica as the controller and as we see it, and the picture of their logs. Keys are broker ids."""

    DEFAULT_CSS = """
    ReplicasPane RowTable { height: auto; min-height: 3; max-height: 40%; }
    ReplicasPane .details { height: 1fr; max-height: 100%; }
    """

    NAME = "replicas"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._shown: tuple[ReplicaRow, ...] | Unknown | None = None
        self._ranking = Ranking.LAST_RECORD

    def make_table(self) -> RowTable[Any]:
        return RowTable(
            on_screen(REPLICA),
            lambda row: row.replica.broker,
            noun="replica",
            empty="choose a partition in pane 1",
        )

    def update(
        self, shown: tuple[ReplicaRow, ...] | Unknown | None, ranking: Ranking = Ranking.LAST_RECORD
    ) -> None:
        """Shows the replicas of a partition; None: none is chosen; Unknown: why it cannot be shown."""
        self._shown, self._ranking = shown, ranking
        self.table.update(() if shown is None or isinstance(shown, Unknown) else shown)
        self.show_lines()

    def _replica(self, width: int) -> list[Line]:
        row = self.table.cursor_row
        return self.left_out(width, f"broker {row.replica.broker}") if isinstance(row, ReplicaRow) else []

    def summary_lines(self, width: int) -> list[Line]:
        shown = self._shown
        if not shown:
            return [line(Piece("  no partition is chosen", Tone.DIM))]
        if isinstance(shown, Unknown):
            return fold(line(Piece(printable(str(shown)), Tone.WARN)), width, "  ")
        survey = shown[0].survey
        state = survey.state
        led = (
            Piece("OFFLINE, no leader", Tone.BAD)
            if state.offline
            else Piece(f"led by {state.leader}", Tone.GOOD)
        )
        elr = elr_text(state.elr)
        known = elr_text(state.last_known_elr)
        rest = (
            f", leader epoch {state.leader_epoch} · replicas {ids(state.replicas)} · ISR {ids(state.isr)}"
            f" · ELR {elr} · LastKnownELR {known} · min ISR {printable(min_isr_on_brokers(survey))}"
        )
        lines = fold(line(Piece(f"{survey.tp}: ", Tone.STRONG), led, Piece(rest)), width, "  ")
        if writing := old_leaders(survey):
            lines += fold(
                line(Piece(still_writes_text(writing, offline=state.offline), Tone.BAD)), width, "  "
            )
        return lines

    def _room(self, width: int) -> int:
        """The lines that the summary, the table and the rule below it leave for the drawing."""
        table = min(self.table.lines + 1, int(0.4 * self.size.height))
        return self.size.height - len(self.summary_lines(width)) - table - 1

    def detail_lines(self, width: int) -> list[Line]:
        shown = self._shown
        if not shown or isinstance(shown, Unknown):
            return []
        survey, verdicts = shown[0].survey, {row.replica.broker: row.verdict for row in shown}
        lines = [*picture(survey, self._ranking, width, self._room(width)), *self._replica(width)]
        choices = losses(survey, self._ranking, verdicts, width)
        return [*lines, BLANK, *choices] if choices else lines
