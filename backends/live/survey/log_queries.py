"""Asking one broker about its own logs, leader or not: ListOffsets as the debugging replica, and Fetch.

Both work on an offline partition. No record is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.response import FetchResponse, PartitionData
from kio.schema.list_offsets.v7.response import ListOffsetsResponse
from kio.static.primitive import i16

from backends.live.codec.column_reader import Columns
from backends.live.codec.log_columns import read_fetch, read_list_offsets
from backends.live.codec.names import numbers
from backends.live.codec.request_encoder import (
    pack_fetch,
    pack_fetch_of,
    pack_list_offsets,
    pack_list_offsets_of,
)
from backends.live.connections.connection import BrokerConnection
from backends.live.survey.topic_batch import LogEndColumns, TopicBatch
from recovery.epoch_probe import EARLIEST, EarliestOffset, EpochAnswer, OutOfRange
from recovery.model import TopicPartition, Unknown, Why

CALL = "ListOffsets+Fetch (emulated)"
DEBUGGING_REPLICA = -2
CONSUMER = -1
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


class ReplicaLogEnd(NamedTuple):
    """A log's end offset and the partition's leader epoch, both as the broker knows them."""

    leader_epoch: int
    offset: int


class LogQueryError(NamedTuple):
    """An error for one partition; ``retryable`` where asking again may help."""

    unknown: Unknown
    retryable: bool


async def log_ends(
    connection: BrokerConnection, partitions: Iterable[TopicPartition], timeout: float
) -> dict[TopicPartition, ReplicaLogEnd | LogQueryError]:
    """The log end of each partition's replica on this broker. Raises BrokerError.

    ``partitions`` must be sorted by topic.
    """
    request = pack_list_offsets(partitions, replica=DEBUGGING_REPLICA, timestamp=LATEST)
    return _ends(await connection.send(request, ListOffsetsResponse, timeout=timeout, ahead=True))


async def log_ends_of(
    connection: BrokerConnection, batches: Sequence[TopicBatch], timeout: float
) -> Sequence[LogEndColumns | Mapping[TopicPartition, ReplicaLogEnd | LogQueryError]]:
    """The same for whole batches, each of another topic; row by row if the full decoder is needed."""
    asked = [(batch.topic, batch.numbers) for batch in batches]
    request = pack_list_offsets_of(asked, replica=DEBUGGING_REPLICA, timestamp=LATEST)
    raw = await connection.raw(request, timeout=timeout, ahead=True)
    reported = connection.columns(raw, partial(read_list_offsets, asked))
    if reported is not None:
        return [LogEndColumns(offsets, epochs) for _, offsets, epochs in reported.topics]
    return [_ends(connection.decoded(raw, ListOffsetsResponse))] * len(batches)


async def leading(
    connection: BrokerConnection, partitions: Iterable[TopicPartition], timeout: float
) -> dict[TopicPartition, bool]:
    """Whether this broker leads each partition by its own state; one that cannot be told is left out.

    ``partitions`` must be sorted by topic. A consumer's ListOffsets is answered by a leader only
    (``Partition.localLogWithEpochOrThrow``); a leader whose high watermark is below the start of its epoch answers
    OFFSET_NOT_AVAILABLE (``Partition.fetchOffsetForTimestamp``). Raises BrokerError.
    """
    request = pack_list_offsets(partitions, replica=CONSUMER, timestamp=LATEST)
    response = await connection.send(request, ListOffsetsResponse, timeout=timeout, ahead=True)
    return {
        TopicPartition(str(topic.name), row.partition_index): _LEADS[row.error_code]
        for topic in response.topics
        for row in topic.partitions
        if row.error_code in _LEADS
    }


_LEADS: Mapping[ErrorCode, bool] = {
    ErrorCode.none: True,
    ErrorCode.offset_not_available: True,
    ErrorCode.not_leader_or_follower: False,
}


def _ends(response: ListOffsetsResponse) -> dict[TopicPartition, ReplicaLogEnd | LogQueryError]:
    ends: dict[TopicPartition, ReplicaLogEnd | LogQueryError] = {}
    for topic in response.topics:
        names = numbers(str(topic.name))
        for row in topic.partitions:
            tp = names[row.partition_index]
            if row.error_code is ErrorCode.none:
                ends[tp] = ReplicaLogEnd(row.leader_epoch, row.offset)
            else:
                ends[tp] = log_query_error(row.error_code, tp, "DESCRIBE")
    return ends


ProbeAnswer = EpochAnswer | OutOfRange | EarliestOffset | LogQueryError


async def probe_epochs(
    connection: BrokerConnection, questions: Mapping[TopicPartition, tuple[int, int]], timeout: float
) -> dict[TopicPartition, ProbeAnswer]:
    """Ask each log, by (log end offset, epoch), where that epoch ends. Raises BrokerError.

    ``questions`` must be sorted by topic. Instead of an epoch, EARLIEST asks for the epoch of the log start.
    """
    ends = {tp: asked for tp, asked in questions.items() if asked[1] != EARLIEST}
    answers: dict[TopicPartition, ProbeAnswer] = {}
    if ends:
        answers.update(
            _answers(
                await connection.send(pack_fetch(ends), FetchResponse, timeout=timeout, ahead=True), ends
            )
        )
    starts = [tp for tp in questions if tp not in ends]
    if starts:
        request = pack_list_offsets(starts, replica=DEBUGGING_REPLICA, timestamp=EARLIEST)
        reported = _ends(await connection.send(request, ListOffsetsResponse, timeout=timeout, ahead=True))
        answers.update(
            (tp, EarliestOffset(*answer) if isinstance(answer, ReplicaLogEnd) else answer)
            for tp, answer in reported.items()
        )
    return answers


async def probe_epochs_of(
    connection: BrokerConnection, batches: Sequence[TopicBatch], timeout: float
) -> Sequence[
    Sequence[EpochAnswer | OutOfRange] | Mapping[TopicPartition, EpochAnswer | OutOfRange | LogQueryError]
]:
    """The same for what is left of whole batches; row by row if the full decoder is needed."""
    questions = [(batch.topic, *batch.questions()) for batch in batches]
    raw = await connection.raw(pack_fetch_of(questions), timeout=timeout, ahead=True)
    reported = connection.columns(
        raw, partial(read_fetch, [(topic, numbers) for topic, numbers, _, _ in questions])
    )
    if reported is not None:
        return [_answers_of(columns) for columns in reported.topics]
    asked = [tp for batch in batches for tp in batch.tps()]
    return [_answers(connection.decoded(raw, FetchResponse), asked)] * len(batches)


def _answers_of(columns: Columns) -> Sequence[EpochAnswer | OutOfRange]:
    _, errors, watermarks, starts, epochs, ends = columns
    if not any(errors) and max(epochs) < 0:
        rows: Iterable[Any] = zip(repeat(None), starts, watermarks, strict=False)
        return list(
            map(tuple.__new__, repeat(EpochAnswer), rows)
        )  # as EpochAnswer(...) does, without a Python call
    return [
        OutOfRange.ANSWER if error else EpochAnswer((epoch, end) if epoch >= 0 else None, start, watermark)
        for error, epoch, end, start, watermark in zip(errors, epochs, ends, starts, watermarks, strict=True)
    ]


def _answers(
    response: FetchResponse, questions: Iterable[TopicPartition]
) -> dict[TopicPartition, EpochAnswer | OutOfRange | LogQueryError]:
    if response.error_code is not ErrorCode.none:
        error = LogQueryError(
            Unknown(Why.FAILED, f"Fetch answered {response.error_code.name}"), retryable=True
        )
        return dict.fromkeys(questions, error)
    return {
        (tp := names[row.partition_index]): _answer(row, tp)
        for topic in response.responses
        for names in (numbers(str(topic.topic)),)
        for row in topic.partitions
    }


def _answer(row: PartitionData, tp: TopicPartition) -> EpochAnswer | OutOfRange | LogQueryError:
    if row.error_code is ErrorCode.offset_out_of_range:
        return OutOfRange.ANSWER
    if row.error_code is not ErrorCode.none:
        return log_query_error(row.error_code, tp, "READ")
    diverging = row.diverging_epoch
    ends = (diverging.epoch, diverging.end_offset) if diverging.epoch >= 0 else None
    return EpochAnswer(ends, row.log_start_offset, row.high_watermark)


def log_query_error(code: i16 | ErrorCode, tp: TopicPartition, operation: str) -> LogQueryError:
    """What a partition's error code means; ``operation`` is the permission that it may lack."""
    error = ErrorCode(code)
    if error is ErrorCode.topic_authorization_failed:
        return LogQueryError(
            Unknown(Why.NOT_ALLOWED, f"needs {operation} on topic {tp.topic}"), retryable=False
        )
    if error is ErrorCode.kafka_storage_error:
        return LogQueryError(Unknown(Why.FAILED, "its log dir is offline"), retryable=False)
    if error is ErrorCode.unknown_topic_or_partition:
        return LogQueryError(Unknown(Why.FAILED, "the broker has no such replica"), retryable=True)
    return LogQueryError(Unknown(Why.FAILED, f"the broker answered {error.name.upper()}"), error in PASSING)
