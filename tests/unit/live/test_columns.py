"""Answers that are read as columns say what kio's decoder says of the same bytes, or are left to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from io import BytesIO
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.describe_log_dirs.v4 import response as log_dirs_v4
from kio.schema.describe_log_dirs.v5 import response as log_dirs_v5
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12 import response as fetch
from kio.schema.list_offsets.v7 import response as list_offsets
from kio.serial import entity_writer

from backends.live.calls.describe_log_dirs import read_log_dirs
from backends.live.codec import recovery_tool_messages
from backends.live.codec.aiokafka_requests import read
from backends.live.codec.column_reader import NeedsFullDecoder
from backends.live.codec.log_columns import read_fetch, read_list_offsets, read_log_info
from tests.repetitions import repetitions

INT32 = st.sampled_from([-1, 0, 1, 7, 2**31 - 1])
INT64 = st.sampled_from([-1, 0, 15, 10**12, 2**63 - 1])
NUMBERS = st.lists(st.integers(0, 300), min_size=1, max_size=90, unique=True)
THROTTLES = st.sampled_from([timedelta(0), timedelta(milliseconds=250)])
NAMES = ["orders", "ü" * 70, "t"]
IDS = [UUID(int=number) for number in (1, 2**127, 77)]
NONE = ErrorCode.none
SELDOM = st.sampled_from([NONE] * 30 + [ErrorCode.offset_out_of_range, ErrorCode.kafka_storage_error])
"""An error in one row of thirty, or in none."""


class Call(NamedTuple):
    """One kind of answer: ``topics`` makes it of topics with rows, ``rows`` are its rows as kio decodes them."""

    kind: Any
    answer: Callable[..., Any]
    row: Callable[..., st.SearchStrategy[Any]]
    names: Sequence[Any]
    reader: Any
    rows: Callable[[Any], dict[Any, dict[int, tuple[Any, ...]]]]


def log_info_row(number: int, errors: st.SearchStrategy[ErrorCode]) -> st.SearchStrategy[Any]:
    return st.builds(
        recovery_tool_messages.PartitionLogInfo,
        partition=st.just(number),
        partition_leader_epoch=INT32,
        log_end_offset=INT64,
        error_code=errors,
    )


def log_info(topics: Sequence[tuple[Any, Any]], throttle: timedelta) -> Any:
    return LOG_INFO.kind(
        throttle_time=throttle,
        broker_epoch=5,
        has_more_data=False,
        topic_partition_log_info_list=tuple(
            recovery_tool_messages.TopicPartitionLogInfo(topic_id=name, partition_log_info=rows)
            for name, rows in topics
        ),
    )


def log_info_rows(answer: Any) -> Any:
    return {
        topic.topic_id.bytes: {
            p.partition: (p.partition, p.partition_leader_epoch, p.log_end_offset)
            for p in topic.partition_log_info
        }
        for topic in answer.topic_partition_log_info_list
        if not any(p.error_code for p in topic.partition_log_info)
    }


def list_offsets_row(number: int, errors: st.SearchStrategy[ErrorCode]) -> st.SearchStrategy[Any]:
    return st.builds(
        list_offsets.ListOffsetsPartitionResponse,
        partition_index=st.just(number),
        error_code=errors,
        timestamp=INT64,
        offset=INT64,
        leader_epoch=INT32,
    )


def offsets(topics: Sequence[tuple[Any, Any]], throttle: timedelta) -> Any:
    return OFFSETS.kind(
        throttle_time=throttle,
        topics=tuple(
            list_offsets.ListOffsetsTopicResponse(name=name, partitions=rows) for name, rows in topics
        ),
    )


def offsets_rows(answer: Any) -> Any:
    return {
        topic.name: {
            p.partition_index: (p.partition_index, p.offset, p.leader_epoch) for p in topic.partitions
        }
        for topic in answer.topics
        if not any(p.error_code for p in topic.partitions)
    }


def fetch_row(number: int, errors: st.SearchStrategy[ErrorCode]) -> st.SearchStrategy[Any]:
    return st.builds(
        fetch.PartitionData,
        partition_index=st.just(number),
        error_code=errors,
        high_watermark=INT64,
        log_start_offset=INT64,
        diverging_epoch=st.builds(fetch.EpochEndOffset, epoch=INT32, end_offset=INT64)
        | st.just(fetch.EpochEndOffset()),
        aborted_transactions=st.sampled_from([None, ()]),
        records=st.sampled_from([None, b""]),
    )


def fetched(topics: Sequence[tuple[Any, Any]], throttle: timedelta) -> Any:
    return FETCH.kind(
        throttle_time=throttle,
        error_code=NONE,
        responses=tuple(fetch.FetchableTopicResponse(topic=name, partitions=rows) for name, rows in topics),
    )


def fetched_rows(answer: Any) -> Any:
    return {
        topic.topic: {
            p.partition_index: (
                p.partition_index,
                int(p.error_code),
                p.high_watermark,
                p.log_start_offset,
                p.diverging_epoch.epoch,
                p.diverging_epoch.end_offset,
            )
            for p in topic.partitions
        }
        for topic in answer.responses
        if not any(p.error_code not in (NONE, ErrorCode.offset_out_of_range) for p in topic.partitions)
    }


LOG_INFO = Call(
    recovery_tool_messages.GetReplicaLogInfoResponse,
    log_info,
    log_info_row,
    IDS,
    read_log_info,
    log_info_rows,
)
OFFSETS = Call(
    list_offsets.ListOffsetsResponse, offsets, list_offsets_row, NAMES, read_list_offsets, offsets_rows
)
FETCH = Call(fetch.FetchResponse, fetched, fetch_row, NAMES, read_fetch, fetched_rows)
CALLS = {"log info": LOG_INFO, "list offsets": OFFSETS, "fetch": FETCH}


def encoded(kind: Any, answer: Any) -> bytes:
    buffer = BytesIO()
    entity_writer(kind)(buffer, answer)
    return buffer.getvalue()


@st.composite
def answers(draw: st.DrawFn, call: Call, errors: st.SearchStrategy[ErrorCode]) -> tuple[bytes, Any]:
    """The bytes, and the topics with the partitions that were asked for, in another order."""
    topics = []
    asked = []
    for name in draw(st.permutations(call.names)):
        numbers = draw(NUMBERS)
        usual = draw(call.row(0, errors))
        odd = draw(st.sets(st.sampled_from(numbers), max_size=3))
        rows = [
            draw(call.row(number, errors)) if number in odd else _numbered(usual, number)
            for number in numbers
        ]
        topics.append((name, tuple(rows)))
        key = name.bytes if isinstance(name, UUID) else name
        asked.append((key, tuple(draw(st.permutations(numbers)) if draw(st.booleans()) else numbers)))
    answer = call.answer(topics, draw(THROTTLES))
    return encoded(call.kind, answer), asked


def _numbered(row: Any, number: int) -> Any:
    name = "partition" if hasattr(row, "partition") else "partition_index"
    return replace(row, **{name: number})


def taken(call: Call, asked: Any, data: bytes) -> Any:
    """The columns turned round to rows; None where they are left to kio."""
    try:
        told = call.reader(asked, data, 0)
    except NeedsFullDecoder:
        return None
    return told.throttle_ms, [list(zip(*columns, strict=True)) for columns in told.topics]


def decoded(call: Call, asked: Any, data: bytes) -> Any:
    answer, size = read(call.kind, data, 0)
    assert size == len(data)
    rows = call.rows(answer)
    throttle_ms = round(answer.throttle_time.total_seconds() * 1000)
    return throttle_ms, [[rows[name][number] for number in numbers] for name, numbers in asked]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@given(st.data())
@settings(max_examples=repetitions(15, 60), deadline=None)
def test_an_answer_without_errors_is_taken_as_kio_reads_it(call: Call, data: st.DataObject) -> None:
    written, asked = data.draw(answers(call, st.just(NONE)))
    assert taken(call, asked, written) == decoded(call, asked, written)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@given(st.data())
@settings(max_examples=repetitions(25, 200), deadline=None)
def test_whatever_is_taken_of_wrong_bytes_is_what_kio_reads(call: Call, data: st.DataObject) -> None:
    """One row in error, a byte changed, the answer cut short or longer than it should be."""
    written, asked = data.draw(answers(call, SELDOM))
    wrong = bytearray(written)
    for _ in range(data.draw(st.integers(0, 2))):
        wrong[data.draw(st.integers(0, len(wrong) - 1))] = data.draw(
            st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF])
        )
    ends = data.draw(st.sampled_from([len(wrong)] * 3 + [len(wrong) - 1, len(wrong) // 2]))
    written = bytes(wrong[:ends]) + data.draw(st.sampled_from([b"", b"", b"", b"\0"]))
    told = taken(call, asked, written)
    if told is not None:
        assert told == decoded(call, asked, written)


def test_an_answer_that_leaves_a_partition_out_or_tells_it_twice_is_left_to_kio() -> None:
    make: Any = list_offsets.ListOffsetsPartitionResponse
    usual = make(partition_index=4, error_code=NONE, timestamp=-1, offset=9, leader_epoch=3)
    rows = (usual, _numbered(usual, 5), _numbered(usual, 5))
    for told, wanted in ((rows[:1], (4, 5)), (rows, (4, 5)), (rows[:2], (4,))):
        data = encoded(OFFSETS.kind, offsets([("t", told)], timedelta(0)))
        found = taken(OFFSETS, [("t", wanted)], data)
        assert found == ((0, [[(4, 9, 3)]]) if wanted == (4,) else None)
    data = encoded(OFFSETS.kind, offsets([("t", rows[:1])], timedelta(0)))
    assert taken(OFFSETS, [("other", (4,))], data) is None


def test_an_answer_that_holds_back_more_is_left_to_kio() -> None:
    data = bytearray(encoded(LOG_INFO.kind, log_info([], timedelta(0))))
    assert taken(LOG_INFO, [], bytes(data)) == (0, [])
    data[12] = 1
    assert taken(LOG_INFO, [], bytes(data)) is None


@pytest.mark.parametrize("schema", [log_dirs_v4, log_dirs_v5], ids=["v4", "v5"])
@given(data=st.data())
@settings(max_examples=repetitions(15, 100), deadline=None)
def test_log_dirs_are_taken_as_kio_reads_them(schema: Any, data: st.DataObject) -> None:
    rows = st.builds(
        schema.DescribeLogDirsPartition,
        partition_index=INT32,
        partition_size=INT64,
        offset_lag=INT64,
        is_future_key=st.booleans(),
    )
    topics = st.builds(
        schema.DescribeLogDirsTopic,
        name=st.sampled_from(NAMES),
        partitions=st.lists(rows, max_size=70).map(tuple),
    )
    result = partial(st.builds, schema.DescribeLogDirsResult, log_dir=st.just("/data"), total_bytes=INT64)
    tells = {"is_cordoned": st.booleans()} if schema is log_dirs_v5 else {}
    dirs = result(
        error_code=SELDOM, topics=st.lists(topics, max_size=3).map(tuple), usable_bytes=INT64, **tells
    )
    answer = data.draw(
        st.builds(
            schema.DescribeLogDirsResponse,
            throttle_time=THROTTLES,
            error_code=st.just(NONE),
            results=st.lists(dirs, max_size=3).map(tuple),
        )
    )
    written = bytearray(encoded(schema.DescribeLogDirsResponse, answer))
    changed = data.draw(st.booleans())
    if changed:
        written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.sampled_from([0, 1, 0x80, 0xFF]))
    try:
        told = read_log_dirs(5 if schema is log_dirs_v5 else 4, bytes(written), 0)
    except NeedsFullDecoder:
        assert changed or any(one.error_code for one in answer.results)
        return
    answer, size = read(schema.DescribeLogDirsResponse, bytes(written), 0)
    assert size == len(written)
    assert [
        (
            one.path,
            one.total_bytes,
            one.usable_bytes,
            one.cordoned,
            [(name, list(zip(*rows, strict=True))) for name, rows in one.topics],
        )
        for one in told.dirs
    ] == [
        (
            one.log_dir,
            one.total_bytes,
            one.usable_bytes,
            getattr(one, "is_cordoned", None),
            [
                (
                    t.name,
                    [
                        (p.partition_index, p.partition_size, p.offset_lag, p.is_future_key)
                        for p in t.partitions
                    ],
                )
                for t in one.topics
            ],
        )
        for one in answer.results
    ]
