"""The tool is killed or stopped half-way, and the next run finishes what it left.

On every topic but the large one, which is empty, broker 3 has the newest records of those alive, 2 fell
behind it, and 1, the last of the ISR, is dead: an unclean election takes 2, the first live replica; a plan
designates 3, by a reordered assignment.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from console.jobs.elect.election_batches import PARTS_AT_ONCE
from recovery.plan.election_requests import PART
from testbed.kafka import KafkaCluster
from tests.live import incident_steps, started_cluster
from tests.live.command_runner import CommandRunner
from tests.repetitions import soaking
from tests.unit.cli.command_process import command_line, environment

pytestmark = pytest.mark.long

CLUSTER = started_cluster.TWO_DISKS
SMALL = (
    "released",
    "kill-elect",
    "kill-revert",
    "dead",
)
ROWS_TOGETHER = PART if soaking() else 40
"""A topic of five full parts has 2,500 partitions, and most of this module's time is theirs."""
MANY, MANY_PARTITIONS = "many", (PARTS_AT_ONCE + 2) * ROWS_TOGETHER
OWN, WRITTEN = (1, 2, 3), (3, 2, 1)


@pytest.fixture(scope="module")
def disaster(cluster: KafkaCluster) -> KafkaCluster:
    started_cluster.emptied(cluster)
    for topic in SMALL:
        cluster.client.create_topic(topic, [list(OWN)], {"min.insync.replicas": "2"})
    cluster.client.create_topic(MANY, [list(OWN)] * MANY_PARTITIONS, {"min.insync.replicas": "2"})
    for topic in SMALL:
        incident_steps.produce(cluster, topic, 1, "common")
    incident_steps.pause(cluster, 2)
    incident_steps.wait_all(
        cluster, SMALL, lambda state: 2 not in state.isr and state.leader != -1, "without 2"
    )
    for topic in SMALL:
        incident_steps.produce(cluster, topic, 1, "kept")
    incident_steps.kill(cluster, 3)
    incident_steps.kill(cluster, 1)
    incident_steps.start(cluster, 2, 3)
    incident_steps.wait_all(cluster, (*SMALL, MANY), lambda state: state.leader == -1, "offline")
    return cluster


@pytest.fixture
def console(disaster: KafkaCluster, tmp_path: Path) -> Iterator[CommandRunner]:
    yield CommandRunner(tmp_path, disaster.bootstrap(), disaster.metadata.wait_caught_up)


def plan(console: CommandRunner, topic: str) -> str:
    """Writes the plan of the topic and returns its file's name."""
    ended = console("plan", "--topic", topic, "--strategy", "aggressive", f"{topic}.json")
    assert ended.status == 0, str(ended)
    return f"{topic}.json"


def killed(console: CommandRunner, moment: str, *words: str) -> None:
    """Runs ``ktriage WORDS…`` which dies right before it sends ``moment``."""
    ended = python(console, "tests.live.killed_command", moment, *words)
    assert ended.returncode == -signal.SIGKILL, str(ended)


def python(console: CommandRunner, module: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *words, *console.connection],
        env=environment(console.home),
        cwd=console.home,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def apply_words(file: str) -> tuple[str, ...]:
    return ("apply", file, "--yes", "--reason", "incident 7")


def journal_written_earlier(console: CommandRunner, by: timedelta) -> None:
    """Makes every run in the journal so much older, as if the operator had waited."""
    for file in console.home.rglob("*.jsonl"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            line["at"] = f"{datetime.fromisoformat(line['at']) - by:%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))


@contextmanager
def waiting(console: CommandRunner, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The command, once it waits because an election may still be carried out."""
    with subprocess.Popen(
        [*command_line("ktriage", *words), *console.connection],
        env=environment(console.home),
        cwd=console.home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if "Ctrl-C ends the wait" in line:
                break
        else:
            raise AssertionError("".join(said))
        yield process


def interrupt_waiting(console: CommandRunner, *words: str) -> None:
    """An operator presses Ctrl-C while it waits, and is told the command for later."""
    with waiting(console, *words) as process:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT, said
    assert said.splitlines()[-1].strip() == f"ktriage resume {' '.join(console.connection)}"


def order(cluster: KafkaCluster, topic: str) -> tuple[int, ...]:
    return tuple(cluster.metadata.wait_caught_up().partition(topic, 0).replicas)


def test_killed_before_the_election_the_next_run_says_so_and_resume_reverts(
    disaster: KafkaCluster, console: CommandRunner
) -> None:
    file = plan(console, "kill-elect")
    killed(console, "elect", *apply_words(file))
    assert order(disaster, "kill-elect") == WRITTEN
    assert "next: ktriage resume" in console("status").err

    again = console(*apply_words(file))
    assert again.status != 0
    assert "ktriage resume" in again.err

    # The journal cannot tell whether the election was sent: its order stays while a broker may still carry it out.
    interrupt_waiting(console, "resume")
    assert order(disaster, "kill-elect") == WRITTEN

    journal_written_earlier(console, timedelta(minutes=3))
    resumed = console("resume")
    assert resumed.status == 0, resumed
    assert order(disaster, "kill-elect") == OWN
    assert console("resume").status == 0

    applied = console(*apply_words(plan_again(console, "kill-elect")))
    assert applied.status == 0, applied
    assert disaster.metadata.wait_caught_up().partition("kill-elect", 0).leader == 3
    assert order(disaster, "kill-elect") == OWN


def plan_again(console: CommandRunner, topic: str) -> str:
    (console.home / f"{topic}.json").unlink()
    return plan(console, topic)


def test_killed_before_the_order_is_reverted_resume_reverts_it(
    disaster: KafkaCluster, console: CommandRunner
) -> None:
    killed(console, "revert", *apply_words(plan(console, "kill-revert")))
    assert disaster.metadata.wait_caught_up().partition("kill-revert", 0).leader == 3
    assert order(disaster, "kill-revert") == WRITTEN
    resumed = console("resume")
    assert resumed.status == 0, resumed
    assert order(disaster, "kill-revert") == OWN


def test_released_kafka_tools_ignore_the_designated_leader_and_the_plan_says_so(
    disaster: KafkaCluster, console: CommandRunner
) -> None:
    file = console.home / plan(console, "released")
    told = json.loads(file.read_text())
    assert next(iter(told)) == "warning"
    assert "ignore designatedLeader" in told["warning"]
    assert told["partitions"][0]["designatedLeader"] == 3
    disaster.tools(
        "kafka-leader-election", "--election-type", "unclean", "--path-to-json-file", str(file), check=True
    )
    disaster.metadata.wait_leader("released", 0, 2)


def test_sigterm_half_way_through_many_finishes_what_is_in_flight_and_reverts_every_order(
    disaster: KafkaCluster, console: CommandRunner
) -> None:
    """More parts than are elected at once: some are never begun."""
    rows = [{"topic": MANY, "partition": p, "designatedLeader": 3} for p in range(MANY_PARTITIONS)]
    (console.home / "many.json").write_text(json.dumps({"partitions": rows}))
    words = ("--election-type", "designated", "--path-to-json-file", "many.json", "--yes", "--reason", "7")
    ended = python(console, "tests.live.stopped_command", str(ROWS_TOGETHER), *words)
    assert ended.returncode == 128 + signal.SIGTERM, str(ended)
    assert "not attempted" in ended.stderr
    states = disaster.metadata.wait_caught_up().partitions(MANY)
    led = {number for number, state in states.items() if state.leader == 3}
    assert 0 < len(led) < MANY_PARTITIONS
    assert {tuple(state.replicas) for state in states.values()} == {OWN}

    finished = console("kafka-elect-leaders", *words)
    assert finished.status == 0, finished.err
    assert {state.leader for state in disaster.metadata.wait_caught_up().partitions(MANY).values()} == {3}


def test_with_every_replica_dead_nothing_is_elected_and_each_is_named(
    disaster: KafkaCluster, console: CommandRunner
) -> None:
    incident_steps.kill(disaster, 2)
    disaster.node(3).kill()
    ended = console(
        "recover", "--all-offline-partitions", "--automated-recovery", "--recovery-duration-ms", "2000"
    )
    assert ended.status == 3, str(ended)
    assert all(str(node.port) in ended.err for node in disaster.brokers.values())
