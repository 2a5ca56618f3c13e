"""``python -m benchmarks.quorum [--rounds N]``: whole processes against Kafka's own, on one cluster, in turn.

``quorum status`` against ``kafka-metadata-quorum describe --status``, ``log-dirs`` with 3,000 partitions of 3
replicas against ``kafka-log-dirs --describe``; written to ``benchmarks/results/quorum.md``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.bench_cluster import PARTITIONS, TOPIC, WAIT_SECONDS, assignment, new_cluster
from benchmarks.command_lines import javas, ours
from benchmarks.machine_info import described
from benchmarks.measure import BenchmarkError, Command, Measured, Side, side_by_side
from benchmarks.report import RatioTarget, compared, ratio_of
from testbed.kafka import KafkaCluster

RESULTS = Path(__file__).parent.parent / "results" / "quorum.md"
ROUNDS = 7
STATUS = RatioTarget(0.7)
DIRS = RatioTarget(0.5)


def main() -> int:
    """1 if an aim is missed or a process did not do its work."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quorum", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    machine = tuple(described("4.3.1"))
    try:
        with tempfile.TemporaryDirectory() as directory, new_cluster(say) as cluster:
            status = side_by_side(status_commands(cluster), rounds, Path(directory), say)
            replicas = [assignment(number) for number in range(PARTITIONS)]
            cluster.client.create_topic(TOPIC, replicas, timeout=WAIT_SECONDS)
            dirs = side_by_side(dirs_commands(cluster), rounds, Path(directory), say)
    except BenchmarkError as error:
        say(str(error))
        return 1
    parts = (("quorum status", status, STATUS), ("log-dirs", dirs, DIRS))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(report(machine, rounds, parts)) + "\n", encoding="utf-8")
    say(f"written to {RESULTS}")
    return 0 if all(ratio_of(sides) <= target.ratio for _, sides, target in parts) else 1


def status_commands(cluster: KafkaCluster) -> tuple[Command, ...]:
    """The same question to the same quorum."""
    bootstrap = ("--bootstrap-server", cluster.bootstrap())

    def check_ours(measured: Measured) -> None:
        output = json.loads(measured.stdout)
        _sure(
            output["leader"] >= 0 and len(output["members"]) == 6, "quorum status does not show every replica"
        )

    def check_java(measured: Measured) -> None:
        _sure("LeaderEpoch" in measured.stdout, "kafka-metadata-quorum does not show the leader")

    java = javas("kafka-metadata-quorum", cluster.spec.version, *bootstrap, "describe", "--status")
    return (
        Command("ktriage", ours("ktriage", "quorum", "status", "--output", "json", *bootstrap), check_ours),
        Command("java", java, check_java),
    )


def dirs_commands(cluster: KafkaCluster) -> tuple[Command, ...]:
    """Every replica with its size, as JSON from both."""
    bootstrap = ("--bootstrap-server", cluster.bootstrap())
    replicas = 3 * PARTITIONS

    def check_ours(measured: Measured) -> None:
        output = json.loads(measured.stdout)
        found = sum(len(log_dir["replicas"]) for log_dir in output["dirs"])
        _sure(found >= replicas, f"log-dirs shows {found} replicas, not {replicas}")

    def check_java(measured: Measured) -> None:
        found = measured.stdout.count(f'"{TOPIC}-')
        _sure(found >= replicas, f"kafka-log-dirs shows {found} replicas, not {replicas}")

    return (
        Command("ktriage", ours("ktriage", "log-dirs", "--output", "json", *bootstrap), check_ours),
        Command("java", javas("kafka-log-dirs", cluster.spec.version, *bootstrap, "--describe"), check_java),
    )


def report(
    machine: tuple[str, ...], rounds: int, parts: tuple[tuple[str, tuple[Side, ...], RatioTarget], ...]
) -> Iterator[str]:
    """The Markdown file."""
    yield "# The quorum and the log dirs against Kafka's own tools"
    yield ""
    yield from machine
    yield f"- {datetime.now(UTC).date()}, {rounds} rounds each, in turn, after one warm-up"
    for what, sides, target in parts:
        yield from ("", f"## {what}", "")
        yield from compared(sides, target)


def _sure(condition: bool, message: str) -> None:
    if not condition:
        raise BenchmarkError(message)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
