"""Asking one broker about its own logs, leader or not: ListOffsets as the debugging replica, and Fetch.

Both work on an offline partition (shared facts, "Replica log info"). No record is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import groupby
from typing import NamedTuple, cast

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v12.response import FetchResponse, PartitionData
from kio.schema.list_offsets.v7.request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kio.schema.list_offsets.v7.response import ListOffsetsResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64

from backends.live.connection import BrokerConnection
from recovery.model import TopicPartition, Unknown, Why
from recovery.probe import Answer, OutOfRange

CALL = "ListOffsets+Fetch (emulated)"
DEBUGGING_REPLICA = BrokerId(-2)
LATEST = i64(-1)
AT_MOST = 2_000
"""Partitions in one request."""

ONE_BYTE = i32(1)
NO_WAIT = i32Timedelta.parse(timedelta(0))

PASSING = frozenset(
    (
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.not_leader_or_follower,
        ErrorCode.leader_not_available,
        ErrorCode.replica_not_available,
        ErrorCode.offset_not_available,
        ErrorCode.broker_not_available,
        ErrorCode.unknown_server_error,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_leader_epoch,
    )
)
"""Errors that a broker which has just come up, or does not know the partition yet, may take back."""


class LogEnd(NamedTuple):
    """A log's end offset and the partition's leader epoch, both as the broker knows them."""

    leader_epoch: int
    offset: int


class Trouble(NamedTuple):
    """An error for one partition; ``passing`` where asking again may help."""

    unknown: Unknown
    passing: bool


async def log_ends(
    connection: BrokerConnection, partitions: Iterable[TopicPartition], timeout: float
) -> dict[TopicPartition, LogEnd | Trouble]:
    """The log end of each partition's replica on this broker. Raises BrokerError.

    ``partitions`` must be sorted by topic. (kio's integers check themselves when they are made, which costs more
    than all else here; the values come from Kafka, so they are cast.)
    """
    request = ListOffsetsRequest(
        replica_id=DEBUGGING_REPLICA,
        isolation_level=i8(0),
        topics=tuple(
            ListOffsetsTopic(
                name=TopicName(topic),
                partitions=tuple(
                    ListOffsetsPartition(partition_index=cast("i32", tp.partition), timestamp=LATEST)
                    for tp in group
                ),
            )
            for topic, group in groupby(partitions, key=lambda tp: tp.topic)
        ),
    )
    response = await connection.send(request, ListOffsetsResponse, timeout=timeout)
    ends: dict[TopicPartition, LogEnd | Trouble] = {}
    for topic in response.topics:
        for row in topic.partitions:
            tp = TopicPartition(topic.name, row.partition_index)
            if row.error_code is ErrorCode.none:
                ends[tp] = LogEnd(row.leader_epoch, row.offset)
            else:
                ends[tp] = _trouble(row.error_code, tp, "DESCRIBE")
    return ends


async def probe_epochs(
    connection: BrokerConnection, questions: Mapping[TopicPartition, tuple[int, int]], timeout: float
) -> dict[TopicPartition, Answer | OutOfRange | Trouble]:
    """Ask each log, by (log end offset, epoch), where that epoch ends. Raises BrokerError.

    ``questions`` must be sorted by topic.
    """
    request = FetchRequest(
        max_wait=NO_WAIT,
        min_bytes=i32(0),
        max_bytes=ONE_BYTE,
        topics=tuple(
            FetchTopic(
                topic=TopicName(topic),
                partitions=tuple(
                    FetchPartition(
                        partition=cast("i32", tp.partition),
                        fetch_offset=cast("i64", log_end),
                        last_fetched_epoch=cast("i32", epoch),
                        partition_max_bytes=ONE_BYTE,
                    )
                    for tp, (log_end, epoch) in group
                ),
            )
            for topic, group in groupby(questions.items(), key=lambda item: item[0].topic)
        ),
        forgotten_topics_data=(),
        rack_id="",
    )
    response = await connection.send(request, FetchResponse, timeout=timeout)
    if response.error_code is not ErrorCode.none:
        trouble = Trouble(Unknown(Why.FAILED, f"Fetch answered {response.error_code.name}"), passing=True)
        return dict.fromkeys(questions, trouble)
    return {
        (tp := TopicPartition(topic.topic, row.partition_index)): _answer(row, tp)
        for topic in response.responses
        for row in topic.partitions
    }


def _answer(row: PartitionData, tp: TopicPartition) -> Answer | OutOfRange | Trouble:
    if row.error_code is ErrorCode.offset_out_of_range:
        return OutOfRange.ANSWER
    if row.error_code is not ErrorCode.none:
        return _trouble(row.error_code, tp, "READ")
    diverging = row.diverging_epoch
    ends = (diverging.epoch, diverging.end_offset) if diverging.epoch >= 0 else None
    return Answer(ends, row.log_start_offset, row.high_watermark)


def _trouble(code: i16 | ErrorCode, tp: TopicPartition, operation: str) -> Trouble:
    error = ErrorCode(code)
    if error is ErrorCode.topic_authorization_failed:
        return Trouble(Unknown(Why.NOT_ALLOWED, f"needs {operation} on topic {tp.topic}"), passing=False)
    if error is ErrorCode.kafka_storage_error:
        return Trouble(Unknown(Why.FAILED, "its log dir is offline"), passing=False)
    if error is ErrorCode.unknown_topic_or_partition:
        return Trouble(Unknown(Why.FAILED, "the broker has no such replica"), passing=True)
    return Trouble(Unknown(Why.FAILED, f"the broker answered {error.name.upper()}"), error in PASSING)
