"""A rescue and its restore on real Kafka, killed at random moments and run again: every record is there once."""

from __future__ import annotations

import random
import signal
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.soak import SoakOptions
from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live.command_runner import CommandRunner
from tests.live.incident_steps import Counts, stale_long_tails
from tests.live.rescued_records import expected, values
from tests.unit.cli.command_process import started

ROUNDS = 20
"""Moments at which each of the two is killed."""
TOPICS = ("one", "two")
PARTITIONS = 30
COUNTS = Counts(10, 2000, 5)
RATE = "20kB"
"""So slow that all the kills together come before the end."""
LONGEST = 6.0
"""Seconds after the start within which a run is killed."""
AGREED = ("--yes", "--reason", "soak")


def run(options: SoakOptions) -> int:
    """0 if every record was read back exactly once."""
    seeds = options.seeds(ROUNDS)
    with tempfile.TemporaryDirectory() as home, KafkaCluster(ClusterSpec(controllers=1)) as cluster:
        for topic in TOPICS:
            cluster.client.create_topic(topic, [[1, 2, 3]] * PARTITIONS, {"min.insync.replicas": "1"})
        stale_long_tails(cluster, dict.fromkeys(TOPICS, COUNTS))
        console = CommandRunner(Path(home), cluster.bootstrap(), cluster.metadata.wait_caught_up)
        _done(console, "plan", "--strategy", "aggressive", "plan.json")
        rescue = ("rescue", "read", "plan.json", "--to", "saved")
        restore = ("restore", "saved", "--to-source", *AGREED)
        killed = [_killed(console, rescue, seed) for seed in seeds]
        _done(console, *rescue)
        _done(console, "apply", "plan.json", "--rescue", "saved", *AGREED)
        killed += [_killed(console, restore, seed) for seed in seeds]
        _done(console, *restore)
        wanted = Counter(dict.fromkeys(expected(COUNTS), PARTITIONS))
        wrong = [topic for topic in TOPICS if values(cluster, topic, range(PARTITIONS)) != wanted]
    print(
        f"rescue kills: {sum(killed)} of {len(killed)} runs killed before they ended, {len(wrong)} topics wrong"
    )
    return 1 if wrong else 0


def _killed(console: CommandRunner, words: tuple[str, ...], seed: int) -> bool:
    """Runs the command and kills it; False if it ended before."""
    wait = random.Random(seed).uniform(0.5, LONGEST)  # noqa: S311  # a test
    process = started(console.home, *words, "--rate", RATE, *console.connection)
    try:
        process.wait(wait)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True
    return False


def _done(console: CommandRunner, name: str, *words: str) -> None:
    ended = console(name, *words)
    if ended.status != 0:
        raise AssertionError(f"{name}: {ended}")
