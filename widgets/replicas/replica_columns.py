"""The columns of pane 2."""

from __future__ import annotations

from typing import NamedTuple

from recovery.acknowledged.verdict import Verdict
from recovery.model import Broker, Lineage, PartitionState, Replica, ReplicaLog, Standing, Unknown
from recovery.wording.quantity_text import age, human_bytes, offset, printable
from recovery.wording.replica_text import disk_text, replica_sets
from recovery.wording.verdict_text import short_verdict
from widgets.loss_tone import last_epoch, verdict_tone
from widgets.table import TableColumn
from widgets.text import Tone


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
    return "+".join((*(("leader",) if leads else ()), *replica_sets(row.state, row.replica.broker))) or "-"


COLUMNS: tuple[TableColumn[ReplicaRow], ...] = (
    TableColumn(
        "broker",
        "BROKER",
        lambda r: str(r.replica.broker),
        sort=lambda r: r.replica.broker,
        right=True,
        tone=Tone.STRONG,
        export=lambda r: r.replica.broker,
    ),
    TableColumn("rack", "RACK", lambda r: (r.broker.rack if r.broker else None) or "", priority=9),
    TableColumn("in", "IN", _role, priority=2),
    TableColumn("standing", "CONTROLLER", lambda r: str(r.replica.standing), tone=_standing_tone),
    TableColumn("answers", "FROM HERE", _answers, tone=_answers_tone),
    TableColumn("lastEpoch", "LAST EPOCH", _epoch, sort=lambda r: last_epoch(r.log) or -1, right=True),
    TableColumn(
        "logEnd",
        "LOG END",
        lambda r: _of(r, "log_end_offset"),
        sort=lambda r: _raw(r, "log_end_offset"),
        right=True,
    ),
    TableColumn(
        "acknowledged",
        "LOSES ACKED",
        lambda r: "" if r.verdict is None else short_verdict(r.verdict),
        tone=lambda r: verdict_tone(r.verdict),
        priority=1,
    ),
    TableColumn(
        "logStart",
        "LOG START",
        lambda r: _of(r, "log_start_offset"),
        sort=lambda r: _raw(r, "log_start_offset"),
        right=True,
        priority=4,
    ),
    TableColumn(
        "highWatermark",
        "HIGH WM",
        lambda r: _of(r, "high_watermark"),
        sort=lambda r: _raw(r, "high_watermark"),
        right=True,
        priority=3,
    ),
    TableColumn("leaderEpoch", "LEADER EPOCH", lambda r: _of(r, "leader_epoch"), right=True, priority=8),
    TableColumn(
        "size",
        "SIZE",
        lambda r: "" if r.log is None else human_bytes(r.log.size),
        sort=lambda r: _raw(r, "size"),
        right=True,
        priority=6,
        export=lambda r: _raw(r, "size"),
    ),
    TableColumn("age", "AGE", lambda r: "" if r.age is None else age(r.age), right=True, priority=5, width=5),
    TableColumn("logDir", "LOG DIR", lambda r: printable(r.log.log_dir) if r.log else "", priority=7),
    TableColumn("call", "LEARNT BY", lambda r: r.call if r.log else "", priority=10),
    TableColumn("notLearnt", "NOT LEARNT", _not_learnt, priority=11, tone=Tone.WARN, flex=True, width=24),
)


def _raw(row: ReplicaRow, field: str) -> int:
    return -1 if row.log is None else int(getattr(row.log, field))


def _of(row: ReplicaRow, field: str) -> str:
    return "" if row.log is None else offset(_raw(row, field))
