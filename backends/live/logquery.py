"""Asking one broker about its own logs, leader or not: ListOffsets as the debugging replica, and Fetch.

Both work on an offline partition (shared facts, "Replica log info"). No record is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.response import FetchResponse, PartitionData
from kio.schema.list_offsets.v7.response import ListOffsetsResponse
from kio.static.primitive import i16

from backends.live.connection import BrokerConnection
from backends.live.names import numbers
from backends.live.packed import pack_fetch, pack_list_offsets
from recovery.model import TopicPartition, Unknown, Why
from recovery.probe import Answer, OutOfRange

CALL = "ListOffsets+Fetch (emulated)"
DEBUGGING_REPLICA = -2
LATEST = -1
AT_MOST = 2_000
"""Partitions in one request."""

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

    ``partitions`` must be sorted by topic.
    """
    request = pack_list_offsets(partitions, replica=DEBUGGING_REPLICA, timestamp=LATEST)
    response = await connection.send(request, ListOffsetsResponse, timeout=timeout)
    ends: dict[TopicPartition, LogEnd | Trouble] = {}
    for topic in response.topics:
        names = numbers(str(topic.name))
        for row in topic.partitions:
            tp = names[row.partition_index]
            if row.error_code is ErrorCode.none:
                ends[tp] = LogEnd(row.leader_epoch, row.offset)
            else:
                ends[tp] = trouble(row.error_code, tp, "DESCRIBE")
    return ends


async def probe_epochs(
    connection: BrokerConnection, questions: Mapping[TopicPartition, tuple[int, int]], timeout: float
) -> dict[TopicPartition, Answer | OutOfRange | Trouble]:
    """Ask each log, by (log end offset, epoch), where that epoch ends. Raises BrokerError.

    ``questions`` must be sorted by topic.
    """
    response = await connection.send(pack_fetch(questions), FetchResponse, timeout=timeout)
    if response.error_code is not ErrorCode.none:
        trouble = Trouble(Unknown(Why.FAILED, f"Fetch answered {response.error_code.name}"), passing=True)
        return dict.fromkeys(questions, trouble)
    return {
        (tp := names[row.partition_index]): _answer(row, tp)
        for topic in response.responses
        for names in (numbers(str(topic.topic)),)
        for row in topic.partitions
    }


def _answer(row: PartitionData, tp: TopicPartition) -> Answer | OutOfRange | Trouble:
    if row.error_code is ErrorCode.offset_out_of_range:
        return OutOfRange.ANSWER
    if row.error_code is not ErrorCode.none:
        return trouble(row.error_code, tp, "READ")
    diverging = row.diverging_epoch
    ends = (diverging.epoch, diverging.end_offset) if diverging.epoch >= 0 else None
    return Answer(ends, row.log_start_offset, row.high_watermark)


def trouble(code: i16 | ErrorCode, tp: TopicPartition, operation: str) -> Trouble:
    """What a partition's error code means; ``operation`` is the permission that it may lack."""
    error = ErrorCode(code)
    if error is ErrorCode.topic_authorization_failed:
        return Trouble(Unknown(Why.NOT_ALLOWED, f"needs {operation} on topic {tp.topic}"), passing=False)
    if error is ErrorCode.kafka_storage_error:
        return Trouble(Unknown(Why.FAILED, "its log dir is offline"), passing=False)
    if error is ErrorCode.unknown_topic_or_partition:
        return Trouble(Unknown(Why.FAILED, "the broker has no such replica"), passing=True)
    return Trouble(Unknown(Why.FAILED, f"the broker answered {error.name.upper()}"), error in PASSING)
