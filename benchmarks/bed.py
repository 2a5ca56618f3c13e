"""The cluster that is measured: thousands of partitions with records of several epochs, taken offline at will."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiokafka import AIOKafkaProducer

from testbed.kafka import ClusterSpec, KafkaCluster

TOPIC = "bench"
PARTITIONS = 3_000
SURVIVORS = (1, 2)
LAST = 3
"""The broker that dies with the only replica in sync."""

# The survivor that fell behind stands before the other everywhere: every election of the right one needs the
# assignment reordered and restored.
ASSIGNMENTS = ((1, 2, 3), (3, 1, 2), (1, 3, 2))
# With one in-sync replica enough, neither survivor is in the ELR, and none is elected by itself.
TOPIC_CONFIG = {"min.insync.replicas": "1"}
# A broker that comes back with thousands of logs needs more heap than one of a small test.
JVM_FLAGS = ("-Xmx1500m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
WAIT_SECONDS = 300.0


def new_cluster(say: Callable[[str], None]) -> KafkaCluster:
    """Three controllers and three brokers on loopback, not yet started."""
    spec = ClusterSpec(jvm=JVM_FLAGS, controller_config={"auto.leader.rebalance.enable": "false"})
    return KafkaCluster(spec, say=say)


def fill(cluster: KafkaCluster) -> None:
    """Make the topic, and write under several leader epochs, to each partition a number of records of its own."""
    replicas = [assignment(number) for number in range(PARTITIONS)]
    cluster.traffic.create_topic(TOPIC, replicas, TOPIC_CONFIG, timeout=WAIT_SECONDS)
    _write(cluster, lambda number: 5 + number % 13)
    for broker in (1, 3):
        cluster.node(broker).pause()
        cluster.observe.wait_fenced(broker)
        _write(cluster, lambda number: 2 + number % 3)
        cluster.node(broker).resume()
        _wait_whole(cluster)


def take_offline(cluster: KafkaCluster) -> None:
    """Every partition without a leader, both survivors alive and out of the ISR, the second with the longer log.

    1 hangs while 2 and 3 take records; 2 hangs while 3 alone takes records; 3 is stopped, then 1 and 2 go on. One
    restart a round, and the same state each time. Whatever the round before left is mended first.
    """
    cluster.mend()
    _wait_whole(cluster)
    for survivor in SURVIVORS:
        cluster.node(survivor).pause()
        cluster.observe.wait_fenced(survivor)
        _write(cluster, lambda _: 1)
    cluster.node(LAST).kill()
    # The one that had led goes on first, and alone until it has heard that it leads no more: the other would get
    # from it what it is to lack. That it shows itself unfenced tells nothing: it shows what was before it hung.
    for survivor in reversed(SURVIVORS):
        cluster.node(survivor).resume()
        cluster.observe.wait_topic(
            TOPIC, PARTITIONS, WAIT_SECONDS, each=lambda state: state.leader == -1, what="offline"
        )
    cluster.observe.wait_live(SURVIVORS, WAIT_SECONDS)
    cluster.observe.wait_fenced(LAST)


def assignment(partition: int) -> tuple[int, ...]:
    """The replicas of that partition in the order that the topic is made with."""
    return ASSIGNMENTS[partition % len(ASSIGNMENTS)]


def reordered(cluster: KafkaCluster) -> int:
    """How many partitions have another assignment order than they were made with."""
    states = cluster.observe.partitions(TOPIC)
    return sum(state.replicas != assignment(number) for number, state in states.items())


def leaders(cluster: KafkaCluster) -> dict[int, int]:
    """How many partitions each broker leads; -1 counts those without a leader."""
    counts: dict[int, int] = {}
    for state in cluster.observe.partitions(TOPIC).values():
        counts[state.leader] = counts.get(state.leader, 0) + 1
    return counts


def _wait_whole(cluster: KafkaCluster) -> None:
    """Until every partition is led and has all three replicas in sync."""
    cluster.observe.wait_live(cluster.spec.broker_ids, WAIT_SECONDS)
    cluster.observe.wait_topic(
        TOPIC, PARTITIONS, WAIT_SECONDS, each=lambda s: s.leader != -1 and len(s.isr) == 3, what="in sync"
    )


def _write(cluster: KafkaCluster, records: Callable[[int], int]) -> None:
    """``records(number)`` of them to every partition, acknowledged by all that are in sync.

    Each partition ends at an offset of its own, as in life: equal logs would be worked out once for all.
    """
    asyncio.run(asyncio.wait_for(_send(cluster.bootstrap(), records), WAIT_SECONDS))


async def _send(bootstrap: str, records: Callable[[int], int]) -> None:
    # librdkafka sends a request for each partition, and a broker takes one at a time: minutes, where this needs
    # seconds.
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=100) as producer:
        sent = [
            await producer.send(TOPIC, b"x" * 100, partition=number)
            for number in range(PARTITIONS)
            for _ in range(records(number))
        ]
        await asyncio.gather(*sent)
