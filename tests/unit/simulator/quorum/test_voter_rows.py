"""Kafka's own tests of voter changes, row by row, against the running quorum."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backends.simulator.loop import SECOND
from backends.simulator.quorum.raft_messages import (
    AddRaftVoter,
    RaftVoterReply,
)
from backends.simulator.world import World
from recovery.membership.quorum import MembershipRules, TimeoutCause
from recovery.membership.voter_changes import RemoveRaftVoter, UpdateRaftVoter
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint
from tests.unit.simulator.quorum.quorums import ask, cut, error, key, leads, quorum, send, until, voters

VECTORS = Path(__file__).parents[3] / "vectors" / "kafka-controller.json"
ROWS: list[dict[str, Any]] = json.loads(VECTORS.read_text())["raftReconfig"]

DIFFERS_IN_4_3 = {
    "testUpdateVoterWithKraftVersion0": (
        "since 4.1 a voter updates itself before kraft.version 1 too (KAFKA-16538)",
        MembershipRules(update_at_version_0=False),
    )
}
STRANGER = "AAAAAAAAAAAAAAAAAAAAAA"


def voter(world: World, number: int, directory: str = "") -> Voter:
    own = ReplicaKey(number, directory) if directory else key(world, number)
    return world.quorum.context.hosts[number].voter(own)


def add(world: World, number: int = 103, at: int = 100, **changed: Any) -> RaftVoterReply:
    body = AddRaftVoter(voter(world, number), world.quorum.context.cluster_id, 30 * SECOND)
    return ask(world, at, body._replace(**changed))


def remove(world: World, held: ReplicaKey, at: int = 100, cluster: str | None = None) -> RaftVoterReply:
    named = world.quorum.context.cluster_id if cluster is None else cluster
    return ask(world, at, RemoveRaftVoter(held, named))


def update(world: World, changed: Voter | None = None, at: int = 100, **fields: Any) -> RaftVoterReply:
    given = changed or moved(voter(world, 101))
    body = UpdateRaftVoter(given, leads(world).epoch, world.quorum.context.cluster_id)
    return ask(world, at, body._replace(**fields))


def moved(of: Voter) -> Voter:
    return of._replace(kraft_versions=(0, 2))


def with_observers() -> World:
    return quorum(observers=(103, 104))


def unable_to_commit(**config: Any) -> World:
    """101 and 102 do not hear the leader any more."""
    world = quorum(observers=(103, 104), **config)
    cut(world, (100,), (101, 102))
    return world


def pending_add() -> World:
    world = unable_to_commit()
    send(world, 100, AddRaftVoter(voter(world, 103), world.quorum.context.cluster_id, 30 * SECOND))
    until(world, lambda: len(world.quorum.disks[100].log.voters.voters) == 4)
    return world


def pending_remove() -> World:
    world = unable_to_commit()
    send(world, 100, RemoveRaftVoter(key(world, 102), world.quorum.context.cluster_id))
    until(world, lambda: len(world.quorum.disks[100].log.voters.voters) == 2)
    return world


def not_committed_in_its_epoch(body: Callable[[World], Any]) -> str:
    """A leader that was just elected has no high watermark of its own yet."""
    world = with_observers()
    world.kill_controller(100)
    until(world, lambda: world.quorum.leader is not None)
    leader = world.quorum.leader
    assert leader is not None
    assert leader.leadership is not None
    assert not leader.leadership.announced
    replies: list[RaftVoterReply] = []
    world.quorum.receive(leader.id, body(world), replies.append)
    return error(replies[0])


def both(answer: Callable[[str], RaftVoterReply]) -> str:
    """A wrong cluster id, and an empty one."""
    wrong, empty = error(answer("another")), error(answer(""))
    assert wrong == empty
    return wrong


def added() -> str:
    world = with_observers()
    said = error(add(world))
    assert voters(world) == (100, 101, 102, 103)
    leader = leads(world)
    until(world, lambda: world.quorum.disks[103].log.voters == leader.voters)
    return said


def lagging() -> str:
    """104 has only just started when it is to be added."""
    world = quorum(observers=(103,))
    world.start_controller(104)
    reply = add(world, 104)
    assert reply.refusal is not None
    assert reply.refusal.cause is TimeoutCause.LAGGING
    return error(reply)


def wrong_node() -> str:
    """At the address of 103 listens 104."""
    world = with_observers()
    own = voter(world, 103)
    reply = add(world, voter=own._replace(endpoints=voter(world, 104).endpoints))
    assert reply.refusal is not None
    assert reply.refusal.cause is TimeoutCause.UNREACHABLE
    return error(reply)


def old_software() -> str:
    world = with_observers()
    world.quorum.configure(103, kraft_versions=(0, 0))
    return error(add(world))


def not_in_time(world: World, reply: RaftVoterReply) -> str:
    """The change is written all the same, and committed when a majority is back."""
    assert reply.refusal is not None
    assert reply.refusal.cause is TimeoutCause.NOT_COMMITTED
    written = world.quorum.disks[100].log.voters
    world.network.heal_all()
    until(world, lambda: world.quorum.disks[101].log.voters == written)
    assert leads(world).voters == written
    return error(reply)


def add_not_in_time() -> str:
    world = unable_to_commit(controller_fetch_timeout=20 * SECOND)
    return not_in_time(world, add(world, timeout=SECOND))


def remove_not_in_time() -> str:
    world = unable_to_commit(controller_fetch_timeout=20 * SECOND)
    return not_in_time(world, remove(world, key(world, 102)))


def leadership_lost(body: Callable[[World], Any]) -> str:
    """The leader resigns for want of a majority before the request's own time is over."""
    world = unable_to_commit(controller_request_timeout=10 * SECOND)
    return error(ask(world, 100, body(world)))


def removed() -> str:
    world = with_observers()
    said = error(remove(world, key(world, 102)))
    assert voters(world) == (100, 101)
    return said


def leader_removed() -> str:
    world = with_observers()
    said = error(remove(world, key(world, 100)))
    until(world, lambda: world.quorum.leader is not None and world.quorum.leader.id in (101, 102))
    assert voters(world) == (101, 102)
    return said


def updated() -> str:
    world = with_observers()
    changed = moved(voter(world, 101))
    said = error(update(world, changed))
    assert leads(world).voters.find(changed.key) == changed
    return said


def static(rules: MembershipRules | None = None) -> World:
    return quorum(kraft_version=0, observers=(103,), membership=rules or MembershipRules())


def stranger(world: World, number: int) -> Voter:
    return voter(world, number, STRANGER)


def elsewhere(of: Voter) -> Voter:
    return of._replace(endpoints=(VoterEndpoint("REPLICATION", "controller-103.simulated", 9093),))


def adds(world: World) -> AddRaftVoter:
    return AddRaftVoter(voter(world, 103), world.quorum.context.cluster_id, 30 * SECOND)


def removes(world: World) -> RemoveRaftVoter:
    return RemoveRaftVoter(key(world, 102), world.quorum.context.cluster_id)


def updates(world: World) -> UpdateRaftVoter:
    leader = world.quorum.leader
    assert leader is not None
    return UpdateRaftVoter(moved(voter(world, 102)), leader.epoch, world.quorum.context.cluster_id)


def in_epoch(shift: int) -> str:
    world = with_observers()
    return error(update(world, leader_epoch=leads(world).epoch + shift))


CASES: dict[str, Callable[[], str]] = {
    "testAddVoter": added,
    "testAddVoterInvalidClusterId": lambda: both(lambda cluster: add(with_observers(), cluster_id=cluster)),
    "testAddVoterToNotLeader": lambda: error(add(with_observers(), at=101)),
    "testAddVoterWithMissingDefaultListener": lambda: error(
        add(world := with_observers(), voter=elsewhere(voter(world, 103)))
    ),
    "testAddVoterWithPendingAddVoter": lambda: error(add(pending_add(), 104)),
    "testAddVoterWithoutFencedPreviousLeaders": lambda: not_committed_in_its_epoch(adds),
    "testAddVoterWithKraftVersion0": lambda: error(add(static())),
    "testAddVoterWithExistingVoter": lambda: error(
        add(world := with_observers(), voter=stranger(world, 101))
    ),
    "testAddVoterTimeout": add_not_in_time,
    "testAddVoterWithApiVersionsFromIncorrectNode": wrong_node,
    "testAddVoterInvalidFeatureVersion": old_software,
    "testAddVoterWithLaggingNewVoter": lagging,
    "testAddVoterFailsWhenLosingLeadership": lambda: leadership_lost(adds),
    "testAddVoterWithMissingDirectoryId": lambda: error(
        add(world := with_observers(), voter=voter(world, 103)._replace(key=ReplicaKey(103)))
    ),
    "testAddVoterWithPendingRemoveVoter": lambda: error(add(pending_remove())),
    "testRemoveVoter": removed,
    "testRemoveVoterIsLeader": leader_removed,
    "testRemoveVoterInvalidClusterId": lambda: both(
        lambda cluster: remove(world := with_observers(), key(world, 102), cluster=cluster)
    ),
    "testRemoveVoterToNotLeader": lambda: error(remove(world := with_observers(), key(world, 102), at=101)),
    "testRemoveVoterWithPendingRemoveVoter": lambda: error(
        remove(world := pending_remove(), key(world, 101))
    ),
    "testRemoveVoterWithoutFencedPreviousLeaders": lambda: not_committed_in_its_epoch(removes),
    "testRemoveVoterWithKraftVersion0": lambda: error(remove(world := static(), key(world, 102))),
    "testRemoveVoterWithNoneVoter": lambda: error(remove(with_observers(), ReplicaKey(102, STRANGER))),
    "testRemoveVoterWithNoneVoterId": lambda: error(remove(world := with_observers(), key(world, 103))),
    "testRemoveVoterToEmptyVoterSet": lambda: error(remove(world := quorum((100,)), key(world, 100))),
    "testRemoveVoterTimedOut": remove_not_in_time,
    "testRemoveVoterFailsWhenLosingLeadership": lambda: leadership_lost(removes),
    "testRemoveVoterWithPendingAddVoter": lambda: error(remove(world := pending_add(), key(world, 102))),
    "testUpdateVoter": updated,
    "testUpdateVoterInvalidClusterId": lambda: both(
        lambda cluster: update(with_observers(), cluster_id=cluster)
    ),
    "testUpdateVoterOldEpoch": lambda: in_epoch(-1),
    "testUpdateVoterNewEpoch": lambda: in_epoch(1),
    "testUpdateVoterToNotLeader": lambda: error(update(with_observers(), at=101)),
    "testUpdateVoterWithoutFencedPreviousLeaders": lambda: not_committed_in_its_epoch(updates),
    "testUpdateVoterWithKraftVersion0": lambda: error(
        update(static(DIFFERS_IN_4_3["testUpdateVoterWithKraftVersion0"][1]))
    ),
    "testUpdateVoterWithNoneVoter": lambda: error(update(world := with_observers(), stranger(world, 101))),
    "testUpdateVoterWithNoneVoterId": lambda: error(update(world := with_observers(), voter(world, 103))),
    "testUpdateVoterWithPendingAddVoter": lambda: error(update(pending_add())),
}


def test_every_row_is_run() -> None:
    assert len(ROWS) == 38
    assert {row["id"] for row in ROWS} == CASES.keys()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_the_answer_that_kafka_gives(row: dict[str, Any]) -> None:
    assert CASES[row["id"]]() == row["expectError"]


def test_a_voter_updates_itself_before_kraft_version_1_since_4_1_and_is_known_by_its_node_id() -> None:
    assert error(update(static())) == "NONE"
    world = static()
    assert error(update(world, stranger(world, 101))) == "NONE"
