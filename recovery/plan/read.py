"""Reading a plan file (docs/files.md).

Strict: what is wrong is one line that says where and what was expected. Keys that are not ours are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple, Protocol, TypeVar

from recovery.groups.offset_judgement import LastReadPlace
from recovery.loss import Loss
from recovery.model import NO_EPOCH, NO_LEADER, UNKNOWN_OFFSET, Standing, TopicPartition
from recovery.plan.edit import led_by
from recovery.plan.json_fields import (
    MAX_INT32,
    MAX_INT64,
    FieldError,
    Object,
    as_object,
    brokers,
    choice,
    integer,
    integers,
    items,
    objects,
    optional_integer,
    shown,
    spans,
    text,
    topic_partition,
)
from recovery.plan.json_rows import read_document
from recovery.plan.topic_marks import Mark
from recovery.plan.values import (
    FORMAT_VERSION,
    AffectedGroup,
    BarePlan,
    BareRow,
    Header,
    NotElected,
    Plan,
    PlanCandidate,
    PlanError,
    PlanRow,
    Silent,
)
from recovery.plan.verdict_json import read_verdict
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy

_OURS = ("formatVersion", "planId", "clusterId", "ranking", "notElected")


def from_json(text: str) -> Plan | BarePlan:
    """The plan in a file's text; a BarePlan where it has leaders but none of our header.

    A row whose ``designatedLeader`` was edited by hand is put in order for the new leader, and is refused
    where that broker cannot be elected. Raises PlanError.
    """
    try:
        if any(f'"{key}"' in text for key in _OURS):
            return _plan(read_document(text, _READERS))
        return _bare(read_document(text, {"partitions": _bare_row}))
    except FieldError as wrong:
        raise PlanError(str(wrong)) from None


def row_from_json(text: str, ranking: Ranking) -> PlanRow:
    """The row in text that :func:`recovery.plan.write.row_json` wrote. Raises PlanError."""
    try:
        return _led(0, _row(read_document(text, {})), ranking)
    except FieldError as wrong:
        raise PlanError(str(wrong)) from None


class _Row(Protocol):
    @property
    def tp(self) -> TopicPartition: ...


R = TypeVar("R", bound=_Row)
L = TypeVar("L")


def _plan(fields: Object) -> Plan:
    version = integer(fields, "formatVersion", 1)
    if version > FORMAT_VERSION:
        raise FieldError(
            ".formatVersion", f"this version of the tool reads 1 to {FORMAT_VERSION}, the file has {version}"
        )
    header = _header(fields)
    named: set[TopicPartition] = set()
    rows = tuple(
        [
            _led(index, row, header.ranking)
            for index, row in enumerate(_each_once(fields, "partitions", _Designated, named))
        ]
    )
    not_elected = tuple(_each_once(fields, "notElected", NotElected, named))
    if not named:
        raise FieldError(".partitions", "the plan names no partition")
    groups = tuple(_listed(fields, "groups", AffectedGroup))
    unread = tuple(_listed(fields, "groupsUnread", str))
    steps = (
        tuple(text({"steps": line}, "steps") for line in items(fields, "steps")) if "steps" in fields else ()
    )
    return Plan(header, rows, not_elected, groups, unread, steps)


def _listed(fields: Object, key: str, kind: type[L]) -> Iterator[L]:
    """What a reader made of the list at ``key``, if there is one."""
    for row in items(fields, key) if key in fields else ():
        assert isinstance(row, kind)
        yield row


def _bare(fields: Object) -> BarePlan:
    rows = tuple(_each_once(fields, "partitions", BareRow, set()))
    if not rows:
        raise FieldError(".partitions", "the file names no partition")
    return BarePlan(rows)


def _bare_row(fields: Object) -> BareRow:
    return BareRow(topic_partition(fields), integer(fields, "designatedLeader", 0, MAX_INT32))


def _each_once(fields: Object, key: str, kind: type[R], named: set[TopicPartition]) -> Iterator[R]:
    """The rows that a reader made of the list at ``key``, no partition twice."""
    for index, row in enumerate(items(fields, key)):
        assert isinstance(row, kind)
        if row.tp in named:
            raise FieldError(f".{key}[{index}]", f"{row.tp} stands in the file twice")
        named.add(row.tp)
        yield row


def _header(fields: Object) -> Header:
    return Header(
        text(fields, "planId"),
        text(fields, "clusterId"),
        _moment(fields, "madeAt"),
        text(fields, "madeBy"),
        text(fields, "toolVersion"),
        choice(fields, "ranking", Ranking),
        choice(fields, "strategy", Strategy),
        text(fields, "uncheckedAccepted") if "uncheckedAccepted" in fields else "",
    )


def _moment(fields: Object, key: str) -> datetime:
    value = text(fields, key)
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise FieldError(f".{key}", f"expected a time like 2026-01-31T12:00:00Z, not {shown(value)}")


class _Designated(NamedTuple):
    """A row as the file has it: its order may still be that of the leader before an edit."""

    row: PlanRow
    leader: int

    @property
    def tp(self) -> TopicPartition:
        return self.row.tp


def _row(fields: Object) -> _Designated:
    tp = topic_partition(fields)
    try:
        leader = integer(fields, "designatedLeader", 0, MAX_INT32)
        replicas = brokers(fields, "replicas")
        order = brokers(fields, "order")
        _check_order(replicas, order)
        candidates = objects(fields, "candidates", _candidate)
        unanswered = objects(fields, "silent", _silent) if "silent" in fields else ()
        _check_each_once(replicas, candidates, unanswered)
        _check_bounds(candidates, unanswered)
        row = PlanRow(
            tp,
            text(fields, "topicId"),
            integer(fields, "leaderEpoch", 0, MAX_INT32),
            replicas,
            order,
            candidates,
            unanswered,
            text(fields, "reason"),
            _marks(fields) if "marks" in fields else (),
            integer(fields, "otherRankingLeader", 0, MAX_INT32) if "otherRankingLeader" in fields else None,
            brokers(fields, "cleanElectors") if "cleanElectors" in fields else (),
            _ms(fields, "offlineSinceMs"),
            _ms(fields, "offlineAlreadyMs"),
        )
    except FieldError as wrong:
        raise FieldError(wrong.path, f"{wrong.problem} ({tp})") from None
    return _Designated(row, leader)


def _check_order(replicas: tuple[int, ...], order: tuple[int, ...]) -> None:
    if order != replicas and sorted(order) != sorted(replicas):
        raise FieldError(".order", f"expected the replicas {list(replicas)} in some order, not {list(order)}")


def _led(index: int, designated: _Designated, ranking: Ranking) -> PlanRow:
    """The row with its leader first, checked like an edit."""
    row, leader = designated
    candidate = row.candidate(leader)
    if candidate is not None and candidate.electable and row.leader == leader:
        return row
    try:
        return led_by(row, leader, ranking)
    except PlanError as error:
        raise FieldError(f".partitions[{index}].designatedLeader", f"{error} ({row.tp})") from None


def _check_each_once(
    replicas: tuple[int, ...], candidates: tuple[PlanCandidate, ...], unanswered: tuple[Silent, ...]
) -> None:
    reported = [candidate.broker for candidate in candidates]
    reported += [silent.broker for silent in unanswered]
    if len(reported) == len(replicas) and set(reported) == set(replicas):
        return
    for broker in reported:
        if broker not in replicas:
            raise FieldError(".candidates", f"broker {broker} is not in the replica set {list(replicas)}")
        if reported.count(broker) > 1:
            raise FieldError(".candidates", f"broker {broker} stands twice among candidates and silent")
    missing = next(broker for broker in replicas if broker not in reported)
    raise FieldError(".candidates", f"replica {missing} is neither a candidate nor silent")


def _check_bounds(candidates: tuple[PlanCandidate, ...], unanswered: tuple[Silent, ...]) -> None:
    """What a silent replica holds nobody knows: a loss with an upper bound was written by hand."""
    if unanswered and any(candidate.loss.at_most is not None for candidate in candidates):
        names = ", ".join(str(silent.broker) for silent in unanswered)
        raise FieldError(
            ".candidates", f"a loss has an upper bound, although nobody knows what broker {names} holds"
        )


def _silent(fields: Object) -> Silent:
    return Silent(integer(fields, "broker", 0, MAX_INT32), choice(fields, "standing", Standing))


_CANDIDATE = (
    ("broker", 0, MAX_INT32),
    ("leaderEpoch", NO_EPOCH, MAX_INT32),
    ("logEnd", 0, MAX_INT64),
    ("logStart", UNKNOWN_OFFSET, MAX_INT64),
    ("highWatermark", UNKNOWN_OFFSET, MAX_INT64),
)


def _candidate(fields: Object) -> PlanCandidate:
    broker, leader_epoch, log_end, log_start, high_watermark = integers(fields, _CANDIDATE)
    return PlanCandidate(
        broker,
        choice(fields, "standing", Standing),
        leader_epoch,
        optional_integer(fields, "lastEpoch", NO_EPOCH, MAX_INT32),
        log_end,
        log_start,
        high_watermark,
        _loss(fields.get("loss")),
        optional_integer(fields, "diskReadAtMs") if "diskReadAtMs" in fields else None,
        read_verdict(fields["acknowledged"]) if "acknowledged" in fields else None,
        fields.get("stillWrites") is True,
    )


_NOTHING = Loss(0, 0, (), (), ())


def _loss(value: object) -> Loss:
    try:
        fields = as_object(value)
        at_least = integer(fields, "atLeast")
        at_most = optional_integer(fields, "atMost", at_least)
        if at_most == 0 and len(fields) == len(("atLeast", "atMost")):
            return _NOTHING
        return Loss(
            at_least,
            at_most,
            spans(fields, "tail") if "tail" in fields else (),
            spans(fields, "head") if "head" in fields else (),
            brokers(fields, "unanswered") if "unanswered" in fields else (),
            integer(fields, "firstMs") if "firstMs" in fields else None,
            integer(fields, "lastMs") if "lastMs" in fields else None,
            optional_integer(fields, "compacted", 0) if "compacted" in fields else 0,
        )
    except FieldError as wrong:
        raise wrong.under(".loss") from None


def _marks(fields: Object) -> tuple[Mark, ...]:
    return tuple(choice({"marks": value}, "marks", Mark) for value in items(fields, "marks"))


def _not_elected(fields: Object) -> NotElected:
    return NotElected(
        topic_partition(fields),
        choice(fields, "verdict", DecisionKind),
        brokers(fields, "waitsFor"),
        text(fields, "reason"),
        integer(fields, "leader", 0, MAX_INT32) if "leader" in fields else NO_LEADER,
        _ms(fields, "offlineSinceMs"),
        _ms(fields, "offlineAlreadyMs"),
    )


def _ms(fields: Object, name: str) -> int | None:
    return integer(fields, name) if name in fields else None


def _affected_group(fields: Object) -> AffectedGroup:
    return AffectedGroup(
        topic_partition(fields),
        text(fields, "group"),
        integer(fields, "offset"),
        integer(fields, "epoch", NO_EPOCH, MAX_INT32),
        choice(fields, "lastRead", LastReadPlace),
        optional_integer(fields, "goBackTo"),
        integer(fields, "leader", 0, MAX_INT32),
    )


def _why_unread(fields: Object) -> str:
    return text(fields, "why")


_READERS = {
    "partitions": _row,
    "notElected": _not_elected,
    "groups": _affected_group,
    "groupsUnread": _why_unread,
}
