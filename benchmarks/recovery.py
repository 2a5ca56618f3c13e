"""Thousands of offline partitions: elected, verified and restored, against Kafka's own blind unclean election."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from benchmarks import bed
from benchmarks.commands import javas, ours
from benchmarks.measure import BenchmarkError, Command, Measured, Side, side_by_side
from testbed.kafka import KafkaCluster

TARGET = 1.5
AIM = 1.0
WORDS = ("--all-offline-partitions", "--automated-recovery")


def measure(
    cluster: KafkaCluster, rounds: int, directory: Path, say: Callable[[str], None]
) -> tuple[Side, ...]:
    """Ours first: ``kafka-unclean-recovery``, then ``LeaderElectionCommand``; taken offline before each run."""

    def prepare() -> None:
        say("  taking every partition offline")
        bed.take_offline(cluster)

    return side_by_side(commands(cluster, directory), rounds, directory, say, prepare)


def commands(cluster: KafkaCluster, directory: Path) -> tuple[Command, Command]:
    server = ("--bootstrap-server", cluster.bootstrap())
    listed = directory / "partitions.json"
    rows = [{"topic": bed.TOPIC, "partition": number} for number in range(bed.PARTITIONS)]
    listed.write_text(json.dumps({"partitions": rows}))
    blind = ("--election-type", "unclean", "--path-to-json-file", str(listed))

    def best_leads(_: Measured) -> None:
        """Everywhere the survivor with the longer log, and every assignment as it was."""
        _expect(cluster, {bed.SURVIVORS[1]: bed.PARTITIONS})

    def somebody_leads(_: Measured) -> None:
        """The first live replica in assignment order, which is the one with the shorter log."""
        _expect(cluster, {bed.SURVIVORS[0]: bed.PARTITIONS})

    return (
        Command("kafka-unclean-recovery", ours("kafka-unclean-recovery", *server, *WORDS), best_leads),
        Command(
            "LeaderElectionCommand unclean",
            javas("kafka-leader-election", cluster.spec.version, *server, *blind),
            somebody_leads,
        ),
    )


def _expect(cluster: KafkaCluster, wanted: dict[int, int]) -> None:
    led = bed.leaders(cluster)
    if led != wanted:
        raise BenchmarkError(f"partitions led by each broker: {led}, expected {wanted}")
    moved = bed.reordered(cluster)
    if moved:
        raise BenchmarkError(f"{moved} assignments are not in the order that they were made in")
