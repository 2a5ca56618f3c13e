"""Consumers of groups, and producers of transactions, as the tests of what an election does to them use them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

from confluent_kafka import Consumer, Producer, TopicPartition
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.leave_group.v5.response import LeaveGroupResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment
from kio.schema.sync_group.v5.response import SyncGroupResponse
from kio.schema.types import GroupId
from kio.static.primitive import i32Timedelta

from testbed.kafka import KafkaCluster
from testbed.kafka.connection import Connection

SECONDS = 60.0
_MEMBER_SECONDS = i32Timedelta.parse(timedelta(seconds=SECONDS))


def read_and_commit(
    cluster: KafkaCluster,
    group: str,
    topic: str,
    count: int,
    *,
    epoch: bool = True,
    protocol: str = "classic",
) -> None:
    """A member of the group reads ``count`` records of partition 0, commits, and leaves. ``epoch`` False: it
    commits the offset alone, as clients did before KIP-320. ``protocol``: group.protocol.
    """
    consumer = _consumer(cluster, group, {"auto.offset.reset": "earliest", "group.protocol": protocol})
    consumer.subscribe([topic])
    try:
        values, deadline = 0, time.monotonic() + SECONDS
        while values < count:
            assert time.monotonic() < deadline, f"{group} read {values} of {count} records"
            for message in consumer.consume(min(100, count - values), timeout=0.5):
                assert message.error() is None, message.error()
                values += 1
                last = message
        at = TopicPartition(topic, 0, count, leader_epoch=last.leader_epoch() if epoch else -1)
        (committed,) = consumer.commit(offsets=[at], asynchronous=False)
        assert committed.error is None, committed.error
    finally:
        consumer.close()


def read_on(
    cluster: KafkaCluster,
    group: str,
    topic: str,
    end: int,
    isolation: str = "read_uncommitted",
    *,
    subscribed: bool = False,
) -> list[str]:
    """What a member of the group reads from its committed offset to ``end``; it commits nothing. ``subscribed``:
    the group assigns the partition, and not the application with the committed epoch.
    """
    more = {"auto.offset.reset": "error", "isolation.level": isolation}
    consumer = _consumer(cluster, group, more)
    where = TopicPartition(topic, 0)
    values: list[str] = []
    deadline = time.monotonic() + SECONDS
    try:
        if subscribed:
            consumer.subscribe([topic])
        else:
            consumer.assign(consumer.committed([where], timeout=SECONDS))
        while consumer.position([where])[0].offset < end:
            assert time.monotonic() < deadline, (
                f"{group} read {len(values)} records: {consumer.position([where])}"
            )
            for message in consumer.consume(100, timeout=0.2):
                assert message.error() is None, message.error()
                values.append((message.value() or b"").decode())
    finally:
        consumer.close()
    return values


def member(cluster: KafkaCluster, group: str, topic: str, protocol: str = "classic") -> Consumer:
    """A consumer that is in the group, and commits nothing."""
    named = {"client.id": f"{group}-member", "group.protocol": protocol}
    consumer = _consumer(cluster, group, {**named, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    deadline = time.monotonic() + SECONDS
    while not consumer.assignment():
        assert time.monotonic() < deadline, f"{group} got no assignment"
        consumer.poll(0.2)
    return consumer


@contextmanager
def raw_member(
    cluster: KafkaCluster, group: str, coordinator: int, protocol_type: str, protocol: str
) -> Iterator[None]:
    """A member of the classic protocol that says it is of that type, and has that assignor: as Kafka Streams and
    Kafka Connect join, which no client here can. It leaves at the end.
    """
    join = JoinGroupRequest(
        group_id=GroupId(group),
        session_timeout=_MEMBER_SECONDS,
        rebalance_timeout=_MEMBER_SECONDS,
        member_id="",
        protocol_type=protocol_type,
        protocols=(JoinGroupRequestProtocol(name=protocol, metadata=b""),),
    )
    with Connection(cluster.node(coordinator).port, None, SECONDS) as connection:
        name = connection.ask(join, JoinGroupResponse).member_id
        joined = connection.ask(replace(join, member_id=name), JoinGroupResponse)
        assert not joined.error_code, joined
        sync = SyncGroupRequest(
            group_id=GroupId(group),
            generation_id=joined.generation_id,
            member_id=name,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=(SyncGroupRequestAssignment(member_id=name, assignment=b""),),
        )
        synced = connection.ask(sync, SyncGroupResponse)
        assert not synced.error_code, synced
        try:
            yield
        finally:
            leaving = (MemberIdentity(member_id=name, group_instance_id=None),)
            connection.ask(LeaveGroupRequest(group_id=GroupId(group), members=leaving), LeaveGroupResponse)


def transaction(cluster: KafkaCluster, name: str, topic: str, count: int) -> Producer:
    """A producer with ``count`` records of partition 0 in a transaction, which is open."""
    limits = {"transactional.id": name, "transaction.timeout.ms": 600_000}
    producer = Producer(cluster.superuser_config() | limits)
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    for number in range(count):
        producer.produce(topic, f"{name}-{number}".encode(), partition=0)
    assert producer.flush(SECONDS) == 0
    return producer


def _consumer(cluster: KafkaCluster, group: str, more: Mapping[str, object]) -> Consumer:
    return Consumer({**cluster.superuser_config(), "group.id": group, "enable.auto.commit": False, **more})
