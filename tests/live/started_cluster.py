"""Starts the cluster of a module so that a fault of the machine does not fail all of its tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from testbed.kafka import ClusterSpec, KafkaCluster, TestbedError
from testbed.kafka.java_tools import JavaRunner


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
