"""Pane 2: every replica of a partition, and the picture of their logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recovery.acknowledged.verdict import PartitionVerdicts, Verdict
from recovery.loss import loss
from recovery.model import Broker, Lineage, PartitionState, Replica, ReplicaLog, Standing, Survey, Unknown
from recovery.old_leaders import old_leaders
from recovery.ranking import Ranking, rank
from recovery.wording.loss_text import lost_ranges
from recovery.wording.quantity_text import age, human_bytes, ids, offset, printable
from recovery.wording.replica_text import (
    ACTS_AS_LEADER,
    OLD_LEADER,
    disk_text,
    elr_text,
    min_isr_on_brokers,
    replica_sets,
    still_writes_text,
)
from recovery.wording.verdict_text import short_verdict, verdict_text
from widgets.base_pane import TablePane
from widgets.fields import Field
from widgets.log_diagram import losses, picture
from widgets.loss_tone import last_epoch, loss_tone, verdict_tone
from widgets.table import RowTable
from widgets.text import BLANK, Line, Piece, Tone, fold, line


class ReplicaRow(NamedTuple):
    """One replica with what is known of its broker; ``age`` of the answer in seconds, None not known. ``verdict``:
    what electing it loses of the acknowledged records; None: nobody judged.
    """

    state: PartitionState
    replica: Replica
    broker: Broker | None
    call: str
    age: float | None
    verdict: Verdict | None = None

    @property
    def log(self) -> ReplicaLog | None:
        return self.replica.log if isinstance(self.replica.log, ReplicaLog) else None


def _answers(row: ReplicaRow) -> str:
    log = row.replica.log
    if isinstance(log, Unknown):
        return str(log.why)
    if row.replica.disk_read_ms is not None:
        return disk_text(row.replica.disk_read_ms)
    if log.leads:
        return ACTS_AS_LEADER
    return "answered" if isinstance(log.lineage, Lineage) else f"epochs {log.lineage.why}"


def _answers_tone(row: ReplicaRow) -> Tone:
    return Tone.GOOD if _answers(row) == "answered" else Tone.BAD


def _standing_tone(row: ReplicaRow) -> Tone:
    return Tone.GOOD if row.replica.standing is Standing.ELECTABLE else Tone.BAD


def _epoch(row: ReplicaRow) -> str:
    if row.log is None:
        return ""
    epoch = last_epoch(row.log)
    return "?" if epoch is None else "none" if epoch < 0 else str(epoch)


def _not_learnt(row: ReplicaRow) -> str:
    log = row.replica.log
    if isinstance(log, Unknown):
        return printable(str(log))
    return "" if isinstance(log.lineage, Lineage) else printable(f"epochs: {log.lineage}")


def _role(row: ReplicaRow) -> str:
    leads = row.state.leader == row.replica.broker
    first = ("leader",) if leads else (OLD_LEADER,) if row.log is not None and row.log.leads else ()
    return "+".join((*first, *replica_sets(row.state, row.replica.broker))) or "-"


COLUMNS: tuple[Field[ReplicaRow], ...] = (
    Field(
        "broker",
        "BROKER",
        lambda r: r.replica.broker,
        lambda r: str(r.replica.broker),
        sort=lambda r: r.replica.broker,
        right=True,
        tone=Tone.STRONG,
    ),
    Field("rack", "RACK", lambda r: (r.broker.rack if r.broker else None) or "", priority=9),
    Field("in", "IN", _role, priority=2),
    Field("standing", "CONTROLLER", lambda r: str(r.replica.standing), tone=_standing_tone),
    Field("answers", "FROM HERE", _answers, tone=_answers_tone),
    Field("lastEpoch", "LAST EPOCH", _epoch, sort=lambda r: last_epoch(r.log) or -1, right=True),
    Field(
        "logEnd",
        "LOG END",
        lambda r: _of(r, "log_end_offset"),
        sort=lambda r: _raw(r, "log_end_offset"),
        right=True,
    ),
    Field(
        "acknowledged",
        "LOSES ACKED",
        lambda r: "" if r.verdict is None else short_verdict(r.verdict),
        tone=lambda r: verdict_tone(r.verdict),
        priority=1,
    ),
    Field(
        "logStart",
        "LOG START",
        lambda r: _of(r, "log_start_offset"),
        sort=lambda r: _raw(r, "log_start_offset"),
        right=True,
        priority=4,
    ),
    Field(
        "highWatermark",
        "HIGH WM",
        lambda r: _of(r, "high_watermark"),
        sort=lambda r: _raw(r, "high_watermark"),
        right=True,
        priority=3,
    ),
    Field("leaderEpoch", "LEADER EPOCH", lambda r: _of(r, "leader_epoch"), right=True, priority=8),
    Field(
        "size",
        "SIZE",
        lambda r: _raw(r, "size"),
        lambda r: "" if r.log is None else human_bytes(r.log.size),
        sort=lambda r: _raw(r, "size"),
        right=True,
        priority=6,
    ),
    Field("age", "AGE", lambda r: "" if r.age is None else age(r.age), right=True, priority=5, width=5),
    Field("logDir", "LOG DIR", lambda r: printable(r.log.log_dir) if r.log else "", priority=7),
    Field("call", "LEARNT BY", lambda r: r.call if r.log else "", priority=10),
    Field("notLearnt", "NOT LEARNT", _not_learnt, priority=11, tone=Tone.WARN, flex=True, width=24),
)


def _raw(row: ReplicaRow, field: str) -> int:
    return -1 if row.log is None else int(getattr(row.log, field))


def _of(row: ReplicaRow, field: str) -> str:
    return "" if row.log is None else offset(_raw(row, field))


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
            f" · ELR {elr} · LastKnownELR {known} · min ISR {printable(min_isr_on_brokers(survey))}"
        )
        lines = fold(line(Piece(f"{survey.tp}: ", Tone.STRONG), led, Piece(rest)), width, "  ")
        if writing := old_leaders(survey):
            lines += fold(
                line(Piece(still_writes_text(writing, offline=state.offline), Tone.BAD)), width, "  "
            )
        return lines

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
