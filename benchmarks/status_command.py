"""``ktriage status`` on a whole cluster against ``kafka-topics --describe``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from benchmarks.bench_cluster import PARTITIONS
from benchmarks.command_lines import javas, ours
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
        Command("ktriage status", ours("ktriage", "status", *server, "--output", "json"), _complete_status),
        Command(
            "TopicCommand --describe",
            javas("kafka-topics", cluster.spec.version, *server, "--describe"),
            _every_partition,
        ),
    )


def _complete_status(done: Measured) -> None:
    """Checks for every partition's ELR, every replica's last epoch and log end, log dirs and the quorum."""
    status = json.loads(done.stdout)
    rows = status["partitions"]
    logs = [log for row in rows for log in row["logs"]]
    whole = (
        len(rows) == PARTITIONS
        and all(isinstance(row["elr"], list) and isinstance(row["lastKnownElr"], list) for row in rows)
        and len(logs) == 3 * PARTITIONS
        and all(log["lastEpoch"] >= 0 and log["logEndOffset"] > 0 and log["logDir"] for log in logs)
        and len(status["logDirs"]) == 3
        and len(status["quorum"]["voters"]) == 3
        and not status["unknown"]
    )
    if not whole:
        raise BenchmarkError(f"ktriage status is incomplete: {status['counts']}, {status['unknown']}")


def _every_partition(done: Measured) -> None:
    described = done.stdout.count("\tPartition: ")
    if described != PARTITIONS:
        raise BenchmarkError(f"TopicCommand described {described} of {PARTITIONS} partitions")
