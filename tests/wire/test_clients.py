"""librdkafka, which nobody here wrote, at the served simulator: it produces and consumes while leaders change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from backends.simulator.scenario.files import read
from backends.simulator.served.principals import Principal
from backends.simulator.served.served_cluster import ServedClusterOptions
from recovery.model import TopicPartition as Partition
from tests.wire.cluster_thread import WAIT, ClusterThread

SCENARIO = read(str(Path(__file__).parent / "scenarios" / "three-at-peace.yaml"))
ORDERS = Partition("orders", 0)
QUICK = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "topic.metadata.refresh.fast.interval.ms": 100,
}


@pytest.fixture
def served() -> Iterator[ClusterThread]:
    with ClusterThread(SCENARIO, ServedClusterOptions(speed=3.0)) as found:
        yield found


def create(served: ClusterThread, topic: str, **config: str) -> None:
    create_as({}, served, topic, config)


def create_as(
    user: Mapping[str, str], served: ClusterThread, topic: str, config: Mapping[str, str] | None = None
) -> None:
    """``user`` are librdkafka's settings of one."""
    admin = AdminClient({"bootstrap.servers": served.bootstrap, **user})
    made = admin.create_topics(
        [NewTopic(topic, num_partitions=1, replica_assignment=[[1, 2, 3]], config=dict(config or {}))]
    )
    made[topic].result(WAIT)


class Sender:
    """One producer; ``offsets`` by value, as they were acknowledged."""

    def __init__(self, served: ClusterThread, **settings: Any) -> None:
        self._producer = Producer(
            {"bootstrap.servers": served.bootstrap, "linger.ms": 5, **QUICK, **settings}
        )
        self.offsets: dict[str, int] = {}
        self.errors: list[KafkaError] = []

    def send(self, topic: str, values: list[str]) -> None:
        """Without waiting for anything."""
        for value in values:
            self._producer.produce(topic, value, partition=0, on_delivery=self._delivered)
        self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            self.offsets[message.value().decode()] = message.offset()

    def wait(self) -> None:
        assert self._producer.flush(WAIT) == 0
        assert not self.errors


def text(message: Message) -> str:
    value = message.value()
    assert isinstance(value, bytes)
    return value.decode()


def consumer_of(served: ClusterThread) -> Consumer:
    """One that commits nothing: there are no groups here."""
    return Consumer(
        {"bootstrap.servers": served.bootstrap, "group.id": "by-hand", "enable.auto.commit": False, **QUICK}
    )


def consume(served: ClusterThread, topic: str, count: int) -> list[tuple[int, str]]:
    """That many records from the beginning, by assignment."""
    consumer = consumer_of(served)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[tuple[int, str]] = []
        while len(found) < count:
            message = consumer.poll(WAIT)
            assert message is not None, f"{len(found)} of {count}"
            if message.error() is None:
                found.append((message.offset() or 0, text(message)))
        return found
    finally:
        consumer.close()


@pytest.mark.parametrize(
    "settings",
    [{"acks": "1"}, {"acks": "all"}, {"enable.idempotence": True}],
    ids=["acks=1", "acks=all", "idempotent"],
)
def test_what_is_acknowledged_is_read_in_its_order(served: ClusterThread, settings: dict[str, Any]) -> None:
    create(served, "orders")
    sender = Sender(served, **settings)
    values = [f"order {number}" for number in range(500)]
    sender.send("orders", values)
    sender.wait()
    assert consume(served, "orders", 500) == list(enumerate(values))
    assert sender.offsets == {value: offset for offset, value in enumerate(values)}


def test_an_idempotent_producer_goes_on_through_a_change_of_leader_and_nothing_is_lost_or_twice(
    served: ClusterThread,
) -> None:
    create(served, "orders", **{"min.insync.replicas": "2"})
    sender = Sender(served, **{"enable.idempotence": True})
    sender.send("orders", [f"before {number}" for number in range(300)])
    sender.wait()
    served.change(lambda world: world.kill_broker(1))
    sender.send("orders", [f"after {number}" for number in range(300)])
    sender.wait()
    assert served.partition("orders").leader != 1
    found = consume(served, "orders", 600)
    assert [offset for offset, _ in found] == list(range(600))
    assert [value for _, value in found] == [
        *(f"before {number}" for number in range(300)),
        *(f"after {number}" for number in range(300)),
    ]
    assert sender.offsets == {value: offset for offset, value in found}


@pytest.mark.parametrize("acks", ["1", "all"])
def test_a_producer_goes_on_through_a_change_of_leader_and_what_all_had_is_kept(
    served: ClusterThread, acks: str
) -> None:
    create(served, "orders", **{"min.insync.replicas": "2"})
    sender = Sender(served, acks=acks)
    before, after = ([f"{when} {number}" for number in range(300)] for when in ("before", "after"))
    sender.send("orders", before)
    sender.wait()
    served.until(
        lambda world: all(disk.logs[ORDERS].high_watermark == 300 for disk in world.disks.values()),
        "everybody to have it, and to know it",
    )
    served.change(lambda world: world.kill_broker(1))
    sender.send("orders", after)
    sender.wait()
    assert served.partition("orders").leader != 1
    # Without idempotence a batch whose answer was lost may be there twice; none is missing or out of its order.
    seen = consume(served, "orders", 600)
    while len({value for _, value in seen}) < 600:
        seen = consume(served, "orders", len(seen) + 1)
    assert list(dict.fromkeys(value for _, value in seen)) == [*before, *after]


def test_a_consumer_goes_on_through_a_change_of_leader(served: ClusterThread) -> None:
    create(served, "orders")
    sender = Sender(served, acks="all")
    sender.send("orders", [f"{number}" for number in range(100)])
    sender.wait()
    consumer = consumer_of(served)
    try:
        consumer.assign([TopicPartition("orders", 0, 0)])
        found: list[str] = []
        while len(found) < 200:
            message = consumer.poll(WAIT)
            assert message is not None
            if message.error() is None:
                found.append(text(message))
            if len(found) == 100 and served.partition("orders").leader == 1:
                served.change(lambda world: world.kill_broker(1))
                served.until(lambda world: world.image.brokers[1].fenced, "broker 1 to be fenced")
                sender.send("orders", [f"{number}" for number in range(100, 200)])
                sender.wait()
        assert found == [f"{number}" for number in range(200)]
    finally:
        consumer.close()


def test_what_the_scenarios_own_producers_wrote_can_be_read() -> None:
    with ClusterThread(read("stale-long-tail")) as cluster:
        cluster.change(lambda world: world.start_broker(3))
        cluster.until(lambda world: not list(world.image.leaderless()), "a leader")
        found = consume(cluster, "payments", 1000)
        assert [offset for offset, _ in found] == list(range(1000))
        assert found[999][1] == "record 999 of epoch 0"


def test_below_min_isr_acks_all_is_refused_and_acks_1_is_not(served: ClusterThread) -> None:
    create(served, "orders", **{"min.insync.replicas": "3"})
    served.change(lambda world: world.kill_broker(3))
    served.until(lambda world: world.image.brokers[3].fenced, "broker 3 to be fenced")
    careful = Sender(served, **{"acks": "all", "message.timeout.ms": 1500})
    careful.send("orders", ["never"])
    careful._producer.flush(WAIT)
    assert [error.code() for error in careful.errors] == [KafkaError._MSG_TIMED_OUT]
    careless = Sender(served, acks="1")
    careless.send("orders", ["once"])
    careless.wait()


def test_two_topics_that_would_be_one_in_metrics_cannot_both_be(served: ClusterThread) -> None:
    create(served, "b.c_d")
    with pytest.raises(Exception, match=r"Topic 'b_c\.d' collides with existing topic: b\.c_d"):
        create(served, "b_c.d")


USERS = {
    "alice": Principal("alice", "wonder", frozenset()),
    "bob": Principal("bob", "builder", frozenset({"WRITE topic *", "CREATE cluster"})),
    "carol": Principal("carol", "singer", frozenset({"CREATE topic *", "CREATE cluster"})),
}


def test_each_principal_has_permissions_of_its_own() -> None:
    with ClusterThread(SCENARIO, ServedClusterOptions(users=USERS)) as served:
        sasl = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        alice = {**sasl, "sasl.username": "alice", "sasl.password": "wonder"}
        bob = {**sasl, "sasl.username": "bob", "sasl.password": "builder"}
        allowed = Sender(served, **alice)
        allowed.send("first", ["hello"])
        allowed.wait()
        refused = Sender(served, **bob)
        refused.send("first", ["no"])
        refused._producer.flush(WAIT)
        assert [error.code() for error in refused.errors] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]
        # Who may make any topic, or this one, may make it.
        create_as(bob, served, "by-bob")
        carol = {**sasl, "sasl.username": "carol", "sasl.password": "singer"}
        with pytest.raises(KafkaException, match=r"TOPIC_AUTHORIZATION_FAILED.*Authorization failed"):
            create_as(carol, served, "by-carol")
        known = AdminClient({"bootstrap.servers": served.bootstrap, **alice})
        assert "first" in known.list_topics(timeout=WAIT).topics
        stranger = AdminClient(
            {"bootstrap.servers": served.bootstrap, **sasl, "sasl.username": "alice", "sasl.password": "x"}
        )
        with pytest.raises(Exception, match=r"(?i)timed out|transport|failed"):
            stranger.list_topics(timeout=3)
