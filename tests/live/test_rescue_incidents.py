"""What goes wrong while an election's losses are saved, on a real cluster: every record is counted.

Broker 1 has stale long tails, broker 2 the newest records; 2 is elected.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from testbed.kafka import KafkaCluster, wait_until
from tests.live import incident_steps, rescue_incident
from tests.live.command_runner import CommandRunner
from tests.live.rescue_incident import COUNTS, DYING, FULL, MANY, PARTITIONS
from tests.live.rescued_records import expected, values
from tests.unit.cli.command_process import command_line, environment

pytestmark = pytest.mark.long

CLUSTER = rescue_incident.CLUSTER
AGREED = ("--yes", "--reason", "a test")


@pytest.fixture(scope="module")
def incident(cluster: KafkaCluster) -> KafkaCluster:
    return rescue_incident.played(cluster)


@pytest.fixture
def console(incident: KafkaCluster, tmp_path: Path) -> CommandRunner:
    return CommandRunner(tmp_path, incident.bootstrap(), incident.metadata.wait_caught_up)


def metadata_logs(console: CommandRunner, cluster: KafkaCluster) -> str:
    """What disk scan says of the copies on the disks of the controller and of all brokers."""
    nodes = (*cluster.controllers.values(), *cluster.brokers.values())
    ended = console.without_cluster("disk", "scan", *(str(path) for node in nodes for path in node.log_dirs))
    assert ended.status == 0, ended
    return ended.out


def test_a_full_disk_elects_nobody_and_the_rescue_goes_on_when_there_is_room(
    console: CommandRunner, incident: KafkaCluster
) -> None:
    """The largest file that the process may write stands for the disk: it ends in the middle of a batch."""
    console.plan_aggressively(FULL)
    incident.metadata.wait_caught_up()
    words = ("apply", "plan.json", "--rescue", "saved", *AGREED, *console.connection)
    full = subprocess.run(
        ["/bin/bash", "-c", 'ulimit -f 100; exec "$@"', "bash", *command_line("ktriage", *words)],
        env=environment(console.home),
        cwd=console.home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert full.returncode == 1 and "File too large" in full.stderr, full
    assert "elect" not in console.sent()
    ended = console("apply", "plan.json", "--rescue", "saved", *AGREED)
    assert ended.status == 0, ended
    assert console.without_cluster("rescue", "verify", "saved").status == 0
    ended = console("restore", "saved", "--to-source", *AGREED)
    assert ended.status == 0, ended
    assert values(incident, FULL) == expected(COUNTS[FULL])


def test_two_hundred_partitions_are_rescued_elected_and_restored_at_once(
    console: CommandRunner, incident: KafkaCluster
) -> None:
    console.plan_aggressively(MANY)
    status, applied = console.json("apply", "plan.json", "--rescue", "saved", *AGREED)
    assert status == 0, applied
    assert len(applied["rescue"]["branches"]) == PARTITIONS
    ended = console("restore", "saved", "--to-source", *AGREED)
    assert ended.status == 0, ended
    assert values(incident, MANY, range(PARTITIONS)) == Counter(
        dict.fromkeys(expected(COUNTS[MANY]), PARTITIONS)
    )


def test_a_broker_that_dies_during_the_rescue_leaves_its_partition_unelected(
    console: CommandRunner, incident: KafkaCluster
) -> None:
    """The last one here. It goes on when the broker is back."""
    console.plan_aggressively(DYING)
    incident.metadata.wait_caught_up()
    words = ("apply", "plan.json", "--rescue", "saved", "--rate", "20kB", *AGREED, *console.connection)
    running = subprocess.Popen(
        command_line("ktriage", *words),
        env=environment(console.home),
        cwd=console.home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    saved = console.home / "saved"
    wait_until(lambda: any(path.stat().st_size for path in saved.glob("*/*/*.partial")), "a batch on disk")
    incident_steps.kill(incident, 1)
    compared = metadata_logs(console, incident)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 1 and f"{DYING}-0" in said, said
    assert "metadata log of 4 nodes, the longest first" in compared
    assert re.search(r"node 1: .* lacks [\d,]+ offsets of node", compared), compared
    assert "elect" not in console.sent()
    incident_steps.start(incident, 1)
    ended = console("apply", "plan.json", "--rescue", "saved", *AGREED)
    assert ended.status == 0, ended
    ended = console("restore", "saved", "--to-source", *AGREED)
    assert ended.status == 0, ended
    assert values(incident, DYING) == expected(COUNTS[DYING])
