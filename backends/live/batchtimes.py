"""When records that an election would destroy were written: the timestamps of single batches.

A Fetch as replica -3 reads to the log's end on any replica, also beyond the high watermark (shared facts,
"Replica log info", 4). Only a batch's header is looked at. One partition a request: a broker fills up one
partition's batch whatever the limits say, and no other's.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from backends.live.connection import BrokerConnection
from recovery.model import TopicPartition

UP_TO_THE_LOG_END = -3
_HEADER = struct.Struct(">qiibIhiqq")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base and max timestamp."""
_MAGIC = 2


class BatchTimes(NamedTuple):
    """The timestamps of a record batch's first and newest record, in ms since the epoch."""

    first_ms: int
    last_ms: int


async def batch_times(
    conn: BrokerConnection, tp: TopicPartition, offset: int, timeout: float
) -> BatchTimes | None:
    """The timestamps of the batch that holds ``offset`` on this broker's replica; None where none is had.

    Needs READ on the topic. Raises BrokerError.
    """
    from datetime import timedelta

    from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
    from kio.schema.fetch.v12.response import FetchResponse
    from kio.schema.types import BrokerId, TopicName
    from kio.static.primitive import i32, i32Timedelta, i64

    request = FetchRequest(
        replica_id=BrokerId(UP_TO_THE_LOG_END),
        max_wait=i32Timedelta.parse(timedelta(0)),
        min_bytes=i32(0),
        max_bytes=i32(1),
        topics=(
            FetchTopic(
                topic=TopicName(tp.topic),
                partitions=(
                    FetchPartition(
                        partition=i32(tp.partition), fetch_offset=i64(offset), partition_max_bytes=i32(1)
                    ),
                ),
            ),
        ),
        forgotten_topics_data=(),
    )
    response = await conn.send(request, FetchResponse, timeout=timeout)
    for topic in response.responses:
        for row in topic.partitions:
            if not row.error_code and row.records:
                return read_header(bytes(row.records))
    return None


def read_header(data: bytes) -> BatchTimes | None:
    """The timestamps in a record batch's header (KIP-98); None for another format, or none kept."""
    if len(data) < _HEADER.size:
        return None
    _, _, _, magic, _, _, _, first, last = _HEADER.unpack_from(data)
    if magic != _MAGIC or first < 0 or last < 0:
        return None
    return BatchTimes(first, last)
