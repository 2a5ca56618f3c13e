"""KIP-853's scenarios on three controllers: changes refused and made, disks and hosts replaced, a majority lost."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from tests.command_server import Ended
from tests.live.command_runner import CommandRunner
from tests.live.quorum_replacement import HostOperator, QuorumWatcher, ReplaceCommand, wait_listening
from tests.live.request_proxy import RequestProxy
from tests.side_by_side.both_clusters import RealSide, SimulatedSide
from tests.side_by_side.quorum import RealHosts, SimulatedHosts, play
from tests.side_by_side.script import names, read
from tests.unit.cli.command_process import command_line, environment

CLUSTER = ClusterSpec(controllers=3, brokers=1, spare_controllers=2)
YES = ("--yes", "--reason", "a test")


@pytest.fixture
def console(cluster: KafkaCluster, tmp_path: Path) -> Iterator[CommandRunner]:
    yield CommandRunner(tmp_path, cluster.bootstrap())


@pytest.fixture
def watched(cluster: KafkaCluster) -> QuorumWatcher:
    return QuorumWatcher(cluster)


@pytest.fixture
def through(cluster: KafkaCluster, tmp_path: Path) -> Iterator[CommandRunner]:
    """The same through the controllers: no broker is asked."""
    found = CommandRunner(tmp_path, "")
    found.connection = ("--bootstrap-controller", cluster.bootstrap_controllers)
    yield found


def told(console: CommandRunner) -> dict[str, Any]:
    return console.json("quorum", "status")[1]


def replaced(home: Path, console: CommandRunner, hosts: HostOperator, *words: str, die: str = "") -> Any:
    arguments = ("quorum", "replace", *words, *YES, *console.connection)
    return ReplaceCommand(home, arguments, hosts, die).ended()


@pytest.mark.long
@pytest.mark.parametrize("name", names(quorum=True))
async def test_the_real_quorum_comes_to_what_the_simulated_one_comes_to(
    whole_cluster: KafkaCluster, name: str
) -> None:
    script = read(name)
    simulated = SimulatedSide()
    wanted = await play(script, simulated, SimulatedHosts(simulated.world))
    found = await play(script, RealSide(whole_cluster, {}), RealHosts(whole_cluster), wanted)
    assert found == wanted


def test_both_routes_tell_the_same_voters_and_what_they_stand(
    console: CommandRunner, through: CommandRunner, watched: QuorumWatcher
) -> None:
    watched.all_up()
    one, other = told(console), told(through)
    assert one["strength"]["failuresStood"] == other["strength"]["failuresStood"] == 1
    assert one["strength"]["voters"] == other["strength"]["voters"]
    assert one["wedged"] is None
    assert {m["role"] for m in one["members"]} == {"leader", "voter", "broker"}
    only_a_follower = CommandRunner(through.home, "")
    port = {c["id"]: c["port"] for c in other["controllers"]}[
        next(n for n in (100, 101) if n != one["leader"])
    ]
    only_a_follower.connection = ("--bootstrap-controller", f"127.0.0.1:{port}")
    assert told(only_a_follower)["leader"] == other["leader"]


@pytest.mark.long
def test_a_leader_whose_removal_takes_too_long_leads_on_until_it_is_restarted(
    cluster: KafkaCluster, console: CommandRunner, through: CommandRunner, watched: QuorumWatcher
) -> None:
    """Kafka's leader resigns only if its removal is committed within two seconds. Brokers are fenced until then."""

    def fenced(ended: Ended) -> Ended | None:
        return ended if "broker 1 fenced" in ended.out else None

    watched.all_up()
    before = watched.wait_voters({100, 101, 102})
    leader = watched.leader()
    silent = next(node for node in before if node != leader)
    cluster.node(silent).pause()
    try:
        answer = watched.remove(leader)
    finally:
        cluster.node(silent).resume()
    assert answer.error == "REQUEST_TIMED_OUT"
    watched.until(lambda q: q.led_by_non_voter and q.log_end_offset == q.high_watermark, "the commit")
    ended = wait_until(lambda: fenced(console("status")), "the broker to be fenced")
    assert ended.out.startswith("quorum LED BY A NON-VOTER · broker 1 fenced")
    ended = through("quorum", "status")
    assert ended.status == 1
    assert f"controller {leader} leads but is no voter" in ended.out
    ended = through("quorum", "add", str(leader), *YES)
    assert ended.status == 1
    assert "it leads without being a voter: restart it" in ended.out + ended.err
    assert watched.leader() == leader, "it leads on"

    cluster.node(leader).restart()
    assert watched.joined(leader) == before[leader]
    assert watched.leader() != leader
    cluster.metadata.wait_live({1})
    assert through("quorum", "add", str(leader), *YES).status == 0
    assert watched.wait_voters({100, 101, 102}) == before


@pytest.mark.long
def test_a_newcomer_that_is_not_there_or_not_reached_or_not_itself_is_not_added(
    cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher
) -> None:
    before = watched.voters()
    ended = console("quorum", "add", "103", *YES)
    assert ended.status == 1
    assert "node 103 does not fetch" in ended.err
    cluster.format_again(103)
    cluster.node(103).start()
    directory = watched.joined(103)
    with RequestProxy(cluster.node(103).port) as proxy:
        proxy.close()
        cut = f"CONTROLLER://{proxy.address}"
        ended = console("quorum", "add", "103", "--endpoint", cut, *YES)
    assert ended.status == 1
    assert "the leader cannot reach the new voter" in ended.err
    elsewhere = f"CONTROLLER://127.0.0.1:{cluster.node(101).port}"
    ended = console("quorum", "add", "103", "--endpoint", elsewhere, *YES)
    assert "is node 101, not 103" in ended.err
    wrong = before[100]
    ended = console("quorum", "add", "103", "--directory-id", wrong, *YES)
    assert f"what fetches as node 103 has {directory}" in ended.err
    ended = console("quorum", "remove", "100", "--directory-id", directory, *YES)
    assert "VOTER_NOT_FOUND" in ended.err
    assert console("quorum", "add", "103", "--directory-id", "?", *YES).status == 2
    assert watched.voters() == before
    assert console.sent() == []


@pytest.mark.long
def test_a_newcomer_that_stops_catching_up_is_told_from_the_other_causes(
    cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher
) -> None:
    watched.joined(103)
    cluster.node(103).pause()
    try:
        watched.ghost(103)
        ended = console("quorum", "add", "103", *YES)
        assert ended.status == 1
        assert "has stopped fetching" in ended.err
    finally:
        cluster.node(103).resume()
    assert console.sent() == []


def carried_out(console: CommandRunner, verb: str, node: int) -> bool:
    """Sent again where the tool says so, as an operator does."""
    for _ in range(5):
        ended = console("quorum", verb, str(node), *YES)
        if "send it again" not in ended.out + ended.err:
            break
    return ended.status == 0


@pytest.mark.long
def test_two_operators_at_once_do_no_harm(
    cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher, tmp_path: Path
) -> None:
    cluster.format_again(104)
    cluster.node(104).start()
    watched.joined(103)
    watched.joined(104)
    running = []
    for node in ("103", "104"):
        home = tmp_path / node
        home.mkdir()
        line = command_line("ktriage", "quorum", "add", node, *YES, *console.connection)
        running.append(
            subprocess.Popen(line, env=environment(home), cwd=home, stdout=subprocess.PIPE, text=True)
        )
    statuses = [process.wait(60) for process in running]
    for process in running:
        process.communicate()
    found = watched.voters()
    added = {103, 104} & set(found)
    assert len(added) == statuses.count(0)
    for left in {103, 104} - added:
        assert carried_out(console, "add", left)
    assert set(watched.voters()) == {100, 101, 102, 103, 104}
    for spare in (103, 104):
        assert carried_out(console, "remove", spare)
        cluster.node(spare).stop()
    assert set(watched.voters()) == {100, 101, 102}


def test_a_follower_gets_a_new_disk_though_the_tool_is_killed_between_remove_and_add(
    cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher
) -> None:
    before = watched.voters()
    follower = next(node for node in sorted(before) if node != watched.leader())
    cluster.node(follower).kill()
    hosts = HostOperator(cluster)
    ended = replaced(console.home, console, hosts, str(follower), "--why", "disk", die="add-voter")
    assert ended.status == -signal.SIGKILL, str(ended)
    assert follower not in watched.voters()
    assert "ktriage resume" in console("quorum", "status").err
    assert console("resume").status == 1  # no voter is changed unasked
    again = console("resume", *YES)
    assert again.status == 0, again
    after = watched.voters()
    assert set(after) == set(before)
    assert after[follower] != before[follower]
    assert watched.all_up().spare == 1
    assert "nothing is unfinished" in console("resume").out


@pytest.mark.long
def test_the_leader_gets_a_new_disk(
    cluster: KafkaCluster, through: CommandRunner, watched: QuorumWatcher
) -> None:
    before, first = watched.voters(), watched.leader()
    ended = replaced(through.home, through, HostOperator(cluster), str(first), "--why", "disk")
    assert ended.status == 0, str(ended)
    after = watched.voters()
    assert set(after) == set(before)
    assert after[first] != before[first]
    assert watched.leader() != first


@pytest.mark.long
def test_a_lost_host_is_replaced_and_every_node_knows_the_new_one(
    cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher
) -> None:
    gone = next(node for node in sorted(watched.voters()) if node != watched.leader())
    cluster.node(gone).kill()
    kept = [node for node in (100, 101, 102) if node != gone]
    hosts = HostOperator(cluster, (*kept, 103))
    words = (str(gone), "--why", "host", "--with", "103")
    ended = replaced(console.home, console, hosts, *words, die="remove-voter")
    assert ended.status == -signal.SIGKILL, str(ended)
    assert set(watched.voters()) == {100, 101, 102, 103}
    ended = ReplaceCommand(console.home, ("resume", *YES, *console.connection), hosts).ended()
    assert ended.status == 0, str(ended)
    assert set(watched.voters()) == {*kept, 103}
    assert any(title.startswith("change controller.quorum") for title in hosts.did)
    cluster.metadata.wait_live([1])


@pytest.mark.long
def test_a_quorum_out_of_reach_is_not_one_that_nobody_leads(
    cluster: KafkaCluster, console: CommandRunner, watched: QuorumWatcher
) -> None:
    """Controllers that hang may be reached by others; those whose ports refuse, in the next test, do not run."""
    voters = watched.voters()
    for node in voters:
        cluster.node(node).pause()
    try:
        done = console("status")
    finally:
        for node in voters:
            cluster.node(node).resume()
    assert done.status == 1
    assert done.out.startswith("quorum UNREACHABLE"), done.out
    assert "NO LEADER" not in done.out and "no partition offline" not in done.out
    watched.all_up()


@pytest.mark.long
def test_a_majority_lost_is_told_plainly_and_nothing_is_sent(
    cluster: KafkaCluster, console: CommandRunner, through: CommandRunner, watched: QuorumWatcher
) -> None:
    found = watched.voters()
    assert told(console)["leader"] >= 0
    dead = sorted(found)[:2]
    alive = next(node for node in found if node not in dead)
    through.connection = ("--bootstrap-controller", f"127.0.0.1:{cluster.node(alive).port}")
    for node in dead:
        cluster.node(node).kill()
    wait_until(lambda: watched.quorum() is None, "the quorum to have no leader", 40.0)
    for route in (through, console):
        status, lost = route.json("quorum", "status")
        assert status == 1
        assert lost["lost"]["missing"] == 1
        assert {h["id"] for h in lost["hosts"] if not h["answers"]} == set(dead)
        assert all(h["logEndOffset"] > 0 for h in lost["hosts"])
    ended = console("status")
    assert ended.status == 1
    assert ended.out.startswith(f"quorum NO LEADER · controllers {dead[0]}, {dead[1]} down"), ended.out
    assert "no partition offline" not in ended.out
    assert "No controller leads: nobody can be elected" in ended.out
    shown = through("quorum", "status").out
    assert "1. Bring back 1 of" in shown and "3. Rebuild: only where" in shown
    rebuild = f"--voter {alive}@127.0.0.1:{cluster.node(alive).port} --dead {dead[0]} --dead {dead[1]}"
    assert rebuild in shown
    assert "ktriage quorum evidence LOG_DIR" in console("handover").out
    ended = through("quorum", "remove", str(dead[0]), *YES)
    assert ended.status == 1
    assert "No change can be committed" in ended.err
    # A controller that starts without a majority knows no metadata.version: it answers, and cannot list anybody.
    cluster.node(alive).restart()
    wait_listening(cluster, alive)
    ended = through("quorum", "status")
    assert ended.status == 3, str(ended)
    assert "has not read the metadata log yet" in ended.err
    for node in dead:
        cluster.node(node).start()
    for node in dead:
        wait_listening(cluster, node)
    watched.leader()
