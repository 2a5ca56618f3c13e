"""The disk of a broker that was silent at an unclean election stays a point until it is read, on a real cluster.

Broker 3 acknowledged 300 records alone, and is dead when another one is elected. Both topics are in the same state:
the disk is read for one of them before broker 3 starts, and for the other one it is not.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from testbed.kafka import KafkaCluster, wait_until
from tests.live import advised_operator
from tests.live.advised_operator import AGGRESSIVE, AGREED, create, left
from tests.live.command_runner import CommandRunner
from tests.live.incident_steps import kill, produce, start, wait_all, wait_offline
from tests.unit.cli.command_process import command_line, environment

pytestmark = pytest.mark.long

CLUSTER = advised_operator.CLUSTER

READ, UNREAD = "silent-read", "silent-unread"
TOPICS = (READ, UNREAD)
COMMON, ALONE = 500, 300


@pytest.fixture(scope="module")
def console(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> CommandRunner:
    """After the elections of both topics; broker 3 is still down."""
    cluster.bring_all_up()
    home = tmp_path_factory.mktemp("unread-disks")
    console = CommandRunner(home, cluster.bootstrap(), cluster.metadata.wait_caught_up)
    create(cluster, TOPICS, [1, 2, 3], min_insync_replicas=1)
    for topic in TOPICS:
        produce(cluster, topic, COMMON, "common")
    kill(cluster, 1, 2)
    wait_all(cluster, TOPICS, lambda state: state.isr == (3,), "with 3 alone in the ISR")
    for topic in TOPICS:
        produce(cluster, topic, ALONE, "alone")
    kill(cluster, 3)
    start(cluster, 1, 2)
    wait_offline(cluster, TOPICS)
    named = [word for topic in TOPICS for word in ("--topic", topic)]
    assert console("plan", *named, *AGGRESSIVE, "plan.json").status == 0
    return console


def points(console: CommandRunner) -> dict[str, str]:
    """What ``verify`` has of broker 3's disk, by topic."""
    _, verified = console.json("verify", "plan.json")
    assert {one["broker"] for one in verified["unreadDisks"]} <= {3}
    return {one["topic"]: one["state"] for one in verified["unreadDisks"]}


def test_every_form_names_the_disk_until_it_is_read_and_the_broker_that_came_back_unread(
    console: CommandRunner, cluster: KafkaCluster
) -> None:
    first = "before broker 3 is started, read its disk"
    ended = console("apply", "plan.json", *AGREED)
    assert ended.status == 0 and "2 elected" in ended.out, ended
    assert f"{first} (ktriage rescue read" in ended.out.partition("2 elected")[2], ended
    assert not list((console.home / "state").rglob("rescues")), "nothing of it could be read from a broker"
    assert points(console) == dict.fromkeys(TOPICS, "not started since")
    assert first in console("verify", "plan.json").out
    status = console("status")
    assert "read the disk of 3 before it starts" in status.out
    for words in (("status",), ("report", "--since", "1h"), ("handover", "--since", "1h")):
        assert "Read the disk of broker 3 before it starts" in console(*words).out, words
    assert first in console("journal").err

    disks = [word for path in cluster.node(3).log_dirs for word in ("--from-disk", str(path))]
    ended = console("rescue", "read", "--to", "saved", *disks, "--topic", READ)
    assert ended.status == 0 and f"{ALONE} offsets are only on it" in ended.out, ended
    assert points(console) == {UNREAD: "not started since"}

    seen = watched(console, lambda: start(cluster, 3))
    back = next(one for one in seen if one["kind"] == "broker back unread")
    assert back["text"].startswith(f"broker 3 came back unread: what it alone held of {UNREAD}-0 is gone")
    wait_all(cluster, TOPICS, lambda state: set(state.isr) == {1, 2, 3}, "in sync on all three")
    assert points(console) == {UNREAD: "came back unread"}
    for page in ("report", "handover"):
        assert "Broker 3 came back unread" in console(page, "--since", "1h").out, page
    assert "read the disk" not in console("status").out

    assert left(cluster, READ) == left(cluster, UNREAD) == {"common": COMMON}
    ended = console("restore", "saved", "--to-source", *AGREED)
    assert ended.status == 0 and f"{ALONE} records written back" in ended.out, ended
    assert left(cluster, READ) == {"common": COMMON, "alone": ALONE}


def watched(console: CommandRunner, act: Any) -> list[dict[str, Any]]:
    """What ``watch`` tells from before ``act`` until broker 3 is back."""
    words = ("watch", "--broker-id", "3", "--interval-ms", "200", "--output", "json", *console.connection)
    said = Path(console.home, "watch.err")
    with said.open("w") as errors:
        process = subprocess.Popen(
            command_line("ktriage", *words),
            env=environment(console.home),
            cwd=console.home,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        wait_until(lambda: "before broker 3 is started" in said.read_text(), "watch to name the disk", 60.0)
        act()
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said.read_text()
    return [json.loads(line) for line in out.splitlines()]
