"""On Kafka 4.4 the registration of a controller that is gone goes with its vote."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live.command_runner import CommandRunner
from tests.live.quorum_replacement import HostOperator, QuorumWatcher, ReplaceCommand

pytestmark = pytest.mark.long

CLUSTER = ClusterSpec(version="4.4.0", controllers=3, brokers=1, spare_controllers=1)


def test_a_lost_host_that_is_replaced_is_registered_no_more(cluster: KafkaCluster, tmp_path: Path) -> None:
    console, watched = CommandRunner(tmp_path, cluster.bootstrap()), QuorumWatcher(cluster)
    gone = next(node for node in sorted(watched.voters()) if node != watched.leader())
    cluster.node(gone).kill()
    left = [node for node in (100, 101, 102) if node != gone]
    words = ("quorum", "replace", str(gone), "--why", "host", "--with", "103", "--yes", "--reason", "a test")
    hosts = HostOperator(cluster, (*left, 103))
    ended = ReplaceCommand(console.home, (*words, *console.connection), hosts).ended()
    assert ended.status == 0, str(ended)
    assert f"unregistered: controller {gone}" in ended.out + ended.err
    assert set(watched.voters()) == {*left, 103}
    assert f"unregister-controller {gone}" in console("journal").out
    _, shown = console.json("timeline")
    assert "controller unregistered" in {event["kind"] for event in shown["events"]}


def test_a_controller_that_runs_and_is_replaced_is_registered_no_more(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    """It would register again by itself within seconds: it is stopped first."""
    console, watched = CommandRunner(tmp_path, cluster.bootstrap()), QuorumWatcher(cluster)
    voters = set(watched.voters())
    old = next(node for node in sorted(voters) if node != watched.leader())
    new = next(node for node in cluster.controllers if node not in voters)
    words = (
        "quorum",
        "replace",
        str(old),
        "--why",
        "planned",
        "--with",
        str(new),
        "--yes",
        "--reason",
        "a test",
    )
    hosts = HostOperator(cluster, (*sorted(voters - {old}), new))
    ended = ReplaceCommand(console.home, (*words, *console.connection), hosts).ended()
    assert ended.status == 0, str(ended)
    assert f"unregistered: controller {old}" in ended.out + ended.err
    assert f"stop controller {old} permanently" in hosts.did
    assert set(watched.voters()) == {*voters - {old}, new}


def test_the_registration_of_a_controller_that_runs_is_left_to_its_stop(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    console, watched = CommandRunner(tmp_path, cluster.bootstrap()), QuorumWatcher(cluster)
    watched.all_up()
    node = next(node for node in sorted(watched.voters()) if node != watched.leader())
    ended = console("quorum", "remove", str(node), "--unregister", "--yes", "--reason", "a test")
    assert ended.status == 1, ended
    assert f"controller {node} is still registered" in ended.out
    assert f"stop it, then kafka-cluster.sh unregister-controller --id {node}" in ended.out
