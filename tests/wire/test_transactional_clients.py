"""librdkafka's and aiokafka's transactional producers at the served simulator."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaException
from kio.schema.errors import ErrorCode

from backends.live.codec.apis import Api
from backends.simulator.network import broker
from backends.simulator.record_batches import GeneratedBatch, _generated
from backends.simulator.scenario.files import read
from backends.simulator.served.served_cluster import ServedClusterOptions
from backends.simulator.transaction_coordinators import TransactionCoordinators
from backends.simulator.world import World
from recovery.model import EpochSpan
from recovery.model import TopicPartition as Partition
from recovery.transactions.decision_records import state_partition
from tests.wire.cluster_thread import WAIT, ClusterThread
from tests.wire.raw_request import send_request
from tests.wire.test_clients import QUICK, create
from tests.wire.transaction_story import (
    PATIENT,
    STORY,
    committed_records,
    play,
    records_read,
    transactional_producer,
)

SCENARIOS = Path(__file__).parent / "scenarios"


class ServedSide:
    """The served simulator as a side of the story."""

    def __init__(self, served: ClusterThread) -> None:
        self._served = served

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"bootstrap.servers": self._served.bootstrap, **QUICK}

    def create(self, topic: str) -> None:
        create(self._served, topic)

    def kill(self, *brokers: int) -> None:
        for number in brokers:
            self._served.change(methodcaller("kill_broker", number))
        for number in brokers:
            self._served.until(partial(_is_fenced, number, True), f"{number} to be fenced")

    def start(self, *brokers: int) -> None:
        for number in brokers:
            self._served.change(methodcaller("start_broker", number))
            self._served.until(partial(_is_fenced, number, False), f"{number} to be back")

    def wait_isr(self, topic: str, isr: set[int]) -> None:
        tp = Partition(topic, 0)
        self._served.until(lambda world: set(world.image.partitions[tp].isr) == isr, f"ISR {isr}")

    def elect_unclean(self, topic: str, leader: int) -> None:
        tp = Partition(topic, 0)
        self._served.until(lambda world: world.image.partitions[tp].leader < 0, f"{topic} to be offline")
        asked: dict[str, Any] = {
            "election_type": 1,
            "topic_partitions": [{"topic": topic, "partitions": (0,)}],
            "timeout": 10_000,
        }
        port = self._served.do(lambda cluster: cluster.ports[broker(leader)])
        asyncio.run(send_request(port, Api.ElectLeaders, 2, asked))
        self._served.until(lambda world: world.image.partitions[tp].leader == leader, f"{leader} to lead")


def _is_fenced(number: int, wanted: bool, world: World) -> bool:
    return world.image.brokers[number].fenced is wanted


@pytest.fixture
def served() -> Iterator[ClusterThread]:
    scenario = read(str(SCENARIOS / "four-brokers.yaml"))
    with ClusterThread(scenario, ServedClusterOptions(speed=3.0)) as found:
        yield found


@pytest.mark.long
def test_what_a_transactional_producer_and_its_consumers_see(served: ClusterThread) -> None:
    seen = play(ServedSide(served))
    assert list(seen) == list(STORY)
    for step, wanted in STORY.items():
        assert seen[step] == wanted, step


def test_the_first_transactional_producer_of_a_cluster_creates_its_coordinators_topic() -> None:
    with ClusterThread(
        read(str(SCENARIOS / "three-at-peace.yaml")), ServedClusterOptions(speed=3.0)
    ) as found:
        side = ServedSide(found)
        side.create("orders")
        producer = transactional_producer(side, "pays")
        producer.begin_transaction()
        producer.produce("orders", b"one", partition=0)
        producer.commit_transaction(WAIT)
        assert committed_records(side, "orders", 1) == ((0, "one"),)
        state = found.partition("__transaction_state", 49)
        assert len(state.replicas) == 3


def test_a_transaction_goes_on_when_its_coordinator_dies() -> None:
    with ClusterThread(
        read(str(SCENARIOS / "three-at-peace.yaml")), ServedClusterOptions(speed=3.0)
    ) as found:
        side = ServedSide(found)
        side.create("orders")
        producer = transactional_producer(side, "pays")
        producer.begin_transaction()
        producer.produce("orders", b"one", partition=0)
        assert producer.flush(WAIT) == 0
        tp = Partition("__transaction_state", state_partition("pays", 50))
        coordinator = found.do(lambda cluster: cluster.world.image.partitions[tp].leader)
        side.kill(coordinator)
        producer.commit_transaction(WAIT)
        assert committed_records(side, "orders", 1) == ((0, "one"),)


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_refused(served: ClusterThread) -> None:
    side = ServedSide(served)
    side.create("orders")
    producer = transactional_producer(side, "slow", {"transaction.timeout.ms": 2000})
    other = transactional_producer(side, "quick")
    producer.begin_transaction()
    producer.produce("orders", b"never", partition=0)
    assert producer.flush(WAIT) == 0
    other.begin_transaction()
    other.produce("orders", b"after", partition=0)
    other.commit_transaction(WAIT)
    assert committed_records(side, "orders", 1) == ((1, "after"),)
    with pytest.raises(KafkaException):
        producer.commit_transaction(WAIT)


async def test_aiokafkas_producer_commits_and_aborts() -> None:
    scenario = read(str(SCENARIOS / "four-brokers.yaml"))
    with ClusterThread(scenario, ServedClusterOptions(speed=3.0)) as found:
        side = ServedSide(found)
        side.create("orders")
        producer = AIOKafkaProducer(bootstrap_servers=found.bootstrap, transactional_id="aio")
        await producer.start()
        try:
            async with producer.transaction():
                await producer.send_and_wait("orders", b"kept")
            await producer.begin_transaction()
            await producer.send_and_wait("orders", b"dropped")
            await producer.abort_transaction()
        finally:
            await producer.stop()
        records = await asyncio.to_thread(committed_records, side, "orders", 1)
        assert records == ((0, "kept"),)


def test_a_producer_that_was_fenced_writes_nothing_more(served: ClusterThread) -> None:
    side = ServedSide(served)
    side.create("orders")
    first = transactional_producer(side, "pays", PATIENT)
    first.begin_transaction()
    first.produce("orders", b"aborted", partition=0)
    assert first.flush(WAIT) == 0
    second = transactional_producer(side, "pays", PATIENT)
    with pytest.raises(KafkaException):
        first.produce("orders", b"never", partition=0)
        first.commit_transaction(WAIT)
    second.begin_transaction()
    second.produce("orders", b"kept", partition=0)
    second.commit_transaction(WAIT)
    assert committed_records(side, "orders", 1) == ((2, "kept"),), "1 is the marker of the abort"
    assert records_read(side, "orders", "read_uncommitted") == ((0, "aborted"), (2, "kept"))


@pytest.mark.parametrize(
    ("version", "error"), [(11, ErrorCode.invalid_txn_state), (12, ErrorCode.none)], ids=["older", "newer"]
)
def test_a_partition_takes_part_by_the_client_or_by_its_leader(
    served: ClusterThread, version: int, error: ErrorCode
) -> None:
    """An older client has to add it; for a newer one the leader does (KIP-890)."""
    side = ServedSide(served)
    side.create("orders")
    transactional_producer(side, "pays")
    producer = served.do(lambda cluster: TransactionCoordinators(cluster.world).state("pays"))
    assert producer is not None
    batch = _generated(GeneratedBatch(1, producer.producer_id, producer.epoch), 0, EpochSpan(0, 0, 1), 0)
    rows = [{"index": 0, "records": batch}]
    asked: dict[str, Any] = {"transactional_id": "pays", "acks": 1, "timeout": 1000}
    topics = [{"name": "orders", "partition_data": rows}]
    leader = served.partition("orders").leader
    port = served.do(lambda cluster: cluster.ports[broker(leader)])
    answer = asyncio.run(send_request(port, Api.Produce, version, {**asked, "topic_data": topics}))
    assert [row.error_code for one in answer.responses for row in one.partition_responses] == [error]


def test_leaders_ask_a_coordinator_whether_a_partition_takes_part_or_add_it(served: ClusterThread) -> None:
    side = ServedSide(served)
    side.create("orders")
    transactional_producer(side, "pays")
    producer = served.do(lambda cluster: TransactionCoordinators(cluster.world).state("pays"))
    assert producer is not None
    one = {"transactional_id": "pays", "producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    topics = [{"name": "orders", "partitions": (0,)}]

    def asked(number: int, *, verify_only: bool) -> ErrorCode:
        port = served.do(lambda cluster: cluster.ports[broker(number)])
        body: dict[str, Any] = {"transactions": [{**one, "verify_only": verify_only, "topics": topics}]}
        answer = asyncio.run(send_request(port, Api.AddPartitionsToTxn, 5, body))
        ((row,),) = (
            rows.results_by_partition for t in answer.results_by_transaction for rows in t.topic_results
        )
        return ErrorCode(row.partition_error_code)

    assert asked(1, verify_only=True) is ErrorCode.not_coordinator
    assert asked(4, verify_only=True) is ErrorCode.invalid_txn_state
    assert asked(4, verify_only=False) is ErrorCode.none
    assert asked(4, verify_only=True) is ErrorCode.none
