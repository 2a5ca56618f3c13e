"""Record batches of any replica, leader or not, up to its log end: Fetch as the future-local replica (-3).

An ordinary consumer is served up to the high watermark only, which on a leaderless replica is often stale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v12.response import FetchResponse, PartitionData
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32, i32Timedelta, i64

from backends.base.answers import LogPosition, RawBatches
from backends.base.errors import BackendError
from backends.live.calls.record_times import UP_TO_THE_LOG_END
from backends.live.connections.connection import BrokerConnection
from backends.live.survey.log_queries import log_query_error
from recovery.model import TopicPartition, Unknown, Why


async def fetch_batches(
    conn: BrokerConnection, positions: Sequence[LogPosition], max_bytes: int
) -> Mapping[TopicPartition, RawBatches | Unknown]:
    """As :meth:`backends.base.protocol.Backend.read_batches` says. Raises BrokerError, BackendError."""
    by_topic: dict[str, list[FetchPartition]] = {}
    for tp, offset in positions:
        by_topic.setdefault(tp.topic, []).append(
            FetchPartition(
                partition=i32(tp.partition), fetch_offset=i64(offset), partition_max_bytes=i32(max_bytes)
            )
        )
    request = FetchRequest(
        replica_id=BrokerId(UP_TO_THE_LOG_END),
        max_wait=i32Timedelta.parse(timedelta(0)),
        min_bytes=i32(0),
        max_bytes=i32(max_bytes),
        topics=tuple(
            FetchTopic(topic=TopicName(topic), partitions=tuple(parts)) for topic, parts in by_topic.items()
        ),
        forgotten_topics_data=(),
    )
    response = await conn.send(request, FetchResponse)
    if response.error_code is not ErrorCode.none:
        raise BackendError(f"{conn.where}: Fetch answered {response.error_code.name.upper()}")
    offsets = {position.tp: position.offset for position in positions}
    found: dict[TopicPartition, RawBatches | Unknown] = {}
    for topic in response.responses:
        for row in topic.partitions:
            tp = TopicPartition(str(topic.topic), row.partition_index)
            found[tp] = _batches(row, tp, offsets[tp])
    return found


def _batches(row: PartitionData, tp: TopicPartition, offset: int) -> RawBatches | Unknown:
    if row.error_code is ErrorCode.none:
        return RawBatches(bytes(row.records or b""), row.log_start_offset, row.high_watermark)
    if row.error_code is ErrorCode.offset_out_of_range:
        return Unknown(Why.FAILED, f"the log does not hold offset {offset}")
    return log_query_error(row.error_code, tp, "READ").unknown
