"""Answers that declare more than they hold are refused, and no others."""

from __future__ import annotations

import uuid
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

from backends.live.codec import aiokafka_requests, field_lengths, recovery_tool_messages
from backends.live.codec.field_lengths import LengthError, check_lengths
from tests.repetitions import repetitions

CALLS = [
    (75, 0),
    (1, 12),
    (2, 7),
    (3, 12),
    (55, 2),
    (32, 4),
    (35, 4),
    (43, 2),
    (45, 0),
    (46, 0),
    (18, 3),
    (60, 2),
    (16, 5),
    (9, 9),
    (8, 9),
    (15, 5),
    (69, 0),
    (61, 0),
    (66, 0),
    (27, 1),
]
KINDS = [load_response_schema(key, version) for key, version in CALLS] + list(
    recovery_tool_messages.RESPONSES.values()
)

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.sampled_from([-1, 0, 127]),
    "int16": st.sampled_from([-1, 0, 7]),
    "uint16": st.sampled_from([0, 9092]),
    "error_code": st.sampled_from([ErrorCode.none, ErrorCode.unknown_server_error]),
    "int32": st.sampled_from([-1, 0, 15, 2**31 - 1]),
    "int64": st.sampled_from([-1, 0, 15, 2**63 - 1]),
    "float64": st.just(-1.0),
    "uuid": st.uuids(),
    "string": st.sampled_from(["", "orders", "\u00ff" * 20]),
    "bytes": st.binary(max_size=9),
    "records": st.binary(max_size=9),
    "timedelta_i32": st.just(timedelta(milliseconds=15)),
    "timedelta_i64": st.just(timedelta(milliseconds=15)),
    "datetime_i64": st.just(datetime(2026, 1, 1, tzinfo=UTC)),
}


def messages(kind: Any) -> st.SearchStrategy[Any]:
    return st.builds(kind, **{held.name: values(held) for held in fields(kind)})


def values(held: Any) -> st.SearchStrategy[Any]:
    annotation = held.type
    parts = get_args(annotation)
    nullable = type(None) in parts
    if nullable:
        annotation = next(part for part in parts if part is not type(None))
    many = get_origin(annotation) is tuple
    inner: Any = get_args(annotation)[0] if many else annotation
    nested: bool = is_dataclass(inner)
    one = messages(inner) if nested else VALUES[held.metadata["kafka_type"]]
    found = st.lists(one, max_size=2).map(tuple) if many else one
    return st.none() | found if nullable else found


def encoded(message: Any) -> bytes:
    buffer = BytesIO()
    entity_writer(type(message))(buffer, message)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_answer_that_can_be_written_is_walked_to_its_last_byte(kind: Any) -> None:
    @settings(max_examples=repetitions(15, 40), deadline=None)
    @given(messages(kind))
    def walked(message: Any) -> None:
        data = encoded(message)
        walker = field_lengths._Walker(data, 0)
        field_lengths._message(kind)(walker)
        assert walker._at == len(data)

    walked()


@pytest.mark.parametrize(
    ("call", "body"),
    [
        ((75, 0), "0000000000ffffffff0f"),
        ((45, 0), "00000000000000ffffffff0f"),
        ((43, 2), "00000000000000ffffffff0f"),
        ((55, 2), "000000ffffffff0f"),
        ((55, 2), "000000ffffffff7f"),
        ((32, 4), "00000000ffffffffffffffff7f"),
    ],
)
def test_an_array_of_billions_in_a_few_bytes_is_an_error_and_not_the_end_of_the_process(
    call: tuple[int, int], body: str
) -> None:
    kind = load_response_schema(*call)
    with pytest.raises(LengthError):
        aiokafka_requests.read(kind, bytes.fromhex(body), 0)


def test_numbers_that_look_like_a_long_length_are_none() -> None:
    kind: Any = load_response_schema(75, 0)
    topic = next(held for held in fields(kind) if held.name == "topics")
    inner = get_args(topic.type)[0]
    partition = get_args(next(held for held in fields(inner) if held.name == "partitions").type)[0]
    row = partition(error_code=ErrorCode.none, partition_index=0, leader_id=-1, leader_epoch=0x0F000000)
    told = inner(
        error_code=ErrorCode.none,
        name="orders",
        topic_id=uuid.uuid4(),
        is_internal=False,
        partitions=(row,),
        topic_authorized_operations=-1,
    )
    data = encoded(kind(throttle_time=timedelta(0), topics=(told,)))
    check_lengths(kind, data, 0)
    assert aiokafka_requests.read(kind, data, 0)[1] == len(data)


def fetched(rows: int, wrong: int = -1) -> tuple[Any, bytes]:
    """A Fetch answer of so many rows, every third of them diverging; row ``wrong`` declares billions of records."""
    kind: Any = load_response_schema(1, 12)
    topic = get_args(next(held for held in fields(kind) if held.name == "responses").type)[0]
    partition = get_args(next(held for held in fields(topic) if held.name == "partitions").type)[0]
    diverging: Any = next(one.default for one in fields(partition) if one.name == "diverging_epoch")
    told = [
        partition(
            partition_index=number,
            error_code=ErrorCode.none,
            high_watermark=77,
            aborted_transactions=None if number % 2 else (),
            preferred_read_replica=-1,
            records=b"here" if number == wrong else b"",
            **({} if number % 3 else {"diverging_epoch": type(diverging)(epoch=3)}),
        )
        for number in range(rows)
    ]
    data = encoded(
        kind(
            throttle_time=timedelta(0),
            error_code=ErrorCode.none,
            session_id=0,
            responses=(topic(topic="orders", partitions=tuple(told)),),
        )
    )
    return kind, data.replace(b"\x05here", b"\xff\xff\xff\xff\x0f")


@pytest.mark.parametrize(
    ("call", "body"),
    [((75, 0), "0000000000ff00"), ((55, 2), "000000000000"), ((46, 0), "000000000000000000")],
)
def test_an_array_that_may_not_be_null_and_is_one_is_an_error(call: tuple[int, int], body: str) -> None:
    kind = load_response_schema(*call)
    with pytest.raises(LengthError):
        aiokafka_requests.read(kind, bytes.fromhex(body), 0)


@pytest.mark.parametrize("rows", [1, 7, 64, 75, 200])
def test_many_rows_at_a_stroke_are_the_same_rows(rows: int) -> None:
    kind, data = fetched(rows)
    walker = field_lengths._Walker(data, 0)
    field_lengths._message(kind)(walker)
    assert walker._at == len(data) == aiokafka_requests.read(kind, data, 0)[1]
    for cut in range(len(data) - 40, len(data)):
        with pytest.raises(LengthError):
            field_lengths._message(kind)(field_lengths._Walker(data[:cut], 0))


@pytest.mark.parametrize("wrong", [0, 63, 64, 71, 199])
def test_a_wrong_length_among_many_rows_is_seen(wrong: int) -> None:
    kind, data = fetched(200, wrong)
    with pytest.raises(LengthError):
        check_lengths(kind, data, 0)
