"""What min.insync.replicas was for the broker that led: three histories on a real cluster in which it was lower.

In each of them a broker led alone, an acks=all producer was told that its records were written, and the broker is
dead now. By the topic's name, by another broker's value or by the newest value, its ISR was below min ISR, and the
election of another replica would lose nothing. A consumer counts what that election loses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from confluent_kafka import KafkaError, Message, Producer

from recovery.controller.rules import MIN_ISR
from testbed.kafka import KafkaCluster, wait_until
from testbed.kafka.node import Node
from tests.live import advised_operator
from tests.live.advised_operator import AGGRESSIVE, Night, Operator, create, left
from tests.live.incident_steps import alter_topic, kill, produce, start, unregister, wait_all, wait_offline

pytestmark = pytest.mark.long

CLUSTER = advised_operator.CLUSTER

COMMON, ALONE, EARLY = 1000, 300, 10
AGAIN, ONE_BROKER, RAISED = "made-again", "one-broker", "raised"
PARTITIONS = 100
"""So many new leaders take a broker that hears slowly long enough for records to come in between."""


@pytest.fixture(scope="module")
def operator(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    """With every broker running: a module before may have left one down."""
    cluster.bring_all_up()
    return Operator(cluster, tmp_path_factory.mktemp("operator"))


@pytest.fixture(scope="module")
def one_led_alone(cluster: KafkaCluster, operator: Operator) -> Night:
    """3 and 2 die; 1 takes records alone, with min ISR 1, and dies; 2 and 3 return."""
    create(cluster, (AGAIN,), [1, 2, 3], min_insync_replicas=2)
    cluster.admin.delete_topics([AGAIN])[AGAIN].result(60)
    wait_until(lambda: AGAIN not in cluster.admin.list_topics(timeout=10).topics, "the deletion", 60)
    set_broker_min_isr(cluster, 2, 2)
    topics = (AGAIN, ONE_BROKER)
    create(cluster, topics, [1, 2, 3])
    for topic in topics:
        produce(cluster, topic, COMMON, "common")
    kill(cluster, 3, 2)
    wait_all(cluster, topics, lambda state: state.isr == (1,), "with 1 alone in the ISR")
    for topic in topics:
        produce(cluster, topic, ALONE, "alone")
    kill(cluster, 1)
    start(cluster, 2, 3)
    wait_offline(cluster, topics)
    advice = {topic: operator.advised(topic, *AGGRESSIVE) for topic in topics}
    for topic in topics:
        operator.elect(topic)
    set_broker_min_isr(cluster, 2, None)
    start(cluster, 1)
    wait_all(cluster, topics, lambda state: set(state.isr) == {1, 2, 3}, "fully replicated")
    return Night(advice, {topic: left(cluster, topic) for topic in topics})


def set_broker_min_isr(cluster: KafkaCluster, broker: int, value: int | None) -> None:
    named = ("--entity-type", "brokers", "--entity-name", str(broker))
    added, removed = (
        ("--add-config", f"min.insync.replicas={value}"),
        ("--delete-config", "min.insync.replicas"),
    )
    cluster.tools("kafka-configs", "--alter", *named, *(removed if value is None else added))


def test_a_topic_made_again_has_none_of_the_old_min_isr(one_led_alone: Night) -> None:
    """No record removes a topic's configuration with the topic: the old 2 is still the newest in the log."""
    assert one_led_alone.advice[AGAIN].acknowledged(2)["verdict"] == "open"
    assert one_led_alone.left[AGAIN] == {"common": COMMON}, f"{ALONE} were on broker 1"


def test_a_value_of_one_broker_says_nothing_of_another_one(one_led_alone: Night) -> None:
    """2 would refuse what 1 acknowledged: each leader has a min ISR of its own."""
    assert one_led_alone.advice[ONE_BROKER].acknowledged(2)["verdict"] == "open"
    assert one_led_alone.left[ONE_BROKER] == {"common": COMMON}, f"{ALONE} were on broker 1"


ATTEMPTS = 3


def hear_slowly(node: Node, heard: Callable[[], bool]) -> None:
    """Lets the broker go on in short turns until ``heard``: a moment of its own is long enough for clients then."""
    deadline = time.monotonic() + 12.0
    while not heard() and time.monotonic() < deadline:
        node.resume()
        time.sleep(0.005)
        node.pause()
        time.sleep(0.015)
    node.resume()


@contextmanager
def producing(cluster: KafkaCluster, topic: str) -> Iterator[dict[int, list[str]]]:
    """Sends to every partition until it ends; gives the acknowledged values, by partition."""
    quick = {"linger.ms": 0, "retry.backoff.ms": 1, "retry.backoff.max.ms": 5, "retries": 1000}
    fresh = {"topic.metadata.refresh.fast.interval.ms": 5, "topic.metadata.refresh.interval.ms": 10}
    queue = {"queue.buffering.max.messages": 1_000_000, "message.timeout.ms": 30_000}
    ports = [cluster.node(broker).port for broker in (3, 4)]
    servers = {"bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in ports)}
    producer = Producer(cluster.superuser_config() | servers | quick | fresh | queue | {"acks": "all"})
    acknowledged: dict[int, list[str]] = {}
    ended = Event()

    def delivered(error: KafkaError | None, message: Message) -> None:
        value, partition = message.value(), message.partition()
        if error is None and value is not None and partition is not None:
            acknowledged.setdefault(partition, []).append(value.decode())

    def send() -> None:
        number = 0
        while not ended.is_set():
            for partition in range(PARTITIONS):
                producer.produce(
                    topic, f"alone-{number}".encode(), partition=partition, on_delivery=delivered
                )
                number += 1
            producer.poll(0.02)

    thread = Thread(target=send)
    thread.start()
    try:
        yield acknowledged
    finally:
        ended.set()
        thread.join()
        producer.purge()
        producer.flush(30)


def raised_for_a_new_leader(cluster: KafkaCluster, topic: str) -> dict[int, list[str]]:
    """2 hears at once that min ISR is 2 now and that it leads alone; what it acknowledged all the same, by
    partition.
    """
    cluster.bring_all_up()
    cluster.client.create_topic(topic, [[1, 2]] * PARTITIONS, {MIN_ISR: "1"})
    produce(cluster, topic, EARLY, "early")
    cluster.node(1).kill()
    with producing(cluster, topic) as acknowledged:
        cluster.node(2).pause()
        # The first change is all that its waiting request for metadata gets; what follows comes together.
        alter_topic(cluster, 4, topic, MIN_ISR, "1")
        alter_topic(cluster, 4, topic, MIN_ISR, "2")
        unregister(cluster, 4, 1)
        hear_slowly(cluster.node(2), lambda: bool(acknowledged))
    return acknowledged


def test_a_new_leader_acknowledges_by_the_old_min_isr_for_a_moment(
    cluster: KafkaCluster, operator: Operator
) -> None:
    """Later 2 dies, and 1 returns. On a busy machine the broker can be quicker than the producer: then again."""
    topics = (f"{RAISED}-{number}" for number in range(ATTEMPTS))
    rounds = ((name, raised_for_a_new_leader(cluster, name)) for name in topics)
    topic, acknowledged = next(((name, values) for name, values in rounds if values), ("", {}))
    if not acknowledged:
        pytest.skip(f"the broker was quicker than the producer in {ATTEMPTS} rounds: nothing was shown")
    kill(cluster, 2)
    start(cluster, 1)
    wait_offline(cluster, [topic])

    lost = max(acknowledged, key=lambda partition: len(acknowledged[partition]))
    advice = operator.advised(topic, "--partition", str(lost), *AGGRESSIVE)
    assert advice.acknowledged(1)["verdict"] == "open"
    operator.elect(topic)
    start(cluster, 2)
    cluster.metadata.wait_isr(topic, lost, (1, 2))
    assert left(cluster, topic, lost) == {"early": EARLY}, f"{len(acknowledged[lost])} were on broker 2"
