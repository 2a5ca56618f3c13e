"""The requests that are encoded by hand are, byte for byte, those that kio writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from typing import Any
from uuid import NAMESPACE_DNS, UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.alter_partition_reassignments.v0 import request as assignments_v0
from kio.schema.alter_partition_reassignments.v1 import request as assignments_v1
from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.list_offsets.v7.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i32Timedelta, i64

from backends.live.codec.aiokafka_requests import CarriedRequest
from backends.live.codec.primitives import kafka_id, uuid_of
from backends.live.codec.recovery_tool_messages import GetReplicaLogInfoRequest, LogInfoTopic
from backends.live.codec.request_encoder import pack_assignments, pack_fetch, pack_list_offsets, pack_log_info
from recovery.model import TopicPartition

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TOPICS = st.sampled_from(["t", "orders", "x" * 249, "übung"])
PARTITIONS = st.builds(TopicPartition, TOPICS, st.integers(0, 2**31 - 1))
MANY = [TopicPartition("many", number) for number in range(300)]


def kio_list_offsets(partitions: list[TopicPartition], replica: int, timestamp: int) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=BrokerId(replica),
        isolation_level=i8(0),
        topics=tuple(
            ListOffsetsTopic(
                name=TopicName(topic),
                partitions=tuple(
                    ListOffsetsPartition(partition_index=i32(tp.partition), timestamp=i64(timestamp))
                    for tp in group
                ),
            )
            for topic, group in groupby(partitions, lambda tp: tp.topic)
        ),
    )


def kio_fetch(questions: dict[TopicPartition, tuple[int, int]]) -> FetchRequest:
    return FetchRequest(
        max_wait=i32Timedelta.parse(timedelta(0)),
        min_bytes=i32(0),
        max_bytes=i32(1),
        topics=tuple(
            FetchTopic(
                topic=TopicName(topic),
                partitions=tuple(
                    FetchPartition(
                        partition=i32(tp.partition),
                        fetch_offset=i64(offset),
                        last_fetched_epoch=i32(epoch),
                        partition_max_bytes=i32(1),
                    )
                    for tp, (offset, epoch) in group
                ),
            )
            for topic, group in groupby(questions.items(), lambda item: item[0].topic)
        ),
        forgotten_topics_data=(),
        rack_id="",
    )


@given(st.sets(PARTITIONS), INT32, INT64)
def test_list_offsets_is_what_kio_writes(found: set[TopicPartition], replica: int, timestamp: int) -> None:
    partitions = sorted(found)
    packed = CarriedRequest(pack_list_offsets(partitions, replica=replica, timestamp=timestamp))
    plain = CarriedRequest(kio_list_offsets(partitions, replica, timestamp))
    assert packed.encode() == plain.encode()
    assert packed.build_request_header(7, "me").encode() == plain.build_request_header(7, "me").encode()


@given(st.dictionaries(PARTITIONS, st.tuples(INT64, INT32)))
def test_fetch_is_what_kio_writes(found: dict[TopicPartition, tuple[int, int]]) -> None:
    questions = dict(sorted(found.items()))
    packed, plain = CarriedRequest(pack_fetch(questions)), CarriedRequest(kio_fetch(questions))
    assert packed.encode() == plain.encode()
    assert packed.build_request_header(7, "me").encode() == plain.build_request_header(7, "me").encode()


@given(st.dictionaries(PARTITIONS, st.just(None)), st.dictionaries(TOPICS, st.uuids() | st.none()))
def test_log_info_is_what_kio_writes(
    found: dict[TopicPartition, None], known: dict[str, UUID | None]
) -> None:
    partitions = sorted(found)
    ids = {tp: kafka_id(known.get(tp.topic, uuid5(NAMESPACE_DNS, tp.topic))) for tp in partitions}
    topics: dict[str, list[i32]] = {}
    for tp in partitions:
        topics.setdefault(ids[tp], []).append(i32(tp.partition))
    plain = GetReplicaLogInfoRequest(
        topic_partitions=tuple(
            LogInfoTopic(topic_id=uuid_of(topic), partitions=tuple(indexes))
            for topic, indexes in topics.items()
        )
    )
    assert CarriedRequest(pack_log_info(partitions, ids)).encode() == CarriedRequest(plain).encode()


@pytest.mark.parametrize("schema", [assignments_v0, assignments_v1], ids=["v0", "v1"])
@given(st.dictionaries(PARTITIONS, st.lists(INT32).map(tuple)), st.integers(0, 2**31 - 1))
def test_assignments_are_what_kio_writes(
    schema: Any, found: dict[TopicPartition, tuple[int, ...]], timeout_ms: int
) -> None:
    orders = dict(sorted(found.items()))
    plain = schema.AlterPartitionReassignmentsRequest(
        timeout=i32Timedelta.parse(timedelta(milliseconds=timeout_ms)),
        topics=tuple(
            schema.ReassignableTopic(
                name=TopicName(topic),
                partitions=tuple(
                    schema.ReassignablePartition(partition_index=i32(tp.partition), replicas=orders[tp])
                    for tp in group
                ),
            )
            for topic, group in groupby(orders, lambda tp: tp.topic)
        ),
    )
    if schema is assignments_v1:
        plain = replace(plain, allow_replication_factor_change=False)
    packed = pack_assignments(schema.AlterPartitionReassignmentsRequest, orders, timeout_ms=timeout_ms)
    ours, theirs = CarriedRequest(packed), CarriedRequest(plain)
    assert ours.encode() == theirs.encode()
    assert ours.build_request_header(7, "me").encode() == theirs.build_request_header(7, "me").encode()


@pytest.mark.parametrize("count", [126, 127, 128, 300])
def test_lengths_beyond_one_byte_are_what_kio_writes(count: int) -> None:
    partitions = MANY[:count]
    packed = CarriedRequest(pack_list_offsets(partitions, replica=-2, timestamp=-1))
    assert packed.encode() == CarriedRequest(kio_list_offsets(partitions, -2, -1)).encode()
    questions = dict.fromkeys(partitions, (5, 1))
    assert CarriedRequest(pack_fetch(questions)).encode() == CarriedRequest(kio_fetch(questions)).encode()
