"""Partition states: DescribeTopicPartitions page by page, Metadata where that is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from backends.base.answers import LogDir, LogDirReplica, Partitions
from backends.base.errors import BackendError
from backends.live.calls.authorized_operations import Operations
from backends.live.calls.describe_log_dirs import DirReplicas
from backends.live.calls.unlisted_leaders import LISTENER_NOT_FOUND, no_listener, unlisted_leaders
from backends.live.codec.apis import Api
from backends.live.codec.primitives import kafka_id
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import on_topic, unknown
from recovery.controller.rules import ELR_FEATURE
from recovery.model import NO_LEADER, PartitionState, TopicPartition, Unknown, Why

if TYPE_CHECKING:
    from kio.schema.describe_topic_partitions.v0.response import (
        Cursor,
        DescribeTopicPartitionsResponseTopic,
    )
    from kio.schema.errors import ErrorCode
    from kio.schema.metadata.v12.response import MetadataResponseTopic

PAGE = 2_000
"""Partitions a page: what a broker gives at most (max.request.partition.size.limit)."""
NAMES = 500
"""Topic names a request: they are sent again with every page."""
WHOLE_TOPIC = -1
"""The partition under which ``Partitions.unknown`` tells of a topic as a whole."""

_topic = attrgetter("topic")

_UNKNOWN_TOPIC = 3
_TOPIC_AUTHORIZATION_FAILED = 29


async def describe_partitions(
    conn: BrokerConnection,
    topics: Sequence[str] | None = None,
    *,
    page: int = PAGE,
    timeout: float | None = None,
) -> Partitions:
    """All partitions that the caller may see, or those of ``topics``; ``timeout`` is that of each request.

    A topic that may not be described is in ``hidden``; that one, or one that does not exist, is in ``unknown``
    under partition WHOLE_TOPIC. A partition is in ``unknown``, and not among the states, where this broker
    cannot tell its leader because that one has no such listener. Needs DESCRIBE on each topic.
    Raises BrokerError, BackendError.
    """
    features = conn.features
    gathered = _StateCollector(elr_offered=features is None or features.get(ELR_FEATURE, 0) >= 1)
    names = None if topics is None else list(dict.fromkeys(topics))
    if conn.highest(Api.DescribeTopicPartitions) is None:
        await _by_metadata(conn, names, gathered, timeout)
    elif names is None:
        await _by_pages(conn, [], gathered, page, timeout)
    else:
        names.sort()  # the broker pages through them in this order
        for start in range(0, len(names), NAMES):
            await _by_pages(conn, names[start : start + NAMES], gathered, page, timeout)
    unlisted = await unlisted_leaders(conn, gathered.states, timeout=timeout)
    states = gathered.states
    return Partitions(
        tuple([state for state in states if state.tp not in unlisted] if unlisted else states),
        {**gathered.unknown, **unlisted},
        tuple(sorted(gathered.hidden)),
        visible_only=topics is None,
        asked=-1 if conn.broker is None else conn.broker,
    )


async def describe_some(conn: BrokerConnection, partitions: Iterable[TopicPartition]) -> Partitions:
    """As :func:`describe_partitions`, of ``partitions``; partitions between them may be in the answer too.

    A thousand partitions of a topic with many thousands are described without the rest.
    """
    ordered = sorted(partitions)
    if conn.highest(Api.DescribeTopicPartitions) is None:
        return await describe_partitions(conn, [tp.topic for tp in ordered])
    features = conn.features
    gathered = _StateCollector(elr_offered=features is None or features.get(ELR_FEATURE, 0) >= 1)
    last_of = {tp.topic: tp for tp in ordered}
    first_of = {tp.topic: tp for tp in reversed(ordered)}
    names = list(last_of)
    for start in range(0, len(names), NAMES):
        part = names[start : start + NAMES]
        first, last = first_of[part[0]], last_of[part[-1]]
        await _by_pages(conn, part, gathered, PAGE, None, first=first, last=last)
    asked = -1 if conn.broker is None else conn.broker
    return Partitions(tuple(gathered.states), gathered.unknown, tuple(sorted(gathered.hidden)), asked=asked)


async def topic_operations(
    conn: BrokerConnection, *, timeout: float | None = None
) -> Mapping[str, Operations | None]:
    """The authorized operations on each topic that the caller may describe; None if the broker does not tell.

    Raises BrokerError, BackendError.
    """
    gathered = _StateCollector(elr_offered=True)
    if conn.highest(Api.DescribeTopicPartitions) is None:
        await _by_metadata(conn, None, gathered, timeout, operations=True)
    else:
        await _by_pages(conn, [], gathered, PAGE, timeout)
    return gathered.operations


class _StateCollector:
    """Collects the states. Equal tuples are stored once: most partitions share their replica list with others."""

    def __init__(self, *, elr_offered: bool) -> None:
        self.states: list[PartitionState] = []
        self.unknown: dict[TopicPartition, Unknown] = {}
        self.hidden: set[str] = set()
        self.operations: dict[str, Operations | None] = {}
        self._tuples: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._nobody: tuple[int, ...] | None = () if elr_offered else None

    def refused(self, topic: str, code: ErrorCode, call: str) -> bool:
        """Note a topic's error; True where it has one."""
        if not code:
            return False
        why = unknown(code, call, on_topic("DESCRIBE", topic))
        if code == _UNKNOWN_TOPIC:
            why = Unknown(Why.FAILED, f"topic {topic} does not exist")
        self.unknown[TopicPartition(topic, WHOLE_TOPIC)] = why
        if code == _TOPIC_AUTHORIZATION_FAILED:
            self.hidden.add(topic)
        return True

    def add_described(self, topic: DescribeTopicPartitionsResponseTopic) -> None:
        """Take over one topic's partitions of a page."""
        name = str(topic.name or "")
        if self.refused(name, topic.error_code, "DescribeTopicPartitions"):
            return
        self.operations[name] = Operations.of(topic.topic_authorized_operations)
        topic_id, once, nobody = kafka_id(topic.topic_id), self._tuples.setdefault, self._nobody
        for p in topic.partitions:
            if p.error_code == LISTENER_NOT_FOUND:
                self._no_listener(name, p.partition_index)
                continue
            elr, last = p.eligible_leader_replicas, p.last_known_elr  # also empty where the ELR is off
            self.states.append(
                PartitionState(
                    name,
                    p.partition_index,
                    topic_id,
                    p.leader_id,
                    p.leader_epoch,
                    once(p.replica_nodes, p.replica_nodes),
                    once(p.isr_nodes, p.isr_nodes),
                    once(elr, elr) if elr else nobody,
                    # Kafka can write -1 here where a partition has lost its leader and the last one's name.
                    once(last, last) if last and last != (NO_LEADER,) else nobody,
                    once(p.offline_replicas, p.offline_replicas),
                )
            )

    def add_metadata(self, topic: MetadataResponseTopic) -> None:
        """Take over one topic of a Metadata answer, which has no ELR."""
        name = str(topic.name or "")
        if self.refused(name, topic.error_code, "Metadata"):
            return
        self.operations[name] = Operations.of(topic.topic_authorized_operations)
        topic_id, once = kafka_id(topic.topic_id), self._tuples.setdefault
        for p in topic.partitions:
            if p.error_code == LISTENER_NOT_FOUND:
                self._no_listener(name, p.partition_index)
                continue
            self.states.append(
                PartitionState(
                    name,
                    p.partition_index,
                    topic_id,
                    p.leader_id,
                    p.leader_epoch,
                    once(p.replica_nodes, p.replica_nodes),
                    once(p.isr_nodes, p.isr_nodes),
                    None,
                    None,
                    once(p.offline_replicas, p.offline_replicas),
                )
            )

    def _no_listener(self, topic: str, partition: int) -> None:
        self.unknown[TopicPartition(topic, partition)] = no_listener("listener of the kind that was asked")


async def _by_pages(
    conn: BrokerConnection,
    names: Sequence[str],
    gathered: _StateCollector,
    page: int,
    timeout: float | None,
    *,
    first: TopicPartition | None = None,
    last: TopicPartition | None = None,
) -> None:
    """Follow the cursor from ``first`` to ``last``. Raises BackendError where it does not move forward."""
    cursor: tuple[str, int] | None = first
    while True:
        if cursor is not None and last is not None and cursor[0] == last.topic:
            page = min(page, last.partition - cursor[1] + 1)
        following = await _page(conn, names, cursor, page, timeout, gathered=gathered)
        if following is None or (last is not None and following > last):
            return
        if cursor is not None and following <= cursor:
            raise BackendError(f"{conn.where}: DescribeTopicPartitions does not get beyond {following[0]}")
        cursor = following


async def _page(
    conn: BrokerConnection,
    names: Sequence[str],
    cursor: tuple[str, int] | None,
    page: int,
    timeout: float | None,
    *,
    gathered: _StateCollector,
) -> tuple[str, int] | None:
    """One page into ``gathered``; where the next begins."""
    from kio.schema.describe_topic_partitions.v0.request import (
        Cursor,
        DescribeTopicPartitionsRequest,
        TopicRequest,
    )
    from kio.schema.describe_topic_partitions.v0.response import DescribeTopicPartitionsResponse
    from kio.schema.types import TopicName
    from kio.static.primitive import i32

    start = Cursor(topic_name=TopicName(cursor[0]), partition_index=i32(cursor[1])) if cursor else None
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=TopicName(name)) for name in names),
        response_partition_limit=i32(page),
        cursor=start,
    )
    answer = await conn.send(request, DescribeTopicPartitionsResponse, timeout=timeout, ahead=True)
    for topic in answer.topics:
        gathered.add_described(topic)
    return _position(answer.next_cursor)


def _position(cursor: Cursor | None) -> tuple[str, int] | None:
    return None if cursor is None else (str(cursor.topic_name), int(cursor.partition_index))


async def _by_metadata(
    conn: BrokerConnection,
    names: Sequence[str] | None,
    gathered: _StateCollector,
    timeout: float | None,
    *,
    operations: bool = False,
) -> None:
    from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
    from kio.schema.metadata.v12.response import MetadataResponse
    from kio.schema.types import TopicName

    batches: list[Sequence[str] | None] = (
        [None] if names is None else [names[i : i + NAMES] for i in range(0, len(names), NAMES)]
    )
    for batch in batches:
        topics = (
            None
            if batch is None
            else tuple(MetadataRequestTopic(topic_id=None, name=TopicName(n)) for n in batch)
        )
        request = MetadataRequest(
            topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=operations
        )
        for topic in (await conn.send(request, MetadataResponse, timeout=timeout)).topics:
            gathered.add_metadata(topic)


def topics_only_in_log_dirs(
    partitions: Partitions, log_dirs: Mapping[int, tuple[LogDir, ...] | Unknown]
) -> tuple[str, ...]:
    """Topics with replicas in log dirs that are not among ``partitions``: hidden, or deleted meanwhile.

    A list of all topics silently leaves out those that the caller may not see; DescribeLogDirs does not.
    """
    topics: set[str] = set()
    for dirs in log_dirs.values():
        if not isinstance(dirs, Unknown):
            topics.update(*(_topics_in(log_dir.replicas) for log_dir in dirs))
    return tuple(sorted(topics.difference(map(_topic, partitions.states), _named(partitions.unknown))))


def _topics_in(replicas: Sequence[LogDirReplica]) -> set[str]:
    return replicas.topics() if isinstance(replicas, DirReplicas) else {one.tp.topic for one in replicas}


def _named(unknown_partitions: Iterable[TopicPartition]) -> set[str]:
    return {tp.topic for tp in unknown_partitions}


async def with_hidden(conn: BrokerConnection, partitions: Partitions, unseen: Sequence[str]) -> Partitions:
    """Ask for ``unseen`` topics by name, and add what the broker answers: hidden ones, or new states.

    A topic that does not exist any more adds nothing. Raises BrokerError, BackendError.
    """
    if not unseen:
        return partitions
    reported = await describe_partitions(conn, unseen)
    hidden = set(reported.hidden)
    return replace(
        partitions,
        states=partitions.states + reported.states,
        unknown={
            **partitions.unknown,
            **{tp: why for tp, why in reported.unknown.items() if tp.topic in hidden or tp.partition >= 0},
        },
        hidden=tuple(sorted(hidden.union(partitions.hidden))),
    )
