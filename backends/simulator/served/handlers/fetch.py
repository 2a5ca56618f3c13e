"""Fetch of consumers and debugging replicas, from leaders and followers.

As in Kafka, a consumer of v11 or later may read from any replica (KIP-392), and the last fetched epoch is
compared with the log (KIP-595). Replica -3 reads to the log's end, all others to the high watermark.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import Struct
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from backends.live.codec.message_fields import Values
from backends.live.codec.primitives import NO_TAGS, compact_string, kafka_id, unsigned_varint
from backends.simulator.broker.broker_access import BrokerAccess
from backends.simulator.broker.replica_log import read
from backends.simulator.partition_table import topic_names
from backends.simulator.served.hosted_replica import HostedReplica, current, end_of, find
from backends.simulator.served.response_encoding import topic_array, uuid_bytes
from backends.simulator.served.served_call import ServedCall
from recovery.model import EpochSpan, TopicPartition

CONSUMER, DEBUGGING, FUTURE = -1, -2, -3
FROM_ANY_REPLICA = 11
FLEXIBLE_FROM = 12
BY_ID_FROM = 13
PAUSE = 0.02
"""Seconds between two checks for records while a consumer waits."""
MOST_RECORDS = 10_000


class FetchedRow(NamedTuple):
    """The answer for one partition. ``aborted`` are (producer, first offset); None: not asked for."""

    number: int
    error: ErrorCode
    high_watermark: int = -1
    log_start: int = -1
    diverging: tuple[int, int] | None = None
    records: bytes = b""
    leader: tuple[int, int] | None = None
    last_stable: int = -1
    aborted: tuple[tuple[int, int], ...] | None = None


class FetchReader(NamedTuple):
    """One request at one broker. ``left`` holds the bytes that the answer may still take."""

    call: ServedCall
    broker: BrokerAccess
    replica_id: int
    left: list[int]


Topics = list[tuple[str, str | None, list[FetchedRow]]]
"""(Name or empty if unknown, id if the request has ids, rows)."""


async def fetch(call: ServedCall) -> Values | bytes:
    """Without sessions: every answer is complete and has session id 0 (KIP-227)."""
    request = call.request
    loop = asyncio.get_running_loop()
    deadline = loop.time() + request.max_wait.total_seconds()
    while True:
        topics: Topics = await call.read_broker(lambda broker: _read_topics(call, broker))
        if loop.time() >= deadline or not call.context.clock.speed or _enough(topics, request.min_bytes):
            return _answer(call, topics)
        await asyncio.sleep(min(PAUSE, max(0.0, deadline - loop.time())))


def _enough(topics: Topics, least: int) -> bool:
    rows = [row for _, _, rows in topics for row in rows]
    if any(row.error is not ErrorCode.none or row.diverging is not None for row in rows):
        return True
    return sum(len(row.records) for row in rows) >= least


def _read_topics(call: ServedCall, broker: BrokerAccess) -> Topics:
    by_id: Mapping[str, str] = {}
    if call.version >= BY_ID_FROM:
        by_id = topic_names(broker.state.image)
    replica_id = call.request.replica_state.replica_id if call.version >= 15 else call.request.replica_id
    reader = FetchReader(call, broker, replica_id, [call.field("max_bytes", 2**31 - 1)])
    found: Topics = []
    for topic in call.request.topics:
        asked_id = kafka_id(topic.topic_id) if call.version >= BY_ID_FROM else None
        name = topic.topic if asked_id is None else by_id.get(asked_id, "")
        rows = []
        for asked in topic.partitions:
            if not name:
                rows.append(FetchedRow(asked.partition, ErrorCode.unknown_topic_id))
            elif not call.rights.topic("READ", name):
                rows.append(FetchedRow(asked.partition, ErrorCode.topic_authorization_failed))
            else:
                rows.append(_one(reader, TopicPartition(name, asked.partition), asked))
        found.append((name, asked_id, rows))
    return found


def _one(reader: FetchReader, tp: TopicPartition, asked: Any) -> FetchedRow:
    replica = find(reader.broker, tp)
    if isinstance(replica, ErrorCode):
        return FetchedRow(tp.partition, replica)
    leader = (replica.partition.leader, replica.partition.leader_epoch)
    error = current(replica, getattr(asked, "current_leader_epoch", -1))
    replica_id = reader.replica_id
    only_leader = replica_id >= 0 or (replica_id == CONSUMER and reader.call.version < FROM_ANY_REPLICA)
    if error is ErrorCode.none and only_leader and not replica.leads:
        error = ErrorCode.not_leader_or_follower
    if error is not ErrorCode.none:
        return FetchedRow(tp.partition, error, leader=leader)
    log = replica.log
    if not log.start <= asked.fetch_offset <= log.end:
        return FetchedRow(tp.partition, ErrorCode.offset_out_of_range)
    transactions = reader.call.context.world.context.transactions
    last_stable, aborted = transactions.last_stable(tp, log), None
    last_epoch = getattr(asked, "last_fetched_epoch", -1)
    if last_epoch >= 0:
        epoch, end = end_of(replica, last_epoch)
        if end < 0:
            return FetchedRow(tp.partition, ErrorCode.offset_out_of_range)
        if epoch < last_epoch or end < asked.fetch_offset:
            parted = FetchedRow(tp.partition, ErrorCode.none, log.high_watermark, log.start, (epoch, end))
            return parted._replace(last_stable=last_stable)
    until = log.end if replica_id == FUTURE or replica_id >= 0 else log.high_watermark
    if reader.call.read_committed and until <= log.high_watermark:
        until = last_stable
        aborted = tuple(transactions.aborted(tp, log, asked.fetch_offset, until))
    data = _data(reader, tp, replica, asked, until)
    return FetchedRow(
        tp.partition, ErrorCode.none, log.high_watermark, log.start, None, data, None, last_stable, aborted
    )


def _data(reader: FetchReader, tp: TopicPartition, replica: HostedReplica, asked: Any, until: int) -> bytes:
    """Whole batches up to the request's limits; at least one if there is any (KIP-74)."""
    if asked.fetch_offset >= until or reader.left[0] <= 0:
        return b""
    room = min(asked.partition_max_bytes, reader.left[0])
    parts: list[bytes] = []
    size = 0
    spans = read(replica.log, asked.fetch_offset, min(MOST_RECORDS, until - asked.fetch_offset))
    for batch in _batches(reader.call, tp, spans):
        if parts and size + len(batch) > room:
            break
        parts.append(batch)
        size += len(batch)
    reader.left[0] -= size
    return b"".join(parts)


def _batches(call: ServedCall, tp: TopicPartition, spans: Iterable[EpochSpan]) -> Iterator[bytes]:
    world = call.context.world.context
    for span in spans:

        def time_of(offset: int, epoch: int = span.epoch) -> int:
            return call.context.in_epoch_ms(world.times.of(tp, epoch, offset)[0])

        yield from world.contents.read(tp, span, time_of)


def _answer(call: ServedCall, topics: Topics) -> Values | bytes:
    if call.version >= FLEXIBLE_FROM:
        return packed_fetch(topics)
    return {
        "session_id": 0,
        "responses": [{"topic": name, "partitions": _plain(rows)} for name, _, rows in topics],
    }


def _plain(rows: Sequence[FetchedRow]) -> list[Values]:
    return [
        {
            "partition_index": row.number,
            "error_code": row.error,
            "high_watermark": row.high_watermark,
            "last_stable_offset": row.last_stable,
            "log_start_offset": row.log_start,
            "aborted_transactions": None
            if row.aborted is None
            else [{"producer_id": producer, "first_offset": first} for producer, first in row.aborted],
            "preferred_read_replica": -1,
            "records": row.records,
        }
        for row in rows
    ]


_FIXED = Struct(">ihqqq").pack
_ABORTED = Struct(">qqB").pack
_NO_PREFERRED_REPLICA = Struct(">i").pack(-1)
_DIVERGING = Struct(">BBBiqB").pack


def packed_fetch(topics: Topics) -> bytes:
    """FetchResponse v12 to v18."""
    rows = [
        (compact_string(name) if by_id is None else uuid_bytes(by_id), [_row(row) for row in rows])
        for name, by_id, rows in topics
    ]
    return b"".join((bytes(4), b"\0\0", bytes(4), topic_array(rows), NO_TAGS))


def _row(row: FetchedRow) -> bytes:
    fixed = _FIXED(row.number, row.error.value, row.high_watermark, row.last_stable, row.log_start)
    tags = NO_TAGS
    if row.diverging is not None:
        tags = _DIVERGING(1, 0, 13, *row.diverging, 0)
    elif row.leader is not None:
        tags = _leader(row.leader)
    aborted = unsigned_varint(0)
    if row.aborted is not None:
        rows = (_ABORTED(producer, first, 0) for producer, first in row.aborted)
        aborted = unsigned_varint(len(row.aborted) + 1) + b"".join(rows)
    size = unsigned_varint(len(row.records) + 1)
    return b"".join((fixed, aborted, _NO_PREFERRED_REPLICA, size, row.records, tags))


def _leader(leader: tuple[int, int]) -> bytes:
    """Tag 1, CurrentLeader (KIP-951)."""
    return b"\1\1\x09" + Struct(">iiB").pack(*leader, 0)
