"""An operator looks at a simulated quorum and changes it, as on a live cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.base.errors import NoLeader, NotAllowed
from backends.base.membership import ChangeEnd, Membership, NodeProbe
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.membership import SimulatedMembership
from backends.simulator.network import OPERATOR, broker, controller
from backends.simulator.scenario.files import BUILT_IN, parse, read
from recovery.membership.preflight import EndpointProbe, LivenessLimits, before_adding, before_removing
from recovery.membership.quorum import Quorum
from recovery.membership.voters import ReplicaKey, Voter
from recovery.model import Unknown
from tests.unit.simulator.operators import Record


async def opened(name: str, state: Path | None = None) -> tuple[SimulatorBackend, SimulatedMembership]:
    backend = SimulatorBackend(read(name), 1, state)
    await backend.membership.open()
    return backend, backend.membership


def offers(backend: SimulatorBackend) -> Membership:
    return backend.membership


def of(quorum: Quorum, node: int) -> list[ReplicaKey]:
    """Every key of that node id that the leader knows, voters first."""
    known = (*quorum.voters.keys, *(held.key for held in quorum.progress))
    return [key for key in dict.fromkeys(known) if key.id == node]


def newcomer(backend: SimulatorBackend, quorum: Quorum, node: int) -> Voter:
    key = next(key for key in of(quorum, node) if key not in quorum.voters.keys)
    return backend.simulation.world.quorum.context.hosts[node].voter(key)


async def test_a_failed_disk_is_replaced_in_the_order_that_kafka_wants() -> None:
    backend, membership = await opened("controller-disk-failure")
    assert offers(backend).simulated
    record = Record()
    quorum = await membership.describe()
    old = of(quorum, 102)[0]
    voter = newcomer(backend, quorum, 102)
    early = await membership.add_voter(voter, record)
    assert (early.ended, early.error) == (ChangeEnd.REFUSED, "DUPLICATE_VOTER")
    verdict = before_removing(quorum, old, LivenessLimits())
    assert verdict.allowed
    assert (await membership.remove_voter(old, record)).ended is ChangeEnd.DONE
    quorum = await membership.describe()
    endpoint = voter.endpoints[0]
    answer = await membership.probe(endpoint.host, endpoint.port, 102)
    assert isinstance(answer, NodeProbe)
    probes = [EndpointProbe(endpoint, answer.identity)]
    assert before_adding(quorum, voter, probes, membership.rules, LivenessLimits()).allowed
    assert (await membership.add_voter(voter, record)).ended is ChangeEnd.DONE
    quorum = await membership.describe()
    assert sorted(key.id for key in quorum.voters.keys) == [100, 101, 102]
    assert voter.key in quorum.voters.keys
    assert [action for action, _ in record.before_] == ["add-voter", "remove-voter", "add-voter"]
    assert record.after_[-1] == ("add-voter-3", {"answer": "done"})
    await backend.close()


async def test_what_was_done_is_there_in_the_next_command(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    backend, membership = await opened("controller-node-failure", state)
    quorum = await membership.describe()
    assert (await membership.add_voter(newcomer(backend, quorum, 103), Record())).ended is ChangeEnd.DONE
    assert (await membership.remove_voter(of(quorum, 102)[0], Record())).ended is ChangeEnd.DONE
    digest = backend.simulation.world.history.events_digest()
    await backend.close()
    backend, membership = await opened("controller-node-failure", state)
    assert backend.simulation.world.history.events_digest() == digest
    quorum = await membership.describe()
    assert [key.id for key in quorum.voters.keys] == [100, 101, 103]
    await membership.pause(5)
    await backend.close()
    backend, membership = await opened("controller-node-failure", state)
    assert [key.id for key in (await membership.describe()).voters.keys] == [100, 101, 103]
    await backend.close()


async def test_an_upgrade_of_kraft_version_can_be_tried_before_it_is_made(tmp_path: Path) -> None:
    scenario = read("static-quorum-upgrade")
    state = tmp_path / "state.json"
    backend = SimulatorBackend(scenario, 1, state)
    membership = backend.membership
    await membership.open()
    assert (await membership.describe()).kraft_version == 0
    wrong = await membership.upgrade_feature("kraft.version", 2, None, dry_run=True)
    assert (wrong.ended, wrong.error) == (ChangeEnd.REFUSED, "INVALID_UPDATE_VERSION")
    assert (await membership.upgrade_feature("kraft.version", 1, None, dry_run=True)).ended is ChangeEnd.DONE
    assert (await membership.describe()).kraft_version == 0
    done = await membership.upgrade_feature("kraft.version", 1, Record(), dry_run=False)
    assert done.ended is ChangeEnd.DONE
    await backend.close()
    backend = SimulatorBackend(scenario, 1, state)
    await backend.membership.open()
    quorum = await backend.membership.describe()
    assert quorum.kraft_version == 1
    assert all(key.directory_id for key in quorum.voters.keys)
    await backend.close()


async def test_with_two_of_three_voters_lost_nobody_leads_and_nothing_is_done() -> None:
    backend, membership = await opened("two-of-three-voters-lost")
    with pytest.raises(NoLeader, match="no broker described the quorum"):
        await membership.describe()
    answer = await membership.remove_voter(ReplicaKey(102, "x" * 22), Record(), timeout=5)
    assert answer.ended is ChangeEnd.NOT_KNOWN, "a broker holds the request until somebody leads"
    nodes = {node.id: node.answer for node in await membership.nodes()}
    assert isinstance(nodes[100], NodeProbe)
    assert nodes[100].leader == -1
    assert isinstance(nodes[102], Unknown)
    assert isinstance(nodes[1], NodeProbe)
    assert isinstance(nodes[3], Unknown), "it died"
    listed = await membership.controllers()
    assert not isinstance(listed, Unknown)
    assert [row.id for row in listed] == [100, 101, 102]
    await backend.close()


async def test_a_controller_that_the_operator_does_not_reach_is_unknown_not_gone() -> None:
    backend, membership = await opened("controller-node-failure")
    backend.simulation.world.network.cut([OPERATOR], [controller(n) for n in (100, 101, 103)])
    assert (await membership.describe()).leader.id == 100, "a broker forwards the question"
    assert isinstance(await membership.controllers(), Unknown)
    nodes = {node.address: node.answer for node in await membership.nodes()}
    assert isinstance(nodes["controller-100.simulated:9093"], Unknown)
    await backend.close()


async def test_an_answer_that_never_comes_is_told_as_not_known() -> None:
    """The leader takes the request, and the answer is lost: the voters have to be looked at."""
    backend, membership = await opened("controller-node-failure")
    quorum = await membership.describe()
    world = backend.simulation.world
    old = of(quorum, 102)[0]
    brokers = [broker(number) for number in world.brokers]

    def cut_the_way_back(_event: object) -> None:
        if old not in world.quorum.disks[quorum.leader.id].log.voters.keys:
            world.network.cut(brokers, [OPERATOR], one_way=True)

    world.events.subscribers.append(cut_the_way_back)
    answer = await membership.remove_voter(old, Record(), timeout=5)
    assert answer.ended is ChangeEnd.NOT_KNOWN
    world.events.subscribers.remove(cut_the_way_back)
    world.network.heal_all()
    assert old not in (await membership.describe()).voters.keys
    await backend.close()


async def test_who_may_not_describe_or_change_is_told_what_is_missing() -> None:
    text = (BUILT_IN / "controller-node-failure.yaml").read_text(encoding="utf-8")
    text = text.replace("operator: {at: 60}", 'operator: {at: 60, denied: ["ALTER cluster"]}')
    backend = SimulatorBackend(parse(text, "mine", "mine.yaml"), 1)
    membership = backend.membership
    await membership.open()
    quorum = await membership.describe()
    record = Record()
    with pytest.raises(NotAllowed, match="ALTER"):
        await membership.remove_voter(of(quorum, 102)[0], record)
    assert "nothing was sent" in str(record.after_[0][1]["answer"])
    await backend.close()


async def test_a_probe_tells_who_listens_at_an_address() -> None:
    backend, membership = await opened("controller-node-failure")
    found = await membership.probe("controller-103.simulated", 9093)
    assert isinstance(found, NodeProbe)
    assert (found.node_id, found.kraft_versions, found.cluster_id) == (103, (0, 1), backend.cluster_id)
    (at_broker,) = [node.answer for node in await membership.nodes() if node.id == 1]
    assert isinstance(at_broker, NodeProbe)
    assert (at_broker.node_id, at_broker.leader) == (1, -1)
    assert isinstance(await membership.probe("controller-103.simulated", 1), Unknown)
    assert isinstance(await membership.probe("controller-102.simulated", 9093), Unknown), "it is dead"
    await backend.close()


async def test_describe_quorum_shows_the_dead_voter_behind_and_the_newcomer_caught_up() -> None:
    backend, _ = await opened("controller-node-failure")
    shown = await backend.quorum()
    assert not isinstance(shown, Unknown)
    ends = {held.key.id: held.log_end_offset for held in shown.progress}
    assert ends[100] - ends[102] > 50
    assert ends[100] - ends[103] <= 1
    assert {key.id for key in shown.voters.keys} == {100, 101, 102}
    assert {voter.key.id for voter in shown.voters.voters if voter.endpoints} == {100, 101, 102}
    await backend.close()
