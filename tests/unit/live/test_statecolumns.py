"""A page of partition states that is read as columns holds what kio's decoder reads, or is left to it."""

from __future__ import annotations

from datetime import timedelta
from io import BytesIO
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.describe_topic_partitions.v0 import response as schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

from backends.live.calls.describe_partitions import _position, _StateCollector
from backends.live.codec.aiokafka_requests import read
from backends.live.codec.column_reader import NeedsFullDecoder
from backends.live.codec.field_lengths import LengthError
from backends.live.codec.partition_columns import read_page

KIND: Any = schema.DescribeTopicPartitionsResponse
INT32 = st.sampled_from([-1, 0, 1, 7, 2**31 - 1])
MEMBERS = st.lists(st.integers(1, 9), max_size=4).map(tuple)
SELDOM = st.sampled_from([ErrorCode.none] * 40 + [ErrorCode.listener_not_found, ErrorCode.unknown_topic_id])


def partitions() -> st.SearchStrategy[Any]:
    return st.builds(
        schema.DescribeTopicPartitionsResponsePartition,
        error_code=SELDOM,
        partition_index=INT32,
        leader_id=INT32,
        leader_epoch=INT32,
        replica_nodes=MEMBERS,
        isr_nodes=MEMBERS,
        eligible_leader_replicas=MEMBERS | st.none(),
        last_known_elr=MEMBERS | st.none(),
        offline_replicas=MEMBERS,
    )


@st.composite
def topics(draw: st.DrawFn) -> Any:
    """Mostly runs of partitions that look alike."""
    rows: list[Any] = []
    for _ in range(draw(st.integers(0, 3))):
        rows += [draw(partitions())] * draw(st.sampled_from([1, 2, 70]))
    make: Any = schema.DescribeTopicPartitionsResponseTopic
    return make(
        error_code=draw(SELDOM),
        name=draw(st.sampled_from(["orders", "\u00fc" * 70, ""])),
        topic_id=draw(st.sampled_from([UUID(int=5), UUID(int=2**127), None])),
        partitions=tuple(rows),
        topic_authorized_operations=draw(st.sampled_from([-(2**31), 0, 0xFF8])),
    )


@st.composite
def pages(draw: st.DrawFn) -> bytes:
    cursor: Any = schema.Cursor
    page = KIND(
        throttle_time=timedelta(milliseconds=draw(st.sampled_from([0, 250]))),
        topics=tuple(draw(st.lists(topics(), max_size=3))),
        next_cursor=draw(st.sampled_from([None, cursor(topic_name="orders", partition_index=7)])),
    )
    buffer = BytesIO()
    entity_writer(KIND)(buffer, page)
    return buffer.getvalue()


def gathered(*, elr_offered: bool) -> _StateCollector:
    return _StateCollector(elr_offered=elr_offered)


def told(found: _StateCollector) -> Any:
    return found.states, found.unknown, found.hidden, found.operations


@settings(max_examples=400, deadline=None)
@given(pages(), st.booleans(), st.data())
def test_a_page_is_taken_as_kio_reads_it_or_left_to_kio(
    page: bytes, elr_offered: bool, data: st.DataObject
) -> None:
    """Also with a wrong byte in it, cut short, or longer than it should be."""
    wrong = bytearray(page)
    if data.draw(st.booleans()):
        wrong[data.draw(st.integers(0, len(wrong) - 1))] = data.draw(
            st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF])
        )
    ends = data.draw(st.sampled_from([len(wrong)] * 3 + [len(wrong) - 1, len(wrong) // 2]))
    page = bytes(wrong[:ends]) + data.draw(st.sampled_from([b"", b"", b"", b"\0"]))
    try:
        columns = read_page(page, 0)
    except NeedsFullDecoder:
        return
    by_columns, by_kio = gathered(elr_offered=elr_offered), gathered(elr_offered=elr_offered)
    for states in columns.topics:
        by_columns.add_columns(states)
    answer, size = read(KIND, page, 0)
    for topic in answer.topics:
        by_kio.add_described(topic)
    assert size == len(page)
    assert told(by_columns) == told(by_kio)
    assert columns.following == _position(answer.next_cursor)
    assert columns.throttle_ms == round(answer.throttle_time.total_seconds() * 1000)


@pytest.mark.parametrize("array", ["replica_nodes", "isr_nodes", "offline_replicas"])
def test_an_array_that_may_not_be_null_is_left_to_the_full_decoder_which_refuses_it(array: str) -> None:
    """One marker byte at a time is written over: the length of that array, as null."""
    members = {"replica_nodes": (1, 2), "isr_nodes": (1, 2), "offline_replicas": (1, 2), array: ()}
    row: Any = schema.DescribeTopicPartitionsResponsePartition
    topic: Any = schema.DescribeTopicPartitionsResponseTopic
    partition = row(
        error_code=ErrorCode.none,
        partition_index=0,
        leader_id=1,
        leader_epoch=1,
        eligible_leader_replicas=(1, 2),
        last_known_elr=(1, 2),
        **members,
    )
    answer = KIND(
        throttle_time=timedelta(),
        topics=(
            topic(
                error_code=ErrorCode.none,
                name="orders",
                topic_id=UUID(int=5),
                partitions=(partition,),
                topic_authorized_operations=0,
            ),
        ),
        next_cursor=None,
    )
    buffer = BytesIO()
    entity_writer(KIND)(buffer, answer)
    page = bytearray(buffer.getvalue())
    arrays = ("replica_nodes", "isr_nodes", "eligible", "known", "offline_replicas")
    at = page.index(b"orders") + len("orders") + 16 + 1 + 1 + 14 + 9 * arrays.index(array)
    assert page[at] == 1  # an empty array
    page[at] = 0
    with pytest.raises(LengthError):
        read(KIND, bytes(page), 0)
    with pytest.raises(NeedsFullDecoder):
        read_page(bytes(page), 0)


@settings(max_examples=50, deadline=None)
@given(pages())
def test_a_page_without_an_error_is_taken(page: bytes) -> None:
    answer, _ = read(KIND, page, 0)
    codes = {topic.error_code for topic in answer.topics} | {
        p.error_code for t in answer.topics for p in t.partitions
    }
    try:
        read_page(page, 0)
    except NeedsFullDecoder:
        assert codes - {ErrorCode.none}
