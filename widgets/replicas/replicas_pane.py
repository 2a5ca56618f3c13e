"""Pane 2: replica log info of the partition that was under the cursor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recovery.acknowledged.verdict import PartitionVerdicts, Verdict
from recovery.loss import loss
from recovery.model import Broker, Survey, Unknown
from recovery.ranking import Ranking, rank
from recovery.wording.loss_text import lost_ranges
from recovery.wording.quantity_text import ids, printable
from recovery.wording.replica_text import elr_text
from recovery.wording.verdict_text import verdict_text
from widgets.base_pane import TablePane
from widgets.loss_tone import last_epoch, loss_tone, verdict_tone
from widgets.replicas.log_diagram import losses, picture
from widgets.replicas.replica_columns import COLUMNS, ReplicaRow
from widgets.table import RowTable
from widgets.text import BLANK, Line, Piece, Tone, fold, line


@dataclass(frozen=True, slots=True)
class ReplicasView:
    """One partition. ``calls`` and ``ages`` (seconds) by broker: how its answer was got, and how old it is.
    ``verdicts``: what each choice loses of the acknowledged records; None: nobody judged.
    """

    survey: Survey
    ranking: Ranking
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    calls: Mapping[int, str] = field(default_factory=dict)
    ages: Mapping[int, float] = field(default_factory=dict)
    verdicts: PartitionVerdicts | None = None

    def verdict(self, broker: int) -> Verdict | None:
        return None if self.verdicts is None else self.verdicts.candidates.get(broker)


class ReplicasPane(TablePane):
    """Every replica as the controller and as we see it, and the picture of their logs. Keys are broker ids."""

    DEFAULT_CSS = """
    ReplicasPane > RowTable { height: auto; min-height: 3; max-height: 40%; }
    ReplicasPane > .details { height: 1fr; max-height: 100%; }
    """

    NAME = "replicas"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view: ReplicasView | Unknown | None = None

    def make_table(self) -> RowTable[Any]:
        return RowTable(
            COLUMNS, lambda row: row.replica.broker, noun="replica", empty="choose a partition in pane 1"
        )

    def update(self, view: ReplicasView | Unknown | None) -> None:
        """Shows a partition; None: none is chosen; Unknown: why it cannot be shown."""
        self._view = view
        self.table.update(_rows(view) if isinstance(view, ReplicasView) else ())
        self.show_lines()

    def _replica(self, width: int) -> list[Line]:
        row = self.table.cursor_row
        return self.left_out(width, f"broker {row.replica.broker}") if isinstance(row, ReplicaRow) else []

    def summary_lines(self, width: int) -> list[Line]:
        view = self._view
        if view is None:
            return [line(Piece("  no partition is chosen", Tone.DIM))]
        if isinstance(view, Unknown):
            return fold(line(Piece(printable(str(view)), Tone.WARN)), width, "  ")
        state, survey = view.survey.state, view.survey
        led = (
            Piece("OFFLINE, no leader", Tone.BAD)
            if state.offline
            else Piece(f"led by {state.leader}", Tone.GOOD)
        )
        elr = elr_text(state.elr)
        known = elr_text(state.last_known_elr)
        rest = (
            f", leader epoch {state.leader_epoch} · replicas {ids(state.replicas)} · ISR {ids(state.isr)}"
            f" · ELR {elr} · LastKnownELR {known} · min ISR {printable(str(survey.min_isr))}"
        )
        return fold(line(Piece(f"{survey.tp}: ", Tone.STRONG), led, Piece(rest)), width, "  ")

    def detail_lines(self, width: int) -> list[Line]:
        view = self._view
        if not isinstance(view, ReplicasView):
            return []
        lines = [*picture(view.survey, view.ranking, width), *self._replica(width)]
        choices = losses(view.survey, view.ranking)
        if not choices:
            return lines
        lines.append(BLANK)
        for broker, harm in choices:
            lost = loss(view.survey, broker)
            which = lost_ranges(lost)
            tone = loss_tone(lost, last_epoch(view.survey.log(broker)))
            pieces = [
                Piece(f"elect {broker}: "),
                Piece(f"loses {harm}", tone),
                Piece(which and f": {which}"),
            ]
            verdict = view.verdict(broker)
            if verdict is not None:
                pieces += [Piece("; "), Piece(verdict_text(verdict), verdict_tone(verdict))]
            lines += fold(line(*pieces), width, "    ")
        refused = rank(view.survey, view.ranking)
        if isinstance(refused, Unknown):
            lines += fold(line(Piece(f"no suggestion: {printable(str(refused))}", Tone.WARN)), width, "    ")
        return lines


def _rows(view: ReplicasView) -> tuple[ReplicaRow, ...]:
    return tuple(
        ReplicaRow(
            view.survey.state,
            replica,
            view.brokers.get(replica.broker),
            view.calls.get(replica.broker, ""),
            view.ages.get(replica.broker),
            view.verdict(replica.broker),
        )
        for replica in view.survey.replicas
    )
