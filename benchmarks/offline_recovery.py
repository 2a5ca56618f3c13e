"""Recovery of thousands of offline partitions, start to verified, against Kafka's blind unclean election."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import bench_cluster
from benchmarks.command_lines import javas, ours
from benchmarks.measure import BenchmarkError, Command, Measured, Side, side_by_side
from testbed.kafka import KafkaCluster

TARGET = 1.5
AIM = 1.0
WORDS = ("--all-offline-partitions", "--automated-recovery", "--recovery-duration-ms", "500")
"""The brokers that are dead stay so: that the recovery would ask them again until its deadline is not measured."""


def measure(
    cluster: KafkaCluster, rounds: int, directory: Path, say: Callable[[str], None]
) -> tuple[Side, ...]:
    """``kafka-unclean-recovery``, ``LeaderElectionCommand`` and the bare requests; all is offline before each."""

    def prepare() -> None:
        say("  taking every partition offline")
        bench_cluster.take_offline(cluster)

    return side_by_side(commands(cluster, directory), rounds, directory, say, prepare)


def commands(cluster: KafkaCluster, directory: Path) -> tuple[Command, Command, Command]:
    server = ("--bootstrap-server", cluster.bootstrap())
    listed = directory / "partitions.json"
    rows = [{"topic": bench_cluster.TOPIC, "partition": number} for number in range(bench_cluster.PARTITIONS)]
    listed.write_text(json.dumps({"partitions": rows}))
    blind = ("--election-type", "unclean", "--path-to-json-file", str(listed))

    def longer_log_leads(_: Measured) -> None:
        """The survivor with the longer log leads everywhere, and every assignment has its original order."""
        _expect(cluster, {bench_cluster.SURVIVORS[1]: bench_cluster.PARTITIONS})

    def first_replica_leads(_: Measured) -> None:
        """The first live replica in assignment order leads: the one with the shorter log."""
        _expect(cluster, {bench_cluster.SURVIVORS[0]: bench_cluster.PARTITIONS})

    return (
        Command("kafka-unclean-recovery", ours("kafka-unclean-recovery", *server, *WORDS), longer_log_leads),
        Command(
            "LeaderElectionCommand unclean",
            javas("kafka-leader-election", cluster.spec.version, *server, *blind),
            first_replica_leads,
        ),
        Command(
            "reorder, elect, revert: the requests alone",
            (sys.executable, "-m", "benchmarks.bare_requests", cluster.bootstrap()),
            longer_log_leads,
        ),
    )


def _expect(cluster: KafkaCluster, expected: dict[int, int]) -> None:
    """Compares what every broker shows once it has applied what the controller confirmed to the command.

    The restored orders of the last part reach a broker some milliseconds after the controller's answer.
    """
    cluster.metadata.wait_caught_up()
    led = bench_cluster.leaders(cluster)
    if led != expected:
        raise BenchmarkError(f"partitions led by each broker: {led}, expected {expected}")
    moved = bench_cluster.reordered(cluster)
    if moved:
        raise BenchmarkError(f"{moved} assignments are not in their original order")
