"""The full picture of a cluster against a bare description by Kafka's own tool."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from benchmarks.bed import PARTITIONS
from benchmarks.commands import javas, ours
from benchmarks.measure import BenchmarkError, Command, Measured, Side, side_by_side
from testbed.kafka import KafkaCluster

TARGET = 0.8


def measure(
    cluster: KafkaCluster, rounds: int, directory: Path, say: Callable[[str], None]
) -> tuple[Side, ...]:
    """Ours first: ``ktriage status --output json``, then ``TopicCommand --describe``."""
    return side_by_side(commands(cluster), rounds, directory, say)


def commands(cluster: KafkaCluster) -> tuple[Command, Command]:
    server = ("--bootstrap-server", cluster.bootstrap())
    return (
        Command("ktriage status", ours("ktriage", "status", *server, "--output", "json"), _whole_picture),
        Command(
            "TopicCommand --describe",
            javas("kafka-topics", cluster.spec.version, *server, "--describe"),
            _every_partition,
        ),
    )


def _whole_picture(done: Measured) -> None:
    """Every partition with its ELR, every replica's last epoch and log end, log dirs and quorum."""
    told = json.loads(done.stdout)
    rows = told["partitions"]
    logs = [log for row in rows for log in row["logs"]]
    whole = (
        len(rows) == PARTITIONS
        and all(isinstance(row["elr"], list) and isinstance(row["lastKnownElr"], list) for row in rows)
        and len(logs) == 3 * PARTITIONS
        and all(log["lastEpoch"] >= 0 and log["logEndOffset"] > 0 and log["logDir"] for log in logs)
        and len(told["logDirs"]) == 3
        and len(told["quorum"]["voters"]) == 3
        and not told["notTold"]
    )
    if not whole:
        raise BenchmarkError(f"ktriage status did not tell everything: {told['counts']}, {told['notTold']}")


def _every_partition(done: Measured) -> None:
    described = done.stdout.count("\tPartition: ")
    if described != PARTITIONS:
        raise BenchmarkError(f"TopicCommand described {described} of {PARTITIONS} partitions")
