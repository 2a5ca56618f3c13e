"""A broker that is down is taken out of the assignment, and keeps its log when it starts: what Kafka does then.

Each history: replicas 1, 2 and 3; 3 alone has the last records and is down; 1 was elected without them.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from testbed.kafka import KafkaCluster, wait_until
from tests.live import incident_steps, test_kafka_3_9, test_kafka_4_4
from tests.live.command_runner import CommandRunner
from tests.live.rescued_records import values
from tests.live.started_cluster import TWO_DISKS
from tests.unit.cli.command_process import environment

pytestmark = pytest.mark.long

AGREED = ("--yes", "--reason", "a test")
RELEASES = pytest.mark.parametrize(
    "cluster",
    [
        pytest.param(TWO_DISKS, id="4.3.1"),
        pytest.param(test_kafka_3_9.CLUSTER, id="3.9.1"),
        pytest.param(test_kafka_4_4.CLUSTER, id="4.4.0"),
    ],
    indirect=True,
)
COMMON, ALONE, LATER = 500, 300, 50


def offline(cluster: KafkaCluster, *topics: str, replicas: tuple[int, int, int] = (1, 2, 3)) -> Counter[str]:
    """Returns what all acknowledged; 3 holds ``ALONE`` records more, which it acknowledged alone, and is down."""
    cluster.bring_all_up()
    for topic in topics:
        cluster.client.create_topic(topic, [list(replicas)], {"min.insync.replicas": "1"})
        common = incident_steps.produce(cluster, topic, COMMON, "common")
    incident_steps.pause(cluster, 1, 2)
    incident_steps.wait_all(cluster, topics, lambda state: state.isr == (3,), "with 3 alone in the ISR")
    for topic in topics:
        incident_steps.produce(cluster, topic, ALONE, "alone")
    incident_steps.kill(cluster, 3)
    incident_steps.start(cluster, 1, 2)
    incident_steps.wait_offline(cluster, topics)
    return Counter(common)


def taken_out(cluster: KafkaCluster, topic: str) -> None:
    """1 is elected, and 3 taken out, as Kafka's own tools do it."""
    cluster.metadata.wait_caught_up()
    incident_steps.elect_unclean(cluster, [topic], 1)
    incident_steps.assign(cluster, 1, topic, 0, (1, 2))
    incident_steps.wait_all(cluster, [topic], lambda state: state.replicas == (1, 2), "without 3")


def strays(cluster: KafkaCluster, topic: str) -> list[Path]:
    return [path for home in cluster.node(3).log_dirs for path in home.glob(f"{topic}-0.*-stray")]


def stray_bytes(cluster: KafkaCluster, topic: str) -> int:
    return sum(log.stat().st_size for stray in strays(cluster, topic) for log in stray.glob("*.log"))


def disk(cluster: KafkaCluster) -> list[str]:
    return [word for path in cluster.node(3).log_dirs for word in ("--from-disk", str(path))]


def console_of(cluster: KafkaCluster, home: Path) -> CommandRunner:
    return CommandRunner(home, cluster.bootstrap(), cluster.metadata.wait_caught_up)


@RELEASES
def test_a_log_that_its_broker_has_set_aside_is_read_and_written_back(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = "aside"
    promised = offline(cluster, topic)
    taken_out(cluster, topic)
    later = incident_steps.produce(cluster, topic, LATER, "later")
    size = sum(
        log.stat().st_size for home in cluster.node(3).log_dirs for log in home.glob(f"{topic}-0/*.log")
    )
    incident_steps.start(cluster, 3)
    wait_until(lambda: bool(strays(cluster, topic)), "the stray")
    cluster.node(3).restart(clean=False)
    cluster.metadata.wait_live([3])
    assert stray_bytes(cluster, topic) == size, "it stays whole over starts, after a kill too"

    console = console_of(cluster, tmp_path)
    words = ("rescue", "read", "--to", "saved", "--topic", topic, *disk(cluster))
    status, told = console.json(*words)
    (branch,) = told["branches"]
    assert (status, branch["startOffset"], branch["endOffset"]) == (0, COMMON, COMMON + ALONE), told
    assert branch["logDir"] == str(strays(cluster, topic)[0])
    assert sum(one["strays"] for one in told["disks"]) == 1
    ended = console("restore", "saved", "--to-source", *AGREED)
    assert ended.status == 0, ended
    alone = Counter(f"alone-{number}" for number in range(ALONE))
    assert values(cluster, topic) == promised + Counter(later) + alone


@RELEASES
def test_an_election_keeps_the_log_of_a_broker_that_is_down(cluster: KafkaCluster, tmp_path: Path) -> None:
    """From the plan to the last step, with the commands that are printed."""
    topic = "kept"
    promised = offline(cluster, topic)
    console = console_of(cluster, tmp_path)
    console.plan_aggressively(topic)
    status, applied = console.json("apply", "plan.json", "--keep-log-of", "3", *AGREED)
    assert status == 0, applied["failures"]
    (kept,) = applied["keptLogs"]
    assert (kept["brokers"], kept["replicas"], kept["end"], kept["why"]) == ([3], [1, 2], "kept", "")
    assert cluster.metadata.partitions(topic)[0].replicas == (1, 2)
    checked = console("verify", "plan.json")
    assert checked.status == 1 and "ktriage heal assign-again" in checked.err, checked

    incident_steps.start(cluster, 3)
    wait_until(lambda: stray_bytes(cluster, topic) > 0, "the stray")
    refused = console("heal", "assign-again", *AGREED)
    assert (
        refused.status == 1
        and f"not assigned again: {topic}-0: the log that broker 3 kept was not read" in refused.err
    ), refused
    ended = console("rescue", "read", "--to", "saved", "--topic", topic, *disk(cluster))
    assert ended.status == 0 and "set aside as -stray" in ended.out, ended
    ended = console("heal", "assign-again", "--unread", *AGREED)
    assert ended.status == 0, ended
    incident_steps.wait_all(cluster, [topic], lambda state: set(state.isr) == {1, 2, 3}, "in sync on all")
    assert cluster.metadata.partitions(topic)[0].replicas == (1, 2, 3)
    ended = console("restore", "saved", "--to-source", *AGREED)
    assert ended.status == 0, ended
    alone = Counter(f"alone-{number}" for number in range(ALONE))
    assert values(cluster, topic) == promised + alone
    assert console("verify", "plan.json").status == 0


@pytest.mark.parametrize("cluster", [pytest.param(TWO_DISKS, id="4.3.1")], indirect=True)
def test_resume_takes_the_broker_out_after_a_kill(cluster: KafkaCluster, tmp_path: Path) -> None:
    """The run dies before it reverts the order, or before it takes 3 out; 3 may come back before resume."""
    killed_early, killed_late, back_first = topics = ("killed-early", "killed-late", "back-first")
    offline(cluster, *topics, replicas=(3, 1, 2))
    console = console_of(cluster, tmp_path)
    for topic, moment in ((killed_early, "revert"), (killed_late, "reassign")):
        console.plan_aggressively(topic)
        killed(console, moment, "apply", "plan.json", "--keep-log-of", "3", *AGREED)
        (tmp_path / "plan.json").unlink()
        told = console("status")
        assert "was to keep the logs of brokers that are down" in told.err, told
        ended = console("resume")
        assert ended.status == 0 and f"broker 3 is no replica of {topic}-0 any more" in ended.err, ended
        assert cluster.metadata.partitions(topic)[0].replicas == (1, 2)
    console.plan_aggressively(back_first)
    killed(console, "reassign", "apply", "plan.json", "--keep-log-of", "3", *AGREED)
    incident_steps.start(cluster, 3)
    wait_until(lambda: stray_bytes(cluster, killed_early) > 0, "the first stray")
    assert stray_bytes(cluster, killed_late) > 0
    ended = console("resume")
    assert ended.status == 1, ended
    assert "log of broker 3: cut off: broker 3 is back, and was still a replica" in ended.err, ended
    assert cluster.metadata.partitions(back_first)[0].replicas == (3, 1, 2)
    assert not strays(cluster, back_first)
    assert "nothing is unfinished" in console("resume").out


def killed(console: CommandRunner, moment: str, *words: str) -> None:
    """Runs ``ktriage WORDS…``, which dies right before it sends ``moment``."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.live.killed_command", moment, *words, *console.connection],
        env=environment(console.home),
        cwd=console.home,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == -signal.SIGKILL, ended


@pytest.mark.parametrize("cluster", [pytest.param(test_kafka_3_9.CLUSTER, id="3.9.1")], indirect=True)
def test_a_replica_that_is_assigned_again_endangers_its_stray(cluster: KafkaCluster) -> None:
    """Kafka loads a stray with the log start that its log dir has for the new log of the partition: where that is
    above the stray's end, it deletes every segment. Tried on 4.3.1 and 4.4.0 too; here the broker has one log dir.
    """
    topic = "again"
    offline(cluster, topic)
    taken_out(cluster, topic)
    incident_steps.start(cluster, 3)
    wait_until(lambda: stray_bytes(cluster, topic) > 0, "the stray")
    incident_steps.produce(cluster, topic, 600, "later")
    incident_steps.assign(cluster, 1, topic, 0, (1, 2, 3))
    incident_steps.wait_all(cluster, [topic], lambda state: set(state.isr) == {1, 2, 3}, "in sync")
    incident_steps.delete_records(cluster, topic, COMMON + ALONE)
    cluster.node(3).restart()
    cluster.metadata.wait_live([3])
    assert stray_bytes(cluster, topic) > 0, "its end is not below that log start"
    incident_steps.delete_records(cluster, topic, COMMON + ALONE + 1)
    cluster.node(3).restart()
    cluster.metadata.wait_live([3])
    assert strays(cluster, topic) and stray_bytes(cluster, topic) == 0
