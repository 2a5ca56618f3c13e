"""Timestamps of single record batches: when the records that an election would destroy were written.

A Fetch as replica -3 (the future-local replica) reads to the log end of any replica, also beyond the high
watermark. Only the header of a batch is read. Many partitions are asked at once; a broker sends
whole batches, and one that is larger than the limits only for the first partition of a request.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from backends.base.answers import LogPosition
from backends.live.connections.connection import BrokerConnection
from recovery.model import TopicPartition

UP_TO_THE_LOG_END = -3
_HEADER = struct.Struct(">qiibIhiqq")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base and max timestamp."""
_MAGIC = 2


AT_MOST = 200
"""Records in one request."""


class _FetchLimit(NamedTuple):
    """Bytes that a broker may send for each partition, and in all."""

    partition: int
    whole: int


_MANY = _FetchLimit(
    20_000, AT_MOST * 20_000
)  # a producer's batch has at most 16,384 bytes unless told otherwise
_ONE = _FetchLimit(1, 1)


class BatchTimes(NamedTuple):
    """The timestamps of a record batch's first and newest record, in ms since the epoch."""

    first_ms: int
    last_ms: int


async def batch_times(
    conn: BrokerConnection, records: Sequence[LogPosition], timeout: float
) -> Mapping[LogPosition, BatchTimes]:
    """The timestamps of the batch that holds each record on this broker's replica; unknown ones are left out.

    Needs READ on the topics. Raises BrokerError; ``timeout`` in seconds is that of each request.
    """
    found: dict[LogPosition, BatchTimes] = {}
    for together in _rounds(records):
        for first in range(0, len(together), AT_MOST):
            asked = together[first : first + AT_MOST]
            found.update(await _fetch(conn, asked, _MANY, timeout))
    # A broker sends a batch above the limit only if it is the first of the answer: ask for each record alone.
    for record in records:
        if record not in found:
            found.update(await _fetch(conn, [record], _ONE, timeout))
    return found


def _rounds(records: Sequence[LogPosition]) -> list[list[LogPosition]]:
    """The records of one request at a time: a request holds each partition once."""
    rounds: list[dict[TopicPartition, LogPosition]] = []
    for record in dict.fromkeys(records):
        free = next((taken for taken in rounds if record.tp not in taken), None)
        if free is None:
            free = {}
            rounds.append(free)
        free[record.tp] = record
    return [list(taken.values()) for taken in rounds]


async def _fetch(
    conn: BrokerConnection, records: Sequence[LogPosition], limit: _FetchLimit, timeout: float
) -> Mapping[LogPosition, BatchTimes]:
    from datetime import timedelta

    from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
    from kio.schema.fetch.v12.response import FetchResponse
    from kio.schema.types import BrokerId, TopicName
    from kio.static.primitive import i32, i32Timedelta, i64

    of = {record.tp: record for record in records}
    by_topic: dict[str, list[FetchPartition]] = {}
    for record in records:
        by_topic.setdefault(record.tp.topic, []).append(
            FetchPartition(
                partition=i32(record.tp.partition),
                fetch_offset=i64(record.offset),
                partition_max_bytes=i32(limit.partition),
            )
        )
    request = FetchRequest(
        replica_id=BrokerId(UP_TO_THE_LOG_END),
        max_wait=i32Timedelta.parse(timedelta(0)),
        min_bytes=i32(0),
        max_bytes=i32(limit.whole),
        topics=tuple(
            FetchTopic(topic=TopicName(topic), partitions=tuple(parts)) for topic, parts in by_topic.items()
        ),
        forgotten_topics_data=(),
    )
    response = await conn.send(request, FetchResponse, timeout=timeout)
    found: dict[LogPosition, BatchTimes] = {}
    for topic in response.responses:
        for row in topic.partitions:
            times = None if row.error_code or not row.records else read_header(bytes(row.records))
            if times is not None:
                found[of[TopicPartition(topic.topic, row.partition_index)]] = times
    return found


def read_header(data: bytes) -> BatchTimes | None:
    """The timestamps in a record batch's header (KIP-98); None for another format, or none kept."""
    if len(data) < _HEADER.size:
        return None
    _, _, _, magic, _, _, _, first, last = _HEADER.unpack_from(data)
    if magic != _MAGIC or first < 0 or last < 0:
        return None
    return BatchTimes(first, last)
