"""Recovers the scenario stale-long-tail on a served cluster: the leader and every disk afterwards."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import NamedTuple

from backends.simulator.scenario.files import read
from backends.simulator.served.api_versions import hidden
from backends.simulator.served.served_cluster import ServedClusterOptions
from recovery.model import EpochSpan, TopicPartition
from tests.unit.cli.command_process import command_line, environment
from tests.wire.cluster_thread import ClusterThread

RECOVER = (
    "--all-offline-partitions",
    "--automated-recovery",
    "--recovery-duration-ms",
    "2000",
    "--output",
    "json",
)


class RecoveryOutcome(NamedTuple):
    """The leader, and each broker's log once all are in sync again."""

    leader: int
    replicas: tuple[int, ...]
    logs: dict[int, tuple[EpochSpan, ...]]


def recover_stale_long_tail(without: str, home: Path) -> RecoveryOutcome:
    """Runs ``kafka-unclean-recovery`` against the served simulator; then the third broker comes back."""
    tp = TopicPartition("payments", 0)
    with ClusterThread(
        read("stale-long-tail"), ServedClusterOptions(speed=3.0, without=hidden(without))
    ) as served:
        argv = command_line("kafka-unclean-recovery", *RECOVER, "--bootstrap-server", served.bootstrap)
        done = subprocess.run(
            argv, env=environment(home), capture_output=True, text=True, timeout=60, check=True
        )
        (row,) = json.loads(done.stdout)["elections"]
        assert row["outcome"] == "elected"
        served.change(lambda world: world.start_broker(3))
        served.until(lambda world: len(world.image.partitions[tp].isr) == 3, "all replicas in sync")

        def logs() -> dict[int, tuple[EpochSpan, ...]]:
            return served.do(lambda c: {b: disk.logs[tp].spans for b, disk in c.world.disks.items()})

        served.until(
            lambda world: len({disk.logs[tp].spans for disk in world.disks.values()}) == 1, "equal logs"
        )
        partition = served.partition(*tp)
        return RecoveryOutcome(partition.leader, partition.replicas, logs())
