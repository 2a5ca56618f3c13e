"""Answers that name no leader: a broker lacks the listener that is asked, or the last known leader is -1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from struct import pack
from typing import Any, TypeVar

from kio.schema.describe_topic_partitions.v0.response import DescribeTopicPartitionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.response import MetadataResponse
from kio.serial import entity_reader, entity_writer

from backends.live.codec.apis import Api
from console.jobs.pipeline.snapshot_series import Series, SnapshotSettings
from console.reading.partition_selection import Selection, Which, select
from pipeline.storage import storage_path
from recovery.model import TopicPartition
from tests.pipeline.survey_strategies import NOON
from tests.wire.response_faults import HIDDEN, ServedBackend, served_backend

T = TypeVar("T", DescribeTopicPartitionsResponse, MetadataResponse)
CLICKS = (TopicPartition("clicks", 0), TopicPartition("clicks", 1))
LEADER = 4


def rewritten(kind: type[T], change: Callable[[T], T]) -> Callable[[bytes], bytes]:
    """A frame with its decoded answer changed."""

    def frame(data: bytes) -> bytes:
        answer, _ = entity_reader(kind)(data, 9)
        buffer = BytesIO()
        entity_writer(kind)(buffer, change(answer))
        body = data[4:9] + buffer.getvalue()
        return pack(">i", len(body)) + body

    return frame


def _partitions(answer: Any, change: Callable[[Any], Any]) -> Any:
    topics = tuple(
        replace(topic, partitions=tuple(change(p) if p.leader_id == LEADER else p for p in topic.partitions))
        for topic in answer.topics
    )
    return replace(answer, topics=topics)


def _described(partition: Any) -> Any:
    """As Kafka describes it: no leader, no error, and the leader among the offline replicas."""
    return replace(partition, leader_id=-1, offline_replicas=(LEADER,))


def _metadata(partition: Any) -> Any:
    return replace(
        partition, leader_id=-1, offline_replicas=(LEADER,), error_code=ErrorCode.listener_not_found
    )


DESCRIBED = rewritten(DescribeTopicPartitionsResponse, lambda answer: _partitions(answer, _described))
METADATA = rewritten(MetadataResponse, lambda answer: _partitions(answer, _metadata))


async def without_listener(api_key: int, frame: bytes) -> bytes | None:
    """Every broker answers by a listener that broker 4, which leads both partitions of clicks, does not have."""
    if api_key == Api.DescribeTopicPartitions:
        return DESCRIBED(frame)
    return METADATA(frame) if api_key == Api.Metadata else frame


def tamper(on: ServedBackend) -> None:
    for broker in (1, 2, 4):
        on.tamper(broker, without_listener)


async def test_it_is_not_among_the_offline_partitions_and_the_listener_is_named() -> None:
    async with served_backend(HIDDEN) as on:
        tamper(on)
        found = await on.backend.partitions()
        offline = await select(on.backend, Selection(which=Which.OFFLINE))
    assert {state.topic for state in found.states if state.offline} == {"orders"}
    assert set(found.unknown) == set(CLICKS)
    assert {state.topic for state in offline.states} == {"orders"}
    assert set(offline.unreachable_leaders) == set(CLICKS)
    for why in offline.unreachable_leaders.values():
        assert "it has a leader" in why.detail
        assert "listener" in why.detail


async def test_a_snapshot_does_not_count_it_as_offline_and_says_how_many_are_left_out(tmp_path: Path) -> None:
    async with served_backend(HIDDEN) as on:
        tamper(on)
        taking = SnapshotSettings(storage_path(str(tmp_path)), 10.0, lambda: NOON, lambda: "token", "test")
        taken = await Series(on.backend, taking).full()
        offline = sum(state.offline for state in (await on.backend.partitions()).states)
    assert taken.offline == offline
    assert taken.leaders_unreachable == len(CLICKS)


async def test_a_truly_offline_partition_costs_no_further_request() -> None:
    asked: list[int] = []

    async def counts(api_key: int, frame: bytes) -> bytes | None:
        asked.append(api_key)
        return frame

    async with served_backend(HIDDEN) as on:
        for broker in (1, 2, 4):
            on.tamper(broker, counts)
        found = await on.backend.partitions(["orders"])
    assert all(state.offline and not state.isr for state in found.states)
    assert Api.DescribeTopicPartitions in asked
    assert Api.Metadata not in asked


async def test_minus_one_as_the_last_known_leader_is_nobody_to_wait_for() -> None:
    """Kafka can write it when a partition without a leader loses a replica in a reassignment."""

    async def unnamed(api_key: int, frame: bytes) -> bytes | None:
        if api_key != Api.DescribeTopicPartitions:
            return frame
        rewrite = rewritten(
            DescribeTopicPartitionsResponse,
            lambda answer: _partitions(
                answer, lambda p: replace(p, leader_id=-1, isr_nodes=(), last_known_elr=(-1,))
            ),
        )
        return rewrite(frame)

    async with served_backend(HIDDEN) as on:
        for broker in (1, 2, 4):
            on.tamper(broker, unnamed)
        found = await on.backend.partitions()
    clicks = [state for state in found.states if state.topic == "clicks"]
    assert len(clicks) == len(CLICKS)
    assert all(state.last_known_elr == () for state in clicks)
