"""Reading a plan file (design: "The plan file").

Strict: what is wrong is one line that says where and what was expected. Keys that are not ours are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Protocol

from recovery.loss import Loss
from recovery.model import NO_EPOCH, NO_LEADER, UNKNOWN_OFFSET, Standing, TopicPartition
from recovery.plan import relaxed
from recovery.plan.edit import led_by
from recovery.plan.fields import (
    MAX_INT32,
    Object,
    Wrong,
    as_object,
    brokers,
    choice,
    integer,
    items,
    objects,
    optional_integer,
    shown,
    spans,
    text,
    topic_partition,
)
from recovery.plan.marks import Mark
from recovery.plan.values import (
    FORMAT_VERSION,
    BarePlan,
    BareRow,
    Header,
    NotElected,
    Plan,
    PlanCandidate,
    PlanError,
    PlanRow,
)
from recovery.ranking import Ranking
from recovery.strategy import Strategy, Verdict

_OURS = ("formatVersion", "planId", "clusterId", "ranking", "notElected")


def from_json(document: str) -> Plan | BarePlan:
    """The plan in a file's text; a BarePlan where it has leaders but none of our header.

    A row whose ``designatedLeader`` was edited by hand is put in order for the new leader, and is refused
    where that broker cannot be elected. Raises PlanError.
    """
    fields = _parsed(document)
    ours = any(key in fields for key in _OURS)
    try:
        return _plan(fields) if ours else _bare(fields)
    except Wrong as wrong:
        raise PlanError(str(wrong)) from None


def _parsed(document: str) -> Object:
    try:
        return as_object(json.loads(document, object_pairs_hook=_once, parse_constant=_refuse))
    except json.JSONDecodeError as error:
        if not document.strip():
            raise PlanError("the file is empty") from None
        raise PlanError(f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise PlanError("not a plan: nested too deep") from None
    except Wrong as wrong:
        raise PlanError(str(wrong)) from None
    except ValueError:
        # A key twice, NaN, a number of thousands of digits: the slow reader knows the place.
        relaxed.parse(document, bare_keys=False)
        raise PlanError("not JSON") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError
    return fields


def _refuse(_constant: str) -> object:
    raise ValueError


class _Row(Protocol):
    @property
    def tp(self) -> TopicPartition: ...


def _plan(fields: Object) -> Plan:
    version = integer(fields, "formatVersion", 1)
    if version != FORMAT_VERSION:
        raise Wrong(
            ".formatVersion", f"this version of the tool reads {FORMAT_VERSION}, the file has {version}"
        )
    header = _header(fields)
    rows = objects(fields, "partitions", lambda row: _row(row, header.ranking))
    _refuse_twice("partitions", rows, set())
    not_elected = objects(fields, "notElected", _not_elected)
    _refuse_twice("notElected", not_elected, {row.tp for row in rows})
    if not rows and not not_elected:
        raise Wrong(".partitions", "the plan names no partition")
    return Plan(header, rows, not_elected)


def _bare(fields: Object) -> BarePlan:
    rows = objects(
        fields,
        "partitions",
        lambda row: BareRow(topic_partition(row), integer(row, "designatedLeader", 0, MAX_INT32)),
    )
    if not rows:
        raise Wrong(".partitions", "the file names no partition")
    _refuse_twice("partitions", rows, set())
    return BarePlan(rows)


def _refuse_twice(key: str, rows: Iterable[_Row], seen: set[TopicPartition]) -> None:
    for index, row in enumerate(rows):
        if row.tp in seen:
            raise Wrong(f".{key}[{index}]", f"{row.tp} stands in the file twice")
        seen.add(row.tp)


def _header(fields: Object) -> Header:
    return Header(
        text(fields, "planId"),
        text(fields, "clusterId"),
        _moment(fields, "madeAt"),
        text(fields, "madeBy"),
        text(fields, "toolVersion"),
        choice(fields, "ranking", Ranking),
        choice(fields, "strategy", Strategy),
    )


def _moment(fields: Object, key: str) -> datetime:
    value = text(fields, key)
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise Wrong(f".{key}", f"expected a time like 2026-01-31T12:00:00Z, not {shown(value)}")


def _row(fields: Object, ranking: Ranking) -> PlanRow:
    tp = topic_partition(fields)
    try:
        leader = integer(fields, "designatedLeader", 0, MAX_INT32)
        replicas = brokers(fields, "replicas")
        order = brokers(fields, "order")
        _check_order(replicas, order, leader)
        row = PlanRow(
            tp,
            text(fields, "topicId"),
            integer(fields, "leaderEpoch", 0, MAX_INT32),
            replicas,
            order,
            _candidates(fields, replicas),
            text(fields, "reason"),
            _marks(fields) if "marks" in fields else (),
            integer(fields, "otherRankingLeader", 0, MAX_INT32) if "otherRankingLeader" in fields else None,
        )
        return _led(row, leader, ranking)
    except Wrong as wrong:
        raise Wrong(wrong.path, f"{wrong.problem} ({tp})") from None


def _check_order(replicas: tuple[int, ...], order: tuple[int, ...], leader: int) -> None:
    if leader not in replicas:
        raise Wrong(".designatedLeader", f"broker {leader} is not in the replica set {list(replicas)}")
    if order != replicas and sorted(order) != sorted(replicas):
        raise Wrong(".order", f"expected the replicas {list(replicas)} in some order, not {list(order)}")


def _led(row: PlanRow, leader: int, ranking: Ranking) -> PlanRow:
    """The row with ``leader`` first; checked like an edit, whoever made it."""
    candidate = row.candidate(leader)
    if candidate is not None and candidate.electable and row.leader == leader:
        return row
    try:
        return led_by(row, leader, ranking)
    except PlanError as error:
        raise Wrong(".designatedLeader", str(error)) from None


def _candidates(fields: Object, replicas: tuple[int, ...]) -> tuple[PlanCandidate, ...]:
    candidates = objects(fields, "candidates", _candidate)
    ids = {candidate.broker for candidate in candidates}
    if len(ids) != len(candidates):
        raise Wrong(".candidates", "a broker is a candidate twice")
    if not ids.issubset(replicas):
        strangers = sorted(ids.difference(replicas))
        raise Wrong(".candidates", f"broker {strangers[0]} is not in the replica set {list(replicas)}")
    return candidates


def _candidate(fields: Object) -> PlanCandidate:
    return PlanCandidate(
        integer(fields, "broker", 0, MAX_INT32),
        choice(fields, "standing", Standing),
        integer(fields, "leaderEpoch", NO_EPOCH, MAX_INT32),
        optional_integer(fields, "lastEpoch", NO_EPOCH, MAX_INT32),
        integer(fields, "logEnd"),
        integer(fields, "logStart", UNKNOWN_OFFSET),
        integer(fields, "highWatermark", UNKNOWN_OFFSET),
        _loss(fields.get("loss")),
    )


def _loss(value: object) -> Loss:
    try:
        fields = as_object(value)
        at_least = integer(fields, "atLeast")
        at_most = optional_integer(fields, "atMost", at_least)
        return Loss(
            at_least,
            at_most,
            spans(fields, "tail"),
            spans(fields, "head"),
            brokers(fields, "unanswered") if "unanswered" in fields else (),
            integer(fields, "firstMs") if "firstMs" in fields else None,
            integer(fields, "lastMs") if "lastMs" in fields else None,
        )
    except Wrong as wrong:
        raise wrong.under(".loss") from None


def _marks(fields: Object) -> tuple[Mark, ...]:
    return tuple(choice({"marks": value}, "marks", Mark) for value in items(fields, "marks"))


def _not_elected(fields: Object) -> NotElected:
    return NotElected(
        topic_partition(fields),
        choice(fields, "verdict", Verdict),
        brokers(fields, "waitsFor"),
        text(fields, "reason"),
        integer(fields, "leader", 0, MAX_INT32) if "leader" in fields else NO_LEADER,
    )
