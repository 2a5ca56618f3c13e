"""Traps that the leader's own description hides: an endpoint that leads nowhere, a second quorum, a new disk, and
brokers that name only controllers which are gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from tests.command_server import Ended
from tests.live.command_runner import CommandRunner
from tests.live.quorum_replacement import QuorumWatcher, wait_listening

pytestmark = pytest.mark.long

CLUSTER = ClusterSpec(controllers=3, brokers=1, spare_controllers=2)
YES = ("--yes", "--reason", "a test")


@pytest.fixture
def console(cluster: KafkaCluster, tmp_path: Path) -> Iterator[CommandRunner]:
    yield CommandRunner(tmp_path, cluster.bootstrap())


@pytest.fixture
def through(cluster: KafkaCluster, tmp_path: Path) -> CommandRunner:
    """Through controllers, with the addresses of all five, also of those that do not run."""
    found = CommandRunner(tmp_path, "")
    addresses = (f"127.0.0.1:{node.port}" for node in cluster.controllers.values())
    found.connection = ("--bootstrap-controller", ",".join(addresses))
    return found


@pytest.fixture
def watched(cluster: KafkaCluster) -> QuorumWatcher:
    return QuorumWatcher(cluster)


def said(console: CommandRunner, first: str) -> Ended:
    """The first ``quorum status`` whose first line begins so."""
    ended = wait_until(
        lambda: done if (done := console("quorum", "status")).out.startswith(first) else None,
        f"quorum status to begin with {first!r}",
    )
    assert ended.status == 1
    return ended


def changed(console: CommandRunner, verb: str, node: int, *words: str) -> None:
    """Sent again until it is done, as the command says where another request is under way."""
    wait_until(
        lambda: console("quorum", verb, str(node), *words, *YES).status == 0, f"{verb} {node} to be done", 60
    )


def test_a_voter_whose_registered_endpoint_leads_nowhere_is_no_spare(
    cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher
) -> None:
    watched.all_up()
    node = next(node for node in (100, 101, 102) if node != watched.leader())
    right, wrong = (f"CONTROLLER://127.0.0.1:{port}" for port in (cluster.node(node).port, 1))
    cluster.node(node).change_properties({"advertised.listeners": wrong})
    cluster.node(node).restart()
    watched.until(
        lambda q: any(at.port == 1 for v in q.voters.voters for at in v.endpoints), "the wrong endpoint"
    )
    watched.all_up()
    ended = said(console, f"voter {node} fetches, but at its registered endpoint 127.0.0.1:1")
    assert "tolerates no more failures for certain: 3 of 3 voters fetch" in ended.out
    # With the leader gone it depends on the logs. Where the third voter has the longer log, it cannot ask this
    # voter for its vote: nobody leads. Where this voter is elected, the third finds it by the bootstrap servers.
    cluster.node(node).change_properties({"advertised.listeners": right})
    cluster.node(node).restart()
    watched.until(
        lambda q: all(at.port != 1 for v in q.voters.voters for at in v.endpoints), "the right endpoint"
    )
    watched.all_up()


def test_another_quorum_with_the_same_cluster_id_is_said_first(
    cluster: KafkaCluster, through: CommandRunner, watched: QuorumWatcher
) -> None:
    cluster.format_again(103, standalone=True)
    cluster.node(103).start()
    wait_listening(cluster, 103)
    ended = said(through, "2 QUORUMS with the same cluster id: ")
    assert f"127.0.0.1:{cluster.node(104).port}: connection refused" in ended.out
    assert "no broker asked" in ended.out
    cluster.node(103).kill()


def test_a_controller_with_a_new_disk_is_said_first(
    cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher
) -> None:
    watched.all_up()
    before = watched.voters()
    node = next(node for node in before if node != watched.leader())
    cluster.node(node).kill()
    cluster.format_again(node)
    cluster.node(node).start()
    new = watched.joined(node)
    ended = said(console, f"controller {node} runs with a new disk ({new}), which has no vote")
    assert before[node] in ended.out
    changed(console, "remove", node, "--directory-id", before[node])
    changed(console, "add", node)
    watched.all_up()


def test_brokers_that_name_only_controllers_that_are_gone_are_told_before_and_after(
    cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher, tmp_path: Path
) -> None:
    for node in (103, 104):
        cluster.format_again(node)
        cluster.node(node).start()
        watched.joined(node)
        changed(console, "add", node)
    for node in (101, 102):
        changed(console, "remove", node)
        cluster.node(node).kill()
    watched.wait_voters({100, 103, 104})
    ended = said(console, "broker 1 will find no leader once 100 is down")
    assert "names only 100 of the voters 100, 103 and 104" in ended.out
    checked = console("check")
    assert checked.status == 1
    assert "broker 1 will find no leader once 100 is down" in checked.err

    cluster.node(100).kill()
    watched.until(lambda q: q.leader.id in (103, 104), "a new controller to lead")
    # A leader that the broker still knows serves it on; the next one it does not find.
    cluster.node(watched.leader()).restart()
    leader = watched.leader()
    ended = wait_until(
        lambda: done if "cannot find it" in (done := console("quorum", "status")).out else None,
        "the broker to lose the leader",
    )
    assert f"Controller {leader} leads; broker 1 cannot find it, because" in ended.out
    strange = CommandRunner(tmp_path / "elsewhere", "")
    strange.home.mkdir()
    strange.connection = console.connection
    unknown = strange("quorum", "status").out
    assert "LEADER NOT REACHED" in unknown
    assert "name them with --bootstrap-controller before anything else" in unknown
