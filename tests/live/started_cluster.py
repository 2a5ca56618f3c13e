"""Starts the cluster of a module so that a fault of the machine does not fail all of its tests, and empties it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from testbed.kafka import ClusterSpec, KafkaCluster, TestbedError, wait_until
from testbed.kafka.config import JVM_FLAGS
from testbed.kafka.java_tools import JavaRunner

TWO_DISKS = ClusterSpec(log_dirs=2, jvm=("-Xmx768m", *JVM_FLAGS[1:]))
"""Of the modules that need no other: those with this very object follow one another on one cluster. One that moves
the disks of a broker moves them back.
"""


@contextmanager
def started_cluster(
    spec: ClusterSpec,
    say: Callable[[str], None],
    run_tools: Callable[[JavaRunner], JavaRunner] = lambda runner: runner,
) -> Iterator[KafkaCluster]:
    """A running cluster, removed after the block. One that does not come up is replaced once, by a new one on other
    ports, and ``say`` is told why, with the ends of all nodes' logs. Raises TestbedError if neither comes up.
    """
    with ExitStack() as running:
        try:
            cluster = running.enter_context(KafkaCluster(spec, run_tools=run_tools))
        except TestbedError as error:
            say(f"THIS CLUSTER DID NOT COME UP, AND A NEW ONE IS STARTED IN ITS PLACE: {error}")
            cluster = running.enter_context(KafkaCluster(spec, run_tools=run_tools))
        yield cluster


def emptied(cluster: KafkaCluster) -> KafkaCluster:
    """Every node runs, and the topics of the modules before are gone; only Kafka's own are left."""
    cluster.bring_all_up()
    topics = [name for name in cluster.admin.list_topics(timeout=15).topics if not name.startswith("__")]
    for deleted in cluster.admin.delete_topics(topics).values() if topics else ():
        deleted.result(15)
    wait_until(lambda: not any(cluster.metadata.partitions_of(topics).values()), "the topics to be gone")
    cluster.metadata.wait_caught_up()
    return cluster
