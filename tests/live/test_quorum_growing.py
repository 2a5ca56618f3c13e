"""From one controller to three, to five and back to three; a planned move; controllers that join by themselves."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster
from tests.command_server import Ended
from tests.live.command_runner import CommandRunner
from tests.live.quorum_replacement import HostOperator, QuorumWatcher, ReplaceCommand, wait_listening

pytestmark = pytest.mark.long

CLUSTER = ClusterSpec(controllers=1, brokers=0, spare_controllers=4)
YES = ("--yes", "--reason", "a test")
AUTO_JOIN = {"controller.quorum.auto.join.enable": "true"}


@pytest.fixture
def console(cluster: KafkaCluster, tmp_path: Path) -> Iterator[CommandRunner]:
    """Through the controllers: there is no broker."""
    wait_listening(cluster, 100)
    found = CommandRunner(tmp_path, "")
    everyone = ",".join(f"127.0.0.1:{node.port}" for node in cluster.controllers.values())
    found.connection = ("--bootstrap-controller", everyone)
    yield found


@pytest.fixture
def watched(cluster: KafkaCluster) -> QuorumWatcher:
    return QuorumWatcher(cluster)


def killed_and_gone_on(
    cluster: KafkaCluster, console: CommandRunner, words: tuple[str, ...], die: str, servers: str
) -> Ended:
    """The replacement whose tool is killed before its first ``die``, and then gone on with by its plan."""
    hosts = HostOperator(cluster)
    plan = str(console.home / "plan.json")
    first = ("quorum", "replace", *words, "--plan", plan, "--confirmed", servers, *YES, *console.connection)
    ended = ReplaceCommand(console.home, first, hosts, die).ended()
    assert ended.status == -signal.SIGKILL, str(ended)
    again = ("quorum", "replace", "--plan", plan, "--confirmed", servers, *YES, *console.connection)
    ended = ReplaceCommand(console.home, again, hosts).ended()
    assert ended.status == 0, str(ended)
    return ended


def test_controllers_that_were_named_and_lead_quorums_of_their_own_are_said(
    cluster: KafkaCluster, console: CommandRunner
) -> None:
    """Each host was formatted with --standalone and the same cluster id."""
    alone = [cluster.node(number) for number in (101, 102)]
    try:
        for node in alone:
            cluster.format_again(node.id, standalone=True)
            node.start()
            wait_listening(cluster, node.id)
        ended = console("quorum", "status")
        shown, found = console.json("quorum", "status")
    finally:
        for node in alone:
            node.kill()
            node.wipe_log_dir()
            node.directory_id = ""
    assert ended.status == shown == 1
    assert ended.out.startswith("3 QUORUMS with the same cluster id"), "the worst is said first"
    several = [one["text"] for one in found["problems"] if one["problem"] == "several quorums"]
    others = [int(text.partition(", leader ")[2].split()[0]) for text in several]
    assert sorted([found["leader"], *others]) == [100, 101, 102]
    silent = {one["address"] for one in found["notReached"]}
    assert silent == {f"127.0.0.1:{cluster.node(number).port}" for number in (103, 104)}, "they do not run"


def test_from_one_to_three(cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher) -> None:
    words = ("--why", "grow", "--with", "101", "--with", "102")
    killed_and_gone_on(cluster, console, words, "add-voter", "7")
    assert set(watched.voters()) == {100, 101, 102}
    assert watched.all_up().spare == 1


def test_from_three_to_five(cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher) -> None:
    words = ("quorum", "replace", "--why", "grow", "--with", "103", "--with", "104", "--confirmed", "7")
    ended = ReplaceCommand(console.home, (*words, *YES, *console.connection), HostOperator(cluster)).ended()
    assert ended.status == 0, str(ended)
    assert set(watched.voters()) == {100, 101, 102, 103, 104}
    assert watched.all_up().spare == 2


def test_from_five_to_three_one_removal_after_the_other(
    cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher
) -> None:
    for node, die in ((103, "remove-voter"), (104, "")):
        words = (str(node), "--why", "shrink")
        if die:
            killed_and_gone_on(cluster, console, words, die, "1")
        else:
            line = ("quorum", "replace", *words, "--confirmed", "1", *YES, *console.connection)
            ended = ReplaceCommand(console.home, line, HostOperator(cluster)).ended()
            assert ended.status == 0, str(ended)
        assert not cluster.node(node).is_running
    assert set(watched.voters()) == {100, 101, 102}


def test_a_controller_moves_to_another_host(
    cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher
) -> None:
    hosts = HostOperator(cluster)
    words = ("quorum", "replace", "101", "--why", "planned", "--with", "103", *YES, *console.connection)
    ended = ReplaceCommand(console.home, words, hosts).ended()
    # The brokers are not asked here, and nobody can type that their settings are changed.
    assert ended.status == 1, str(ended)
    assert "nobody said that it is done at step 4" in ended.err
    assert "resume --confirmed 4" in ended.err.splitlines()[-1]
    ended = ReplaceCommand(
        console.home, ("resume", "--confirmed", "4", *YES, *console.connection), hosts, "remove-voter"
    ).ended()
    assert ended.status == -signal.SIGKILL, str(ended)
    ended = ReplaceCommand(console.home, ("resume", *YES, *console.connection), hosts).ended()
    assert ended.status == 0, str(ended)
    assert set(watched.voters()) == {100, 102, 103}
    assert not cluster.node(101).is_running


def test_controllers_join_by_themselves_and_one_that_runs_is_not_removed(
    cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher
) -> None:
    before = set(watched.voters())
    cluster.node(104).change_properties(AUTO_JOIN)
    cluster.format_again(104)
    cluster.node(104).start()
    watched.wait_voters(before | {104})
    ended = console("quorum", "remove", "104", *YES)
    assert ended.status == 1
    assert "it adds itself again, stop it first" in ended.err
    assert console.sent() == []


def test_a_disk_of_a_controller_that_joins_by_itself(
    cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher
) -> None:
    before = watched.voters()
    line = ("quorum", "replace", "104", "--why", "disk", *YES, *console.connection)
    ended = ReplaceCommand(console.home, line, HostOperator(cluster)).ended()
    assert ended.status == 0, str(ended)
    assert "joins by itself" in ended.out
    after = watched.voters()
    assert set(after) == set(before)
    assert after[104] != before[104]
    assert console.sent() == ["replace-controller"]
