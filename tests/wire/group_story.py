"""Members of a consumer group (librdkafka) on a cluster, simulated or real: what happens, step by step.

Each side of a comparison has to see :data:`GROUP_STORY`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from recovery.groups.group_values import CommittedOffset, ConsumerGroup
from recovery.model import TopicPartition as Partition
from recovery.model import Unknown
from testbed.kafka import wait_until
from tests.wire.cluster_thread import WAIT

TOPIC, GROUP = "tills", "cashiers"
SESSION = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 500}

FENCED = ("_FATAL", "FENCED_INSTANCE_ID")


class GroupSide(Protocol):
    """One of the two clusters."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """librdkafka's, for an unauthenticated client."""
        ...

    def create(self, topic: str, partitions: int = 1) -> None: ...

    def kill_coordinator(self, broker: int) -> None:
        """Returns when another broker coordinates its groups."""
        ...


class MemberView(NamedTuple):
    """A member as DescribeGroups has it; ``instance`` is its group.instance.id."""

    client_id: str
    host: str
    instance: str | None
    partitions: int


class GroupView(NamedTuple):
    state: str
    assignor: str
    members: tuple[MemberView, ...]


class GroupConsumer:
    """A consumer that polls in its own thread, as an application does."""

    def __init__(self, side: GroupSide, name: str, settings: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.assigned: tuple[int, ...] = ()
        self.values: list[str] = []
        self.fenced = False
        self._stopped, self._committed = threading.Event(), threading.Event()
        self._offsets: list[TopicPartition] = []
        self.consumer = Consumer(
            {
                **side.settings,
                **SESSION,
                "group.id": GROUP,
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 1_000,
                **(settings or {}),
            }
        )
        self.consumer.subscribe([TOPIC], on_assign=self._on_assign, on_revoke=self._on_revoke)
        self._thread = threading.Thread(target=self._poll, name=name, daemon=True)
        self._thread.start()

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned = tuple(sorted(one.partition for one in partitions))

    def _on_revoke(self, _: Consumer, __: list[TopicPartition]) -> None:
        self.assigned = ()

    def _poll(self) -> None:
        while not self._stopped.is_set():
            if self._offsets and not self._committed.is_set():
                self.consumer.commit(offsets=self._offsets, asynchronous=False)
                self._committed.set()
            message = self.consumer.poll(0.05)
            if message is None:
                continue
            error = message.error()
            if error is None:
                self.values.append((message.value() or b"").decode())
            elif error.name() in FENCED:
                self.fenced = True

    def commit(self, offsets: Mapping[int, int]) -> None:
        """By partition; returns when the coordinator has answered."""
        self._offsets = [TopicPartition(TOPIC, number, offset) for number, offset in offsets.items()]
        assert self._committed.wait(WAIT)

    def close(self) -> None:
        """A dynamic member leaves the group; a static one is missing until its session ends."""
        self._stopped.set()
        self._thread.join(WAIT)
        self.consumer.close()


def play_group(side: GroupSide) -> Mapping[str, Any]:
    """Every step on one cluster; what was seen, by the name of the step."""
    consumers: list[GroupConsumer] = []
    try:
        return dict(_steps(side, consumers))
    finally:
        for one in consumers:
            one.close()


def _steps(side: GroupSide, consumers: list[GroupConsumer]) -> Iterator[tuple[str, Any]]:
    def consumer(name: str, **settings: Any) -> GroupConsumer:
        consumers.append(GroupConsumer(side, name, settings))
        return consumers[-1]

    side.create(TOPIC, 2)
    producer = Producer({**side.settings})
    for number in (0, 1):
        producer.produce(TOPIC, f"r{number}".encode(), partition=number)
    assert producer.flush(WAIT) == 0
    anna = consumer("anna")
    yield "one member has all partitions", _shared(side, anna)
    wait_until(lambda: len(anna.values) == 2, "both records", WAIT)
    yield "records read", tuple(sorted(anna.values))
    anna.commit({0: 1, 1: 1})
    yield "committed by the member", asyncio.run(_committed(side))
    yield "another client may not commit", asyncio.run(_commit(side))
    bert = consumer("bert", **{"group.instance.id": "till-2"})
    yield "two members share", _shared(side, anna, bert)
    side.kill_coordinator(asyncio.run(_group(side)).coordinator)
    yield "the next coordinator knows them", _shared(side, anna, bert)
    twin = consumer("twin", **{"group.instance.id": "till-2"})
    twin.name = "bert"  # Kafka goes on to show the client id of the static member's former self
    yield (
        "a static member that comes twice fences its former self",
        wait_until(lambda: bert.fenced, "a fence", WAIT),
    )
    consumers.remove(bert)
    bert.close()
    yield "and takes its place", _shared(side, anna, twin)
    consumers.remove(twin)
    twin.close()
    yield "a static member that is away is a member", _view(side)
    yield "until its session ends", _shared(side, anna)
    consumers.remove(anna)
    anna.close()
    yield "all have left", _shared(side)
    yield "another client may commit now", asyncio.run(_commit(side))
    yield "and that is read back", asyncio.run(_committed(side))


_ANNA, _ANNA_ALONE = MemberView("anna", "/127.0.0.1", None, 1), MemberView("anna", "/127.0.0.1", None, 2)
_BERT = MemberView("bert", "/127.0.0.1", "till-2", 1)
_ALONE = GroupView("STABLE", "range", (_ANNA_ALONE,))
GROUP_STORY: Mapping[str, Any] = {
    "one member has all partitions": _ALONE,
    "records read": ("r0", "r1"),
    "committed by the member": {0: 1, 1: 1},
    "another client may not commit": "failed: OffsetCommit answered UNKNOWN_MEMBER_ID",
    "two members share": GroupView("STABLE", "range", (_ANNA, _BERT)),
    "the next coordinator knows them": GroupView("STABLE", "range", (_ANNA, _BERT)),
    "a static member that comes twice fences its former self": True,
    "and takes its place": GroupView("STABLE", "range", (_ANNA, _BERT)),
    "a static member that is away is a member": GroupView("STABLE", "range", (_ANNA, _BERT)),
    "until its session ends": _ALONE,
    "all have left": GroupView("EMPTY", "", ()),
    "another client may commit now": "",
    "and that is read back": {0: 0, 1: 1},
}


def _shared(side: GroupSide, *consumers: GroupConsumer) -> GroupView:
    """When these are the members, and each has the partitions that the coordinator says."""

    def shared() -> GroupView | None:
        view = _view(side)
        if view is None or view.state not in ("STABLE", "EMPTY"):
            return None
        assigned = {one.client_id: one.partitions for one in view.members}
        return view if assigned == {one.name: len(one.assigned) for one in consumers} else None

    names = ", ".join(one.name for one in consumers) or "nobody"
    return wait_until(shared, f"{names} to share the partitions", WAIT)


def _view(side: GroupSide) -> GroupView | None:
    """None while no coordinator answers."""
    admin = AdminClient(dict(side.settings))
    try:
        found = admin.describe_consumer_groups([GROUP], request_timeout=5)[GROUP].result(WAIT)
    except (KafkaException, TimeoutError):
        return None
    members = (
        MemberView(
            one.client_id,
            one.host,
            one.group_instance_id,
            len(one.assignment.topic_partitions) if one.assignment else 0,
        )
        for one in found.members
    )
    return GroupView(found.state.name, found.partition_assignor, tuple(sorted(members)))


async def _group(side: GroupSide) -> ConsumerGroup:
    async with _backend(side) as backend:
        listing = await backend.consumer_groups().listed()
        return next(one for one in listing.groups if one.name == GROUP)


async def _committed(side: GroupSide) -> Mapping[int, int]:
    group = await _group(side)
    async with _backend(side) as backend:
        offsets = (await backend.consumer_groups().committed([group], None))[GROUP]
        assert not isinstance(offsets, Unknown)
        return {tp.partition: committed.offset for tp, committed in offsets.items()}


async def _commit(side: GroupSide) -> str:
    """Offset 0 of partition 0, as a client that is no member; why it was refused."""
    group = await _group(side)
    async with _backend(side) as backend:
        tp = Partition(TOPIC, 0)
        return (await backend.offset_writer().commit(group, {tp: CommittedOffset(0)}))[tp] or ""


@asynccontextmanager
async def _backend(side: GroupSide) -> AsyncIterator[LiveBackend]:
    backend = LiveBackend(ClientSettings(parse_addresses(str(side.settings["bootstrap.servers"]))))
    try:
        await backend.open()
        yield backend
    finally:
        await backend.close()
