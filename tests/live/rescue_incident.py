"""The incident of every module that saves what an election cuts off, played once for all of them.

Every topic has a stale long tail on broker 1; broker 2 has the newest records and is elected; broker 3 stays dead.
"""

from __future__ import annotations

from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live import incident_steps
from tests.live.incident_steps import Counts
from tests.live.started_cluster import emptied

CLUSTER = ClusterSpec(log_dirs=2)
"""Modules with this very object follow one another on one cluster."""

TAIL, SMALL, LARGE, FULL, DYING, MANY = "tail", "small", "large", "full", "dying", "many"
EARLY, LATE, COPIED = "early", "late", "copied"
CODECS = ("gzip", "snappy", "lz4", "zstd")
PARTITIONS = 200
"""Of MANY; every other topic has one."""
ONE_REPLICA_IS_ENOUGH = (FULL, DYING, MANY)
SOME, LONG_TAIL, FEW = Counts(1000, 500, 300), Counts(200, 30_000, 30), Counts(4, 3, 2)
COUNTS = {
    **dict.fromkeys((TAIL, EARLY, LATE, COPIED), SOME),
    **dict.fromkeys((LARGE, FULL, DYING), LONG_TAIL),
    **dict.fromkeys(CODECS, Counts(100, 50, 30)),
    SMALL: Counts(10, 50, 5),
    MANY: FEW,
}
"""The records of each partition, by topic."""


def played(cluster: KafkaCluster) -> KafkaCluster:
    """The cluster after the incident, with brokers 1 and 2 running, whatever a module before left."""
    if not cluster.metadata.partitions(TAIL):
        emptied(cluster)
        for topic in COUNTS:
            partitions = PARTITIONS if topic == MANY else 1
            min_isr = {"min.insync.replicas": "1" if topic in ONE_REPLICA_IS_ENOUGH else "2"}
            codec = {"compression.type": topic} if topic in CODECS else {}
            cluster.client.create_topic(topic, [[1, 2, 3]] * partitions, min_isr | codec)
        incident_steps.stale_long_tails(cluster, COUNTS)
    incident_steps.start(cluster, 1, 2)
    return cluster
