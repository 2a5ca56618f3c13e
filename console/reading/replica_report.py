"""A replica, described once for pane 2, ``replicas`` and JSON (docs/output.md).

An epoch span is [epoch, first offset, offset after the last] as in the plan file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from console.reading.survey_json import unknown_json
from recovery.acknowledged.verdict import Verdict
from recovery.loss import loss
from recovery.model import Broker, Lineage, Replica, ReplicaLog, Standing, Survey, Unknown
from recovery.wording.loss_text import short_loss
from recovery.wording.quantity_text import age, human_bytes, offset, printable
from recovery.wording.replica_text import (
    ACTS_AS_LEADER,
    OLD_LEADER,
    STANDING_WORDS,
    disk_text,
    replica_sets,
)
from recovery.wording.verdict_text import short_verdict, verdict_text
from widgets.fields import Field, json_of, text_field
from widgets.loss_tone import last_epoch, verdict_tone
from widgets.text import Tone

if TYPE_CHECKING:
    from console.reading.cluster_reading import ClusterReading

T = TypeVar("T")

SPANS_SHOWN = 3


class ReplicaRow(NamedTuple):
    """One replica. ``call``: what its broker was asked with. ``broker``, and ``age`` of the answer in seconds: None
    where they are not known. ``verdict``: what electing it loses of the acknowledged records; None: nobody judged.
    """

    survey: Survey
    replica: Replica
    call: str = ""
    broker: Broker | None = None
    age: float | None = None
    verdict: Verdict | None = None

    @property
    def log(self) -> ReplicaLog | None:
        return self.replica.log if isinstance(self.replica.log, ReplicaLog) else None

    @property
    def obstacle(self) -> str:
        """Why the controller would not elect the replica, before what it would lose; empty if it would."""
        if self.replica.electable:
            return ""
        return f"cannot be elected now ({STANDING_WORDS[self.replica.standing]}); if it could: "


def replica_rows(
    reading: ClusterReading, survey: Survey, age_s: float | None = None
) -> tuple[ReplicaRow, ...]:
    """``age_s``: the answers' age in seconds."""
    judged = reading.verdicts.get(survey.tp)
    candidates = {} if judged is None else judged.candidates
    return tuple(
        ReplicaRow(
            survey,
            replica,
            reading.calls.get(replica.broker, ""),
            reading.brokers.get(replica.broker),
            age_s,
            candidates.get(replica.broker),
        )
        for replica in survey.replicas
    )


def _in(row: ReplicaRow) -> str:
    leads = row.survey.state.leader == row.replica.broker
    first = ("leader",) if leads else (OLD_LEADER,) if row.log is not None and row.log.leads else ()
    return "+".join((*first, *_sets(row))) or "-"


def _sets(row: ReplicaRow) -> tuple[str, ...]:
    return replica_sets(row.survey.state, row.replica.broker)


def _answers(row: ReplicaRow) -> str:
    log = row.replica.log
    if isinstance(log, Unknown):
        return str(log.why)
    if row.replica.disk_read_ms is not None:
        return disk_text(row.replica.disk_read_ms)
    if log.leads:
        return ACTS_AS_LEADER
    return "answered" if isinstance(log.lineage, Lineage) else f"epochs {log.lineage.why}"


def _epoch(row: ReplicaRow) -> str:
    if row.log is None:
        return ""
    epoch = last_epoch(row.log)
    return "?" if epoch is None else "none" if epoch < 0 else str(epoch)


def _lineage(row: ReplicaRow) -> Lineage | Unknown:
    log = row.replica.log
    return log if isinstance(log, Unknown) else log.lineage


def _lineage_json(row: ReplicaRow) -> dict[str, object]:
    lineage = _lineage(row)
    if isinstance(lineage, Unknown):
        return unknown_json(lineage)
    return {"lastEpoch": lineage.last_epoch, "floor": lineage.floor, "spans": lineage.spans}


def _spans(row: ReplicaRow) -> str:
    lineage = _lineage(row)
    if isinstance(lineage, Unknown):
        return "" if row.log is None else "?"
    shown = lineage.spans[-SPANS_SHOWN:]
    earlier = "… " if len(lineage.spans) > len(shown) or (shown and lineage.floor < shown[0].start) else ""
    return earlier + " ".join(f"{s.epoch}:{s.start}-{s.end}" for s in shown) if shown else "empty"


def _learnt_by(row: ReplicaRow) -> str:
    if row.log is None:
        return ""
    return row.call if row.replica.disk_read_ms is None else disk_text(row.replica.disk_read_ms)


def _leads(row: ReplicaRow) -> bool | None:
    return None if row.log is None else row.log.leads


def _not_learnt(row: ReplicaRow) -> str:
    lineage = _lineage(row)
    if isinstance(lineage, Lineage):
        return ""
    return printable(str(lineage) if row.log is None else f"epochs: {lineage}")


def _number(
    name: str, title: str, text: Callable[[int], str] = offset, *, priority: int = 0, below: bool = False
) -> Field[ReplicaRow]:
    """A number of the log by its name in JSON; empty where there is no log."""
    attribute = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)

    def value(row: ReplicaRow) -> Any:
        return getattr(row.replica.log, attribute, None)

    def cell(row: ReplicaRow) -> str:
        return "" if row.log is None else text(value(row))

    return Field(name, title, value, cell, priority=priority, right=True, below=below)


_PARTITION: Field[ReplicaRow] = text_field("PARTITION", lambda r: str(r.survey.tp))


def verdict_field(verdict: Callable[[T], Verdict | None], priority: int, *, printed: bool = True) -> Field[T]:
    """What electing a row's replica loses of the acknowledged records, in a word or two; JSON has the verdict."""
    return Field(
        "acknowledged",
        "LOSES ACKED",
        lambda row: "" if (reached := verdict(row)) is None else short_verdict(reached),
        tone=lambda row: verdict_tone(verdict(row)),
        priority=priority,
        printed=printed,
        json=False,
    )


_LOSES_ACKED: Field[ReplicaRow] = verdict_field(lambda row: row.verdict, 1, printed=False)
_WHO: tuple[Field[ReplicaRow], ...] = (
    _PARTITION,
    Field(
        "broker",
        "BROKER",
        lambda r: r.replica.broker,
        lambda r: str(r.replica.broker),
        Tone.STRONG,
        right=True,
    ),
    Field(
        "rack",
        "RACK",
        lambda r: r.broker.rack if r.broker else None,
        lambda r: printable((r.broker.rack if r.broker else None) or ""),
        priority=9,
        printed=False,
        json=False,
    ),
    Field("in", "IN", _sets, _in, priority=2),
    Field(
        "standing",
        "CONTROLLER SAYS",
        lambda r: str(r.replica.standing),
        short="CONTROLLER",
        tone=lambda r: Tone.GOOD if r.replica.standing is Standing.ELECTABLE else Tone.BAD,
    ),
)
REPLICA: tuple[Field[ReplicaRow], ...] = (
    *_WHO,
    Field(
        "answers",
        "FROM HERE",
        _answers,
        tone=lambda r: Tone.GOOD if _answers(r) == "answered" else Tone.BAD,
        printed=False,
        json=False,
    ),
    Field("lastEpoch", "LAST EPOCH", lambda r: last_epoch(r.log), _epoch, right=True),
    _number("logEndOffset", "LOG END"),
    _LOSES_ACKED,
    _number("logStartOffset", "LOG START", priority=4),
    replace(_number("highWatermark", "HIGH WATERMARK", priority=3, below=True), short="HIGH WM"),
    _number("leaderEpoch", "LEADER EPOCH", str, priority=8, below=True),
    Field(
        "actsAsLeader",
        "ACTS AS LEADER",
        lambda r: getattr(r.replica.log, "leads", None),
        screen=False,
        printed=False,
    ),
    Field("lineage", "EPOCHS", _lineage_json, _spans, below=True, screen=False),
    _number("size", "SIZE", human_bytes, priority=6, below=True),
    Field(
        "age",
        "AGE",
        lambda r: r.age,
        lambda r: "" if r.age is None else age(r.age),
        right=True,
        priority=5,
        width=5,
        printed=False,
        json=False,
    ),
    Field(
        "logDir",
        "LOG DIR",
        lambda r: getattr(r.replica.log, "log_dir", None) or None,
        lambda r: printable(r.log.log_dir) if r.log else "",
        priority=7,
        below=True,
    ),
    Field(
        "call",
        "LEARNT BY",
        lambda r: (r.call or None) if r.replica.disk_read_ms is None else None,
        _learnt_by,
        priority=10,
        below=True,
    ),
    Field("diskReadAtMs", "READ AT", lambda r: r.replica.disk_read_ms, screen=False, printed=False),
    Field(
        "notLearnt",
        "NOT LEARNT",
        _not_learnt,
        tone=Tone.WARN,
        width=24,
        priority=11,
        flex=True,
        below=True,
        json=False,
    ),
)
ELECTED_REPLICA: tuple[Field[ReplicaRow], ...] = (
    _PARTITION,
    text_field("ELECT", lambda r: f"{r.replica.broker}{' (cannot)' if r.obstacle else ''}", right=True),
    text_field("OFFSETS LOST", lambda r: short_loss(loss(r.survey, r.replica.broker), last_epoch(r.log))),
    replace(_LOSES_ACKED, printed=True),
    text_field(
        "IN FULL", lambda r: "" if r.verdict is None else f"{r.obstacle}{verdict_text(r.verdict)}", below=True
    ),
)
"""What the election of a replica that was judged destroys."""
_WHO_JSON, _REPLICA_JSON = json_of(_WHO), json_of(REPLICA)


def log_json(row: ReplicaRow) -> dict[str, object]:
    """The replica's log, or why it is not known."""
    log = row.replica.log
    return {**_WHO_JSON(row), **unknown_json(log)} if isinstance(log, Unknown) else _REPLICA_JSON(row)
