"""The measured cluster: thousands of partitions with records of several epochs, which can be taken offline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiokafka import AIOKafkaProducer

from testbed.kafka import ClusterSpec, KafkaCluster

TOPIC = "bench"
PARTITIONS = 3_000
SURVIVORS = (1, 2)
LAST = 3
"""The broker that dies; it holds the only in-sync replica."""

# In every assignment the survivor with the shorter log is listed first, so electing the better one always needs
# the assignment reordered and restored.
ASSIGNMENTS = ((1, 2, 3), (3, 1, 2), (1, 3, 2))
# With min.insync.replicas=1 neither survivor is in the ELR, so Kafka elects none by itself.
TOPIC_CONFIG = {"min.insync.replicas": "1"}
# A broker that loads thousands of logs needs more heap than one in a small test.
JVM_FLAGS = ("-Xmx1500m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
WAIT_SECONDS = 300.0


def new_cluster(say: Callable[[str], None], *, cuttable_links: bool = False) -> KafkaCluster:
    """Three controllers and three brokers on loopback, not yet started."""
    spec = ClusterSpec(
        controllers=3,
        jvm=JVM_FLAGS,
        controller_config={"auto.leader.rebalance.enable": "false"},
        cuttable_links=cuttable_links,
    )
    return KafkaCluster(spec, say=say)


def fill(cluster: KafkaCluster, partitions: int = PARTITIONS) -> None:
    """Create the topic and write records under several leader epochs; the record count differs by partition."""
    replicas = [assignment(number) for number in range(partitions)]
    cluster.client.create_topic(TOPIC, replicas, TOPIC_CONFIG, timeout=WAIT_SECONDS)
    _write(cluster, partitions, lambda number: 5 + number % 13)
    for broker in (1, 3):
        cluster.node(broker).pause()
        cluster.metadata.wait_fenced(broker)
        _write(cluster, partitions, lambda number: 2 + number % 3)
        cluster.node(broker).resume()
        _wait_whole(cluster, partitions)


def take_offline(cluster: KafkaCluster, partitions: int = PARTITIONS) -> None:
    """Leaves no partition a leader; both survivors are alive and out of the ISR, the second with the longer log.

    Broker 1 hangs while 2 and 3 take records; 2 hangs while only 3 takes records; 3 is killed, then 1 and 2 resume.
    The state is the same after every round. Brokers that an earlier round stopped are started first.
    """
    cluster.bring_all_up()
    _wait_whole(cluster, partitions)
    for survivor in SURVIVORS:
        cluster.node(survivor).pause()
        cluster.metadata.wait_fenced(survivor)
        _write(cluster, partitions, lambda _: 1)
    cluster.node(LAST).kill()
    # Resume the former leader first, and alone until it knows that it leads no longer: otherwise the other survivor
    # would copy from it the records that it must lack. Its own "unfenced" is from before the pause.
    for survivor in reversed(SURVIVORS):
        cluster.node(survivor).resume()
        cluster.metadata.wait_topic(
            TOPIC, partitions, WAIT_SECONDS, each=lambda state: state.leader == -1, what="offline"
        )
    cluster.metadata.wait_live(SURVIVORS, WAIT_SECONDS)
    cluster.metadata.wait_fenced(LAST)


def assignment(partition: int) -> tuple[int, ...]:
    """The partition's replicas in the order in which the topic is created."""
    return ASSIGNMENTS[partition % len(ASSIGNMENTS)]


def reordered(cluster: KafkaCluster) -> int:
    """How many partitions have another replica order than at creation."""
    states = cluster.metadata.partitions(TOPIC)
    return sum(state.replicas != assignment(number) for number, state in states.items())


def leaders(cluster: KafkaCluster) -> dict[int, int]:
    """How many partitions each broker leads; -1 counts those without a leader."""
    counts: dict[int, int] = {}
    for state in cluster.metadata.partitions(TOPIC).values():
        counts[state.leader] = counts.get(state.leader, 0) + 1
    return counts


def _wait_whole(cluster: KafkaCluster, partitions: int) -> None:
    """Until every partition has a leader and three in-sync replicas."""
    cluster.metadata.wait_live(cluster.spec.broker_ids, WAIT_SECONDS)
    cluster.metadata.wait_topic(
        TOPIC, partitions, WAIT_SECONDS, each=lambda s: s.leader != -1 and len(s.isr) == 3, what="in sync"
    )


def _write(cluster: KafkaCluster, partitions: int, records: Callable[[int], int]) -> None:
    """``records(partition)`` records to every partition, with acks=all.

    Partitions end at different offsets, as on a real cluster: equal logs could be computed once and reused.
    """
    asyncio.run(asyncio.wait_for(_send(cluster.bootstrap(), partitions, records), WAIT_SECONDS))


async def _send(bootstrap: str, partitions: int, records: Callable[[int], int]) -> None:
    # librdkafka sends one request per partition and a broker handles one at a time: minutes instead of seconds.
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=100) as producer:
        sent = [
            await producer.send(TOPIC, b"x" * 100, partition=number)
            for number in range(partitions)
            for _ in range(records(number))
        ]
        await asyncio.gather(*sent)
