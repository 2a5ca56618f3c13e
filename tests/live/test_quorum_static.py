"""Static voters: a disk is swapped without any request, the quorum is upgraded, a voter changes its address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live.command_runner import CommandRunner
from tests.live.quorum_replacement import QuorumWatcher, ReplaceCommand, wait_listening

pytestmark = pytest.mark.long

CLUSTER = ClusterSpec(controllers=3, brokers=1, quorum="static")
YES = ("--yes", "--reason", "a test")


@pytest.fixture
def console(cluster: KafkaCluster, tmp_path: Path) -> Iterator[CommandRunner]:
    yield CommandRunner(tmp_path, cluster.bootstrap())


def status(console: CommandRunner) -> dict[str, Any]:
    return console.json("quorum", "status")[1]


@pytest.fixture
def watched(cluster: KafkaCluster) -> QuorumWatcher:
    return QuorumWatcher(cluster)


def follower(watched: QuorumWatcher) -> int:
    leader = watched.leader()
    return next(node for node in (100, 101, 102) if node != leader)


def test_a_disk_is_swapped_by_its_procedure_and_nothing_is_sent(
    cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher
) -> None:
    watched.all_up()
    assert status(console)["dynamic"] is False
    node = follower(watched)

    def swap(title: str) -> None:
        if title.startswith("replace the disk"):
            cluster.node(node).stop()
            watched.stopped(node)
            cluster.format_again(node)
            cluster.node(node).start()

    words = ("quorum", "replace", str(node), "--why", "disk", *YES, *console.connection)
    ended = ReplaceCommand(console.home, words, swap).ended()
    assert ended.status == 0, str(ended)
    assert console.sent() == ["replace-controller"]
    assert status(console)["well"] is True
    refused = console("quorum", "replace", str(node), "--why", "host", "--with", "110", *YES)
    assert refused.status == 1
    assert "upgrade first" in refused.err


def test_the_quorum_is_upgraded_after_every_node_was_asked(
    cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher
) -> None:
    ended = console("quorum", "remove", "100", *YES)
    assert "controller.quorum.voters" in ended.err
    hung = follower(watched)
    cluster.node(hung).pause()
    try:
        ended = console("quorum", "upgrade", *YES)
        assert ended.status == 1
        assert f"controller {hung}" in ended.err
        assert status(console)["kraftVersion"] == 0
    finally:
        cluster.node(hung).resume()
    watched.all_up()
    done = console.json("quorum", "upgrade", *YES)[1]
    assert (done["done"], done["kraftVersion"]) == (True, 1)
    assert status(console)["dynamic"] is True
    assert console.sent() == ["upgrade-feature"]


def test_a_voter_tells_its_new_address_itself(
    cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher
) -> None:
    node = follower(watched)
    wanted = f"CONTROLLER://localhost:{cluster.node(node).port}"
    words = ("quorum", "update-endpoint", str(node), "--endpoint", wanted, *console.connection)
    waiting = ReplaceCommand(console.home, words, lambda _title: None)
    cluster.node(node).change_properties({"advertised.listeners": wanted})
    cluster.node(node).restart()
    wait_listening(cluster, node)
    ended = waiting.ended()
    assert ended.status == 0, str(ended)
    voters = {m["id"]: m["endpoints"] for m in status(console)["members"] if m["endpoints"]}
    assert voters[node][0]["host"] == "localhost"
    assert console.sent() == []
