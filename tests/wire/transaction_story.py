"""Transactional producers of librdkafka on four brokers, simulated or real: what happens, step by step.

Brokers 1 to 3 have the topics, broker 4 coordinates and stays. Each side of a comparison has to see :data:`STORY`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from backends.base.transactions import Marker
from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from backends.live.codec.apis import Api
from console.jobs.consumers.group_offsets import GroupSelection, read_group_offsets
from console.jobs.consumers.hanging_transactions import PartitionsTransactions, read_transactions
from recovery.model import TopicPartition as Partition
from recovery.model import Unknown
from testbed.kafka import wait_until
from tests.wire.cluster_thread import WAIT
from tests.wire.raw_request import send_request

ENDED, LOST = "ended", "lost"
GROUP = "billing"
PATIENT = {"transaction.timeout.ms": 600_000}
"""Of producers whose transactions only they end."""


class StorySide(Protocol):
    """One of the two clusters."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """librdkafka's, for an unauthenticated client."""
        ...

    def create(self, topic: str) -> None:
        """One partition on 1, 2 and 3, min ISR 1."""
        ...

    def kill(self, *brokers: int) -> None:
        """Returns when they are fenced."""
        ...

    def start(self, *brokers: int) -> None: ...

    def wait_isr(self, topic: str, isr: set[int]) -> None: ...

    def elect_unclean(self, topic: str, leader: int) -> None:
        """Elects the one live replica."""
        ...


class TransactionView(NamedTuple):
    """One partition. ``stable`` is read with read_committed, ``all`` is everything up to the high watermark; each
    is (offset, value). ``open`` are (state of the coordinator, what became of it, first offset, epoch).
    """

    stable: tuple[tuple[int, str], ...]
    all: tuple[tuple[int, str], ...]
    last_stable: int
    high_watermark: int
    open: tuple[tuple[str, str, int, int], ...] = ()


Story = Mapping[str, Any]


def play(side: StorySide) -> Story:
    """Every step on one cluster; what was seen, by the name of the step."""
    return dict(_steps(side))


def _steps(side: StorySide) -> Iterator[tuple[str, Any]]:
    for topic in (ENDED, LOST):
        side.create(topic)
    commits, aborts, stays = (
        transactional_producer(side, name, PATIENT) for name in ("commits", "aborts", "stays")
    )
    _write(commits, ENDED, "a", 3)
    # The coordinator answers before its marker is written, and records of others may come before the marker.
    commits.commit_transaction(WAIT)
    _replicated(side, ENDED, 4)
    _write(aborts, ENDED, "b", 2)
    aborts.abort_transaction(WAIT)
    _replicated(side, ENDED, 7)
    _write(commits, ENDED, "c", 1)
    commits.commit_transaction(WAIT)
    yield "one committed, one aborted, one committed by the first", _view(side, ENDED, 9)
    _write(stays, ENDED, "d", 2)
    _write(commits, ENDED, "e", 1)
    yield "offsets before the commit", _committed_offset(side)
    commits.send_offsets_to_transaction(
        [TopicPartition(ENDED, 0, 4)], _group(side).consumer_group_metadata(), WAIT
    )
    commits.commit_transaction(WAIT)
    wait_until(lambda: _committed_offset(side) == 4, "the offset of the transaction", WAIT)
    yield "an open transaction hides what was committed after it", _view(side, ENDED, 13)
    _write(aborts, LOST, "x", 1)
    aborts.send_offsets_to_transaction(
        [TopicPartition(ENDED, 0, 5)], _group(side).consumer_group_metadata(), WAIT
    )
    yield "a group waits for the offsets of an open transaction", asyncio.run(_group_offset(side))
    aborts.abort_transaction(WAIT)
    _replicated(side, LOST, 2)
    yield "offsets of a transaction that was aborted", _committed_offset(side)
    yield "the group waits for nothing any more", asyncio.run(_group_offset(side))
    again = transactional_producer(side, "stays", PATIENT)
    yield "a second producer of the same id fences the first", _refusal(stays)
    yield "and ends its transaction", _view(side, ENDED, 14)
    _write_idempotent(side, ENDED, 3)
    yield "producers, by their last sequence and open transaction", _producers(side, ENDED)
    yield from _lost(side, again)


def _lost(side: StorySide, hangs: Producer) -> Iterator[tuple[str, Any]]:
    """The marker of a committed transaction is cut off by an unclean election."""
    _write(hangs, LOST, "y", 2)
    side.kill(2, 3)
    side.wait_isr(LOST, {1})
    hangs.commit_transaction(WAIT)
    yield "committed on broker 1 alone", _view(side, LOST, 5)
    side.kill(1)
    side.start(2)
    side.elect_unclean(LOST, 2)
    yield "the marker is cut off", _view(side, LOST, 4)
    yield "the right marker is accepted", asyncio.run(_write_marker(side))
    yield "and the records are visible", _view(side, LOST, 5)


_AT_FIRST = ((0, "a0"), (1, "a1"), (2, "a2"))
_ABORTED = ((4, "b0"), (5, "b1"))
_THEN = ((7, "c0"),)
_OPEN = ((9, "d0"), (10, "d1"))
_LATER = ((11, "e0"),)
_EVERYTHING = (*_AT_FIRST, *_ABORTED, *_THEN, *_OPEN, *_LATER)
_LOST_ONES = ((2, "y0"), (3, "y1"))
_ALL_OF_LOST = ((0, "x0"), *_LOST_ONES)
STORY: Story = {
    "one committed, one aborted, one committed by the first": TransactionView(
        (*_AT_FIRST, *_THEN), (*_AT_FIRST, *_ABORTED, *_THEN), 9, 9
    ),
    "offsets before the commit": OFFSET_INVALID,
    "an open transaction hides what was committed after it": TransactionView(
        (*_AT_FIRST, *_THEN), _EVERYTHING, 9, 13, (("Ongoing", "open and alive", 9, 0),)
    ),
    "a group waits for the offsets of an open transaction": (4, True, True),
    "offsets of a transaction that was aborted": 4,
    "the group waits for nothing any more": (4, False, False),
    "a second producer of the same id fences the first": "_FENCED",
    "and ends its transaction": TransactionView((*_AT_FIRST, *_THEN, *_LATER), _EVERYTHING, 14, 14),
    "producers, by their last sequence and open transaction": ((-1, -1), (1, -1), (2, -1), (4, -1)),
    "committed on broker 1 alone": TransactionView(_LOST_ONES, _ALL_OF_LOST, 5, 5),
    "the marker is cut off": TransactionView(
        (), _ALL_OF_LOST, 2, 4, (("CompleteCommit", "hanging, was committed", 2, 2),)
    ),
    "the right marker is accepted": None,
    "and the records are visible": TransactionView(_LOST_ONES, _ALL_OF_LOST, 5, 5),
}


def _view(side: StorySide, topic: str, end: int) -> TransactionView:
    """When everything up to ``end``, markers included, is replicated."""
    transactions = _replicated(side, topic, end)
    row = transactions.partitions[Partition(topic, 0)]
    return TransactionView(
        records_read(side, topic, "read_committed"),
        records_read(side, topic, "read_uncommitted"),
        row.last_stable,
        row.high_watermark,
        tuple(
            (
                "" if one.coordinated is None else str(one.coordinated.state),
                str(one.judgement) if isinstance(one.judgement, Unknown) else str(one.judgement.ending),
                one.transaction.start_offset,
                one.transaction.epoch,
            )
            for one in transactions.rows
        ),
    )


def _replicated(side: StorySide, topic: str, end: int) -> PartitionsTransactions:
    """Waits until the high watermark is ``end`` or later."""
    where = Partition(topic, 0)

    def replicated() -> PartitionsTransactions | None:
        read = asyncio.run(_read(side, topic))
        return read if where in read.partitions and read.partitions[where].high_watermark >= end else None

    return wait_until(replicated, f"{topic} to be replicated up to {end}", WAIT)


async def _read(side: StorySide, topic: str) -> PartitionsTransactions:
    backend = LiveBackend(ClientSettings(parse_addresses(str(side.settings["bootstrap.servers"]))))
    try:
        await backend.open()
        return await read_transactions(backend, [Partition(topic, 0)])
    finally:
        await backend.close()


async def _write_marker(side: StorySide) -> str | None:
    backend = LiveBackend(ClientSettings(parse_addresses(str(side.settings["bootstrap.servers"]))))
    try:
        await backend.open()
        (row,) = (await read_transactions(backend, [Partition(LOST, 0)])).rows
        one = row.transaction
        marker = Marker(one.tp, one.producer_id, one.epoch, True, 0)
        return (await backend.marker_writer().write(2, [marker]))[marker]
    finally:
        await backend.close()


async def _group_offset(side: StorySide) -> tuple[int, bool, bool]:
    """The committed offset, whether another one is pending, and whether the group is shown as concerned."""
    backend = LiveBackend(ClientSettings(parse_addresses(str(side.settings["bootstrap.servers"]))))
    try:
        await backend.open()
        (row,) = (await read_group_offsets(backend, GroupSelection(groups=(GROUP,)), WAIT)).rows
        return row.committed.offset, row.committed.pending, row.concerned
    finally:
        await backend.close()


def transactional_producer(side: StorySide, name: str, settings: Mapping[str, Any] | None = None) -> Producer:
    """That is ready to begin a transaction."""
    producer = Producer({**side.settings, **(settings or {}), "transactional.id": name})
    producer.init_transactions(WAIT)
    return producer


def _write(producer: Producer, topic: str, prefix: str, count: int) -> None:
    """In a new transaction, which stays open."""
    producer.begin_transaction()
    for number in range(count):
        producer.produce(topic, f"{prefix}{number}".encode(), partition=0)
    assert producer.flush(WAIT) == 0


def _write_idempotent(side: StorySide, topic: str, count: int) -> None:
    producer = Producer({**side.settings, "enable.idempotence": True})
    for number in range(count):
        producer.produce(topic, f"i{number}".encode(), partition=0)
    assert producer.flush(WAIT) == 0


def _producers(side: StorySide, topic: str) -> tuple[tuple[int, int], ...]:
    """As the leader's DescribeProducers has them."""
    admin = AdminClient(dict(side.settings))
    metadata = admin.list_topics(topic, WAIT)
    leader = metadata.brokers[metadata.topics[topic].partitions[0].leader]
    asked = {"topics": [{"name": topic, "partition_indexes": (0,)}]}
    answer = asyncio.run(send_request(leader.port, Api.DescribeProducers, 0, asked))
    rows = answer.topics[0].partitions[0].active_producers
    return tuple(sorted((row.last_sequence, row.current_txn_start_offset) for row in rows))


def _refusal(producer: Producer) -> str:
    """Of a commit."""
    try:
        producer.commit_transaction(WAIT)
    except KafkaException as error:
        return str(error.args[0].name())
    return ""


def _group(side: StorySide) -> Consumer:
    return Consumer({**side.settings, "group.id": GROUP, "enable.auto.commit": False})


def _committed_offset(side: StorySide) -> int:
    consumer = _group(side)
    try:
        return int(consumer.committed([TopicPartition(ENDED, 0)], WAIT)[0].offset)
    finally:
        consumer.close()


def records_read(side: StorySide, topic: str, isolation: str) -> tuple[tuple[int, str], ...]:
    """All that a consumer of that isolation level gets."""
    more = {"group.id": "by-hand", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({**side.settings, **more, "isolation.level": isolation})
    found: list[tuple[int, str]] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = consumer.poll(WAIT)
            assert message is not None, f"{topic}: {len(found)} records, and no end"
            if message.error() is None:
                found.append((message.offset() or 0, (message.value() or b"").decode()))
            elif "_PARTITION_EOF" in str(message.error()):
                return tuple(found)
    finally:
        consumer.close()


def committed_records(side: StorySide, topic: str, count: int) -> tuple[tuple[int, str], ...]:
    """What read_committed consumers get, as soon as there are so many."""

    def enough() -> tuple[tuple[int, str], ...] | None:
        found = records_read(side, topic, "read_committed")
        return found if len(found) >= count else None

    return wait_until(enough, f"{count} committed records of {topic}", WAIT)
