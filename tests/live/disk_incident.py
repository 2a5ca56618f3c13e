"""A stale long tail, and before it whatever else leaves a trace on disks and in the metadata log, once for all the
modules that read them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from confluent_kafka import Producer

from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from testbed.kafka.incidents import stale_long_tail
from testbed.kafka.log_files import read_log
from tests.live import incident_steps

# A snapshot after every few records, so that there is one to read.
SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "1000"}
CLUSTER = ClusterSpec(
    controllers=1,
    brokers=3,
    log_dirs=2,
    controller_config=SNAPSHOTS,
    broker_config={
        **SNAPSHOTS,
        "log.initial.task.delay.ms": "100",
        "log.flush.start.offset.checkpoint.interval.ms": "200",
        "replica.high.watermark.checkpoint.interval.ms": "200",
    },
)
"""Modules with this very object follow one another on one cluster."""
ORDERS, PACKED, SHORTER, GONE, MOVED = "orders", "packed", "shorter", "gone", "moved"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def played(cluster: KafkaCluster, home: Path) -> KafkaCluster:
    """``orders`` has the stale long tail; ``packed`` has every codec, and ``shorter`` lost its first records.

    Before it topics were configured, moved and deleted, and broker 3 was stopped cleanly. Files go to ``home``.
    """
    if not cluster.metadata.partitions(ORDERS):
        for topic, replicas in ((ORDERS, [1, 2, 3]), (PACKED, [2, 3]), (SHORTER, [2, 3])):
            cluster.client.create_topic(
                topic, [replicas], {"min.insync.replicas": "1", "segment.bytes": str(1 << 20)}
            )
        _fill(cluster)
        _administrate(cluster, home)
        cluster.node(3).stop()
        incident_steps.start(cluster, 3)
        cluster.metadata.wait_isr(ORDERS, 0, (1, 2, 3))
        stale_long_tail(cluster, ORDERS)
    return cluster


def _fill(cluster: KafkaCluster) -> None:
    for codec in CODECS:
        settings = {"compression.type": codec, "linger.ms": 20, "acks": "all", "batch.size": 16384}
        producer = Producer(cluster.superuser_config() | settings)
        for number in range(300):
            producer.produce(
                PACKED, f"{codec}-{number}".encode() + os.urandom(900).hex().encode(), partition=0
            )
        assert producer.flush(15) == 0
    incident_steps.produce(cluster, SHORTER, 100, "gone")
    incident_steps.delete_records(cluster, SHORTER, 40)
    wait_until(
        lambda: {read_log(cluster.node(broker), SHORTER, 0).start for broker in (2, 3)} == {40},
        "log starts on disk",
    )


def _administrate(cluster: KafkaCluster, home: Path) -> None:
    """With Kafka's own tools: a reassignment, a setting that comes and goes, a deletion."""
    for topic in (GONE, MOVED):
        cluster.client.create_topic(topic, [[1, 2, 3]], {"min.insync.replicas": "2"})
    moves = home / "moves.json"
    move = {"topic": MOVED, "partition": 0, "replicas": [3, 2]}
    moves.write_text(json.dumps({"version": 1, "partitions": [move]}))
    cluster.tools("kafka-reassign-partitions", "--reassignment-json-file", str(moves), "--execute")
    wait_until(lambda: cluster.metadata.partition(MOVED, 0).replicas == (3, 2), "the reassignment", 60)
    named = ("--entity-type", "topics", "--entity-name", MOVED)
    cluster.tools("kafka-configs", "--alter", *named, "--add-config", "unclean.leader.election.enable=true")
    cluster.tools("kafka-configs", "--alter", *named, "--delete-config", "unclean.leader.election.enable")
    cluster.tools("kafka-topics", "--delete", "--topic", GONE)
