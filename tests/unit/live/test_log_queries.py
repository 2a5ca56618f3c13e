"""What a broker answers about one log, row by row."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import cast

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.response import EpochEndOffset, FetchableTopicResponse, FetchResponse, PartitionData
from kio.schema.types import TopicName
from kio.static.primitive import i32, i32Timedelta, i64

from backends.live.connections.connection import BrokerConnection
from backends.live.survey.log_queries import LogQueryError, ProbeAnswer, probe_epochs
from recovery.epoch_probe import EpochAnswer, OutOfRange
from recovery.model import TopicPartition, Why

TP = TopicPartition("orders", 0)


def row(error: ErrorCode = ErrorCode.none, diverging: tuple[int, int] = (-1, -1)) -> PartitionData:
    return PartitionData(
        partition_index=i32(0),
        error_code=error,
        high_watermark=i64(90),
        log_start_offset=i64(10),
        diverging_epoch=EpochEndOffset(epoch=i32(diverging[0]), end_offset=i64(diverging[1])),
        aborted_transactions=None,
        records=None,
    )


def answer(of: PartitionData, whole: ErrorCode = ErrorCode.none) -> ProbeAnswer:
    class Broker:
        async def send(self, *_: object, **__: object) -> FetchResponse:
            topic = FetchableTopicResponse(topic=TopicName(TP.topic), partitions=(of,))
            throttle = i32Timedelta.parse(timedelta(0))
            return FetchResponse(throttle_time=throttle, error_code=whole, responses=(topic,))

    asked: Mapping[TopicPartition, tuple[int, int]] = {TP: (100, 4)}
    return asyncio.run(probe_epochs(cast("BrokerConnection", Broker()), asked, 1.0))[TP]


def test_an_epoch_above_the_newest_is_out_of_range_and_no_error() -> None:
    assert answer(row(ErrorCode.offset_out_of_range)) is OutOfRange.ANSWER


def test_the_largest_epoch_that_is_not_above_is_told_with_its_end() -> None:
    assert answer(row(diverging=(2, 50))) == EpochAnswer((2, 50), 10, 90)
    assert answer(row()) == EpochAnswer(None, 10, 90)


def test_an_error_names_the_permission_or_tells_whether_asking_again_may_help() -> None:
    refused = answer(row(ErrorCode.topic_authorization_failed))
    assert isinstance(refused, LogQueryError) and refused.unknown.why is Why.NOT_ALLOWED
    assert "READ on topic orders" in refused.unknown.detail and not refused.retryable
    failed = answer(row(ErrorCode.kafka_storage_error))
    assert isinstance(failed, LogQueryError) and not failed.retryable
    moved = answer(row(ErrorCode.unknown_leader_epoch))
    assert isinstance(moved, LogQueryError) and moved.retryable


def test_a_request_that_failed_as_a_whole_says_so_for_each_log() -> None:
    failed = answer(row(), ErrorCode.unknown_server_error)
    assert isinstance(failed, LogQueryError) and failed.retryable
