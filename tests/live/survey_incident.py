"""An incident whose logs all differ: four leaders in turn, each alone, and logs that epochs do not tell apart."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Producer

from testbed.kafka import KafkaCluster, wait_until
from testbed.kafka.log_files import read_log, replica_directory
from tests.live import incident_steps

DEEP, THREE, STARTS, FORGOT, IDLE, EMPTIED, EMPTY = TOPICS = (
    "deep",
    "three",
    "starts",
    "forgot",
    "idle",
    "emptied",
    "empty",
)
COMPACTED, RETURNED, DELETED = CLAIMED = ("compacted", "returned", "deleted")
"""Logs that their epochs and ends do not tell apart, or whose broker remembers too little of its epochs."""
MANY = "many"
KEYS = 40
COMPACT = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}


def make_incident(cluster: KafkaCluster, partitions: int) -> None:
    """1, 2, 3 and 4 led alone in turn (epochs 0, 2, 4, 6), each after all before it had died; 4 stays dead.

    MANY has that number of partitions, and no record.
    """
    leave_holes_on_1(cluster)
    for topic in (*TOPICS, RETURNED, DELETED):
        cluster.client.create_topic(topic, [[1, 2, 3, 4] if topic not in (DEEP, RETURNED) else [2, 1, 3, 4]])
    for topic, first, second in ((DEEP, 5, 5), (RETURNED, 35, 153)):
        incident_steps.produce(cluster, topic, first, "epoch-0")
        incident_steps.assign(cluster, 1, topic, 0, (1, 2, 3, 4))
        incident_steps.elect_preferred(cluster, topic, 1)
        incident_steps.produce(cluster, topic, second, "epoch-1")
    incident_steps.produce(cluster, DELETED, 171, "deleted")
    for topic in (THREE, STARTS, FORGOT, IDLE, EMPTIED):
        incident_steps.produce(cluster, topic, 1000, "common")
    incident_steps.kill(cluster, 2, 3, 4)
    incident_steps.wait_all(cluster, TOPICS, lambda state: state.isr == (1,), "with 1 alone in the ISR")
    for topic in (THREE, STARTS, FORGOT):
        incident_steps.produce(cluster, topic, 500, "turn-1", acks="1")
    incident_steps.produce(cluster, DEEP, 10, "turn-1", acks="1")
    take_over(cluster, 1, 2)
    for topic, count in ((THREE, 300), (STARTS, 300), (FORGOT, 300), (EMPTIED, 100), (DEEP, 3)):
        incident_steps.produce(cluster, topic, count, "turn-2", acks="1")
    for topic, before in ((STARTS, 1200), (EMPTIED, 1100), (RETURNED, 143)):
        incident_steps.delete_records(cluster, topic, before)
        wait_for_log_start(cluster, 2, topic, before)
    take_over(cluster, 2, 3)
    for topic, count in ((THREE, 100), (STARTS, 100), (FORGOT, 200), (DEEP, 1)):
        incident_steps.produce(cluster, topic, count, "turn-3", acks="1")
    for topic, before, first_epoch in (
        (FORGOT, 1100, "4 1100"),
        (RETURNED, 143, "1 143"),
        (DELETED, 171, " 171"),
    ):
        incident_steps.delete_records(cluster, topic, before)
        wait_for_first_epoch(cluster, 3, topic, first_epoch)
    take_over(cluster, 3, 4)
    cluster.client.create_topic(MANY, [[4, 1, 2]] * partitions)
    cluster.node(4).kill()
    incident_steps.start(cluster, 1)
    # A broker that still takes 4 for a leader truncates a log without epochs to its high watermark.
    cluster.metadata.wait_fenced(4)
    incident_steps.start(cluster, 2, 3)
    incident_steps.wait_offline(cluster, (*TOPICS, *CLAIMED, MANY))


def leave_holes_on_1(cluster: KafkaCluster) -> None:
    """1 compacts the first records in favour of newer values, which an unclean election of 2 then cuts off."""
    cluster.client.create_topic(COMPACTED, [[1, 2, 3, 4]], COMPACT)
    newer = 10_000
    keys = [f"k{number}" for number in range(KEYS)]
    produce_keyed(cluster, keys, "first", 0)
    produce_keyed(cluster, ["x", "y"], "first", newer)
    incident_steps.pause(cluster, 2, 3, 4)
    incident_steps.wait_all(cluster, [COMPACTED], lambda state: state.isr == (1,), "with 1 alone in the ISR")
    produce_keyed(cluster, keys, "tail", 2 * newer)
    produce_keyed(cluster, ["z"], "tail", 3 * newer)
    wait_until(
        lambda: read_log(cluster.node(1), COMPACTED, 0).spans[0].start == KEYS, "the log of 1 to be compacted"
    )
    cluster.node(1).kill()
    incident_steps.start(cluster, 2, 3, 4)
    incident_steps.elect_unclean(cluster, [COMPACTED], 2)
    incident_steps.start(cluster, 1)
    incident_steps.wait_all(cluster, [COMPACTED], lambda state: len(state.isr) == 4, "in sync on all")


def produce_keyed(cluster: KafkaCluster, keys: Sequence[str], value: str, later_ms: int) -> None:
    """One batch; its timestamps are ``later_ms`` after a fixed time, so that it begins a segment."""
    producer = Producer(cluster.superuser_config() | {"acks": "all", "linger.ms": 100, "retries": 0})
    errors: list[object] = []
    for key in keys:
        producer.produce(
            COMPACTED,
            f"{value}-{key}".encode(),
            key.encode(),
            partition=0,
            timestamp=1_700_000_000_000 + later_ms,
            on_delivery=lambda error, _message: errors.append(error) if error else None,
        )
    assert producer.flush(30.0) == 0 and not errors, errors


def wait_for_first_epoch(cluster: KafkaCluster, broker: int, topic: str, entry: str) -> None:
    """Until the epochs below that entry are forgotten on disk; the log start is not there yet on 3."""
    epochs = replica_directory(cluster.node(broker), topic, 0) / "leader-epoch-checkpoint"
    wait_until(
        lambda: epochs.read_text().splitlines()[2].endswith(entry),
        f"{topic} on {broker} to begin with {entry}",
    )


def wait_for_log_start(cluster: KafkaCluster, broker: int, topic: str, start: int) -> None:
    """Until the broker has checkpointed it."""
    wait_until(lambda: read_log(cluster.node(broker), topic, 0).start == start, "the log start on disk")


def take_over(cluster: KafkaCluster, former: int, leader: int) -> None:
    cluster.node(former).kill()
    incident_steps.start(cluster, leader)
    incident_steps.elect_unclean(cluster, (*TOPICS, *CLAIMED), leader)
