"""ListOffsets and OffsetForLeaderEpoch, answered from the asked broker's own logs."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from backends.live.codec.message_fields import Values
from backends.live.codec.primitives import NO_TAGS, compact_string
from backends.simulator.broker.broker_access import BrokerAccess
from backends.simulator.served.hosted_replica import HostedReplica, current, end_of, find
from backends.simulator.served.response_encoding import topic_array
from backends.simulator.served.served_call import ServedCall
from recovery.model import TopicPartition

CONSUMER, DEBUGGING = -1, -2
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4
FLEXIBLE_FROM = 6


class OffsetRow(NamedTuple):
    """The answer for one partition; -1 means none."""

    number: int
    error: ErrorCode
    timestamp: int = -1
    offset: int = -1
    epoch: int = -1


async def list_offsets(call: ServedCall) -> Values | bytes:
    """From the leader for a consumer, from any replica for the debugging replica."""
    topics = await call.read_broker(lambda broker: _all(call, broker))
    if call.version >= FLEXIBLE_FROM:
        return _packed(topics)
    return {
        "topics": [
            {
                "name": name,
                "partitions": [
                    {
                        "partition_index": row.number,
                        "error_code": row.error,
                        "timestamp": row.timestamp,
                        "offset": row.offset,
                        "leader_epoch": row.epoch,
                    }
                    for row in rows
                ],
            }
            for name, rows in topics
        ]
    }


def _packed(topics: Sequence[tuple[str, Sequence[OffsetRow]]]) -> bytes:
    """ListOffsetsResponse v6 to v11."""
    row = Struct(">ihqqiB").pack
    body = topic_array(
        [
            (
                compact_string(name),
                [row(r.number, r.error.value, r.timestamp, r.offset, r.epoch, 0) for r in rows],
            )
            for name, rows in topics
        ]
    )
    return b"".join((bytes(4), body, NO_TAGS))


def _all(call: ServedCall, broker: BrokerAccess) -> list[tuple[str, list[OffsetRow]]]:
    replica_id = call.request.replica_id
    found = []
    for topic in call.request.topics:
        name = topic.name
        allowed = call.rights.topic("DESCRIBE", name)
        rows = []
        for asked in topic.partitions:
            tp = TopicPartition(name, asked.partition_index)
            if not allowed:
                rows.append(OffsetRow(tp.partition, ErrorCode.topic_authorization_failed))
            else:
                rows.append(_one(call, broker, tp, asked, replica_id))
        found.append((name, rows))
    return found


def _one(
    call: ServedCall, broker: BrokerAccess, tp: TopicPartition, asked: Any, replica_id: int
) -> OffsetRow:
    replica = find(broker, tp)
    if isinstance(replica, ErrorCode):
        return OffsetRow(tp.partition, replica)
    error = current(replica, getattr(asked, "current_leader_epoch", -1))
    if error is ErrorCode.none and replica_id != DEBUGGING and not replica.leads:
        error = ErrorCode.not_leader_or_follower
    if error is not ErrorCode.none:
        return OffsetRow(tp.partition, error)
    return _at(call, tp, replica, asked.timestamp, consumer=replica_id == CONSUMER)


def _at(
    call: ServedCall, tp: TopicPartition, replica: HostedReplica, timestamp: int, *, consumer: bool
) -> OffsetRow:
    log = replica.log
    if timestamp == LATEST:
        end = log.high_watermark if consumer else log.end
        if consumer and call.read_committed:
            end = call.context.world.context.transactions.last_stable(tp, log)
        return OffsetRow(tp.partition, ErrorCode.none, -1, end, replica.partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        first = log.spans[0].epoch if log.spans else -1
        return OffsetRow(tp.partition, ErrorCode.none, -1, log.start, first)
    if timestamp == MAX_TIMESTAMP:
        timestamp = _time(call, tp, replica, log.end - 1) if log.spans else -1
        if timestamp < 0:
            return OffsetRow(tp.partition, ErrorCode.none)
    elif timestamp < 0:
        return OffsetRow(tp.partition, ErrorCode.none)
    return _by_time(call, tp, replica, timestamp)


def _by_time(call: ServedCall, tp: TopicPartition, replica: HostedReplica, timestamp: int) -> OffsetRow:
    """The first record that is not older than ``timestamp``. Times never decrease along a log."""
    low, high = replica.log.start, replica.log.end
    while low < high:
        middle = (low + high) // 2
        if _time(call, tp, replica, middle) < timestamp:
            low = middle + 1
        else:
            high = middle
    if low >= replica.log.end:
        return OffsetRow(tp.partition, ErrorCode.none)
    epoch = next(span.epoch for span in replica.log.spans if low < span.end)
    return OffsetRow(tp.partition, ErrorCode.none, _time(call, tp, replica, low), low, epoch)


def _time(call: ServedCall, tp: TopicPartition, replica: HostedReplica, offset: int) -> int:
    epoch = next((span.epoch for span in replica.log.spans if span.start <= offset < span.end), -1)
    first, _ = call.context.world.context.times.of(tp, epoch, offset)
    return call.context.in_epoch_ms(first)


async def offset_for_leader_epoch(call: ServedCall) -> Values:
    """Answered by the leader only."""
    return await call.read_broker(lambda broker: {"topics": _ends(call, broker)})


def _ends(call: ServedCall, broker: BrokerAccess) -> list[Values]:
    found: list[Values] = []
    for topic in call.request.topics:
        allowed = call.rights.topic("DESCRIBE", topic.topic)
        rows = []
        for asked in topic.partitions:
            error, epoch, end = ErrorCode.topic_authorization_failed, -1, -1
            if allowed:
                error, epoch, end = _end(broker, TopicPartition(topic.topic, asked.partition), asked)
            rows.append(
                {"error_code": error, "partition": asked.partition, "leader_epoch": epoch, "end_offset": end}
            )
        found.append({"topic": topic.topic, "partitions": rows})
    return found


def _end(broker: BrokerAccess, tp: TopicPartition, asked: Any) -> tuple[ErrorCode, int, int]:
    replica = find(broker, tp)
    if isinstance(replica, ErrorCode):
        return replica, -1, -1
    error = current(replica, asked.current_leader_epoch)
    if error is ErrorCode.none and not replica.leads:
        error = ErrorCode.not_leader_or_follower
    if error is not ErrorCode.none:
        return error, -1, -1
    return (ErrorCode.none, *end_of(replica, asked.leader_epoch))
