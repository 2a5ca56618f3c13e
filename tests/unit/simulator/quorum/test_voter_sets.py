"""Voters come and go while the quorum runs: sets that not everybody has read yet, newcomers, lost disks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from backends.simulator.loop import SECOND
from backends.simulator.messages import Done, SetConfig, UpdateFeature
from backends.simulator.quorum.quorum_log import KRAFT_VERSION
from backends.simulator.quorum.raft_log import LeaderChangeMessage, MetadataRecord, RaftLog
from backends.simulator.quorum.raft_messages import AddRaftVoter
from backends.simulator.scenario.files import read
from backends.simulator.simulation import Simulation
from backends.simulator.topology import BrokerSpec
from backends.simulator.world import World
from recovery.membership.quorum import MembershipRules
from recovery.membership.raft_votes import RaftRole
from recovery.membership.voter_changes import RemoveRaftVoter, UpdateRaftVoter
from tests.unit.simulator.quorum.quorums import (
    ask,
    cut,
    described,
    error,
    key,
    knows,
    leads,
    others,
    quorum,
    send,
    until,
    voters,
)


def add(world: World, number: int) -> AddRaftVoter:
    return world.quorum.add(number)._replace(timeout=30 * SECOND)


def remove(world: World, number: int) -> RemoveRaftVoter:
    return RemoveRaftVoter(key(world, number), world.quorum.context.cluster_id)


def held(world: World, number: int) -> tuple[int, ...]:
    return voters(world, number)


def test_a_candidate_of_the_new_set_is_elected_by_voters_that_have_not_read_it() -> None:
    """KIP-853: the leader dies after it has told one voter of the new set. That one needs three of four: it gets
    the votes of one that does not know the set, and of the new voter, which does not know that it is one.
    """
    world = quorum(observers=(103,))
    cut(world, (100,), (102,))
    replies = send(world, 100, add(world, 103))
    until(world, lambda: len(world.quorum.disks[100].log.voters.voters) == 4)
    # What is on its way to 103 is lost.
    cut(world, (100,), (103,))
    until(world, lambda: len(world.quorum.disks[101].log.voters.voters) == 4)
    world.kill_controller(100)
    assert len(held(world, 102)) == len(held(world, 103)) == 3
    leader = leads(world)
    assert leader.id == 101, "the others' logs are shorter"
    assert voters(world) == (100, 101, 102, 103)
    until(world, lambda: held(world, 103) == (100, 101, 102, 103))
    assert not replies


def test_a_set_that_is_truncated_is_undone() -> None:
    world = quorum(observers=(103,))
    cut(world, (100, 103), (101, 102))
    replies = send(world, 100, add(world, 103))
    until(world, lambda: held(world, 103) == (100, 101, 102, 103))
    assert held(world, 100) == (100, 101, 102, 103), "it is in force before it is committed"
    until(world, lambda: bool(replies))
    assert error(replies[0]) == "NOT_LEADER_OR_FOLLOWER"
    world.network.heal_all()
    until(world, lambda: held(world, 100) == held(world, 103) == (100, 101, 102))
    leader = leads(world)
    assert leader.id in (101, 102)
    until(world, lambda: knows(world, 103))
    assert error(ask(world, leader.id, add(world, 103))) == "NONE"


def test_a_leader_that_is_removed_serves_until_the_commit_and_then_resigns() -> None:
    world = quorum(controller_request_timeout=60 * SECOND)
    cut(world, (100,), (101,))
    replies = send(world, 100, remove(world, 100))
    until(world, lambda: held(world, 102) == (101, 102))
    committed = world.quorum.replicas[100].state.high_watermark
    active = world.controllers[100].active
    assert active is not None
    active.handle(SetConfig("foo", "min.insync.replicas", "1"), lambda _reply: None)
    until(world, lambda: knows(world, 102))
    assert world.quorum.leading_epoch(100) == 1, "it goes on serving fetches"
    assert world.quorum.replicas[100].state.high_watermark == committed, "its own log does not count any more"
    world.network.heal_all()
    until(world, lambda: bool(replies))
    assert error(replies[0]) == "NONE"
    until(world, lambda: world.quorum.leading_epoch(100) < 0)
    assert leads(world).id in (101, 102)
    assert world.image.effective_min_isr("foo") == 1
    until(world, lambda: world.quorum.replicas[100].state.role is RaftRole.FOLLOWER and knows(world, 100))
    assert world.quorum.leading_epoch(100) < 0
    assert error(ask(world, leads(world).id, add(world, 100))) == "NONE", "it can be added again"


def test_a_leader_whose_removal_timed_out_leads_on_and_the_brokers_are_fenced_until_it_is_restarted() -> None:
    """As Kafka does (4.3.1): it resigns only if the change is committed while the request still waits."""
    world = quorum(controller_request_timeout=2 * SECOND, controller_fetch_timeout=20 * SECOND)
    until(world, lambda: not world.image.brokers[1].fenced)
    cut(world, (100,), (101, 102))
    replies = send(world, 100, remove(world, 100))
    until(world, lambda: bool(replies))
    assert error(replies[0]) == "REQUEST_TIMED_OUT"
    world.network.heal_all()
    until(world, lambda: held(world, 101) == held(world, 102) == (101, 102))
    until(world, lambda: world.image.brokers[1].fenced)
    assert world.quorum.leading_epoch(100) == 1
    world.kill_controller(100)
    world.start_controller(100)
    until(world, lambda: not world.image.brokers[1].fenced)
    assert leads(world).id in (101, 102)


@pytest.mark.parametrize("seed", range(3))
def test_a_removed_voter_that_runs_goes_on_as_an_observer_and_never_stands(seed: int) -> None:
    world = quorum(seed=seed)
    assert error(ask(world, 100, remove(world, 102))) == "NONE"
    cut(world, (102,), others(world, 102))
    world.loop.run_for(20 * SECOND)
    world.network.heal_all()
    until(world, lambda: knows(world, 102))
    assert leads(world).epoch == 1
    shown = described(world)
    assert [row.key.id for row in shown.observer_progress if row.key.id >= 100] == [102]


def test_a_newcomer_begins_with_the_snapshot_and_the_voters_in_it() -> None:
    world = quorum(metadata_records_retained=10)
    world.loop.run_for(60 * SECOND)
    assert leads(world).log.start > 0
    world.start_controller(103)
    until(world, lambda: knows(world, 103))
    assert any("loads the snapshot" in line.what for line in world.history.lines)
    assert held(world, 103) == (100, 101, 102)
    assert error(ask(world, 100, add(world, 103))) == "NONE"
    world.kill_controller(100)
    assert leads(world).log.newest_payload(10**9)[1] is not None


def test_a_new_disk_makes_an_observer_of_a_voter_and_is_added_after_its_old_self_is_removed() -> None:
    world = quorum()
    old = key(world, 102)
    world.break_controller_disk(102)
    until(world, lambda: 102 not in world.controllers)
    world.replace_controller_disk(102)
    world.start_controller(102)
    until(world, lambda: knows(world, 102))
    assert key(world, 102) != old
    assert old in leads(world).voters.keys
    refused = ask(world, 100, add(world, 102))
    assert error(refused) == "DUPLICATE_VOTER"
    assert error(ask(world, 100, RemoveRaftVoter(old, world.quorum.context.cluster_id))) == "NONE"
    assert error(ask(world, 100, add(world, 102))) == "NONE"
    assert key(world, 102) in leads(world).voters.keys


def test_where_the_text_of_kip_853_holds_the_new_disk_is_added_first() -> None:
    world = quorum(membership=MembershipRules(duplicate_ids=True))
    old = key(world, 102)
    world.kill_controller(102)
    world.replace_controller_disk(102)
    world.start_controller(102)
    until(world, lambda: knows(world, 102))
    assert error(ask(world, 100, add(world, 102))) == "NONE"
    assert voters(world) == (100, 101, 102, 102)
    assert error(ask(world, 100, RemoveRaftVoter(old, world.quorum.context.cluster_id))) == "NONE"
    assert leads(world).voters.keys[-1] == key(world, 102)


def test_an_empty_disk_never_votes_in_the_place_of_the_one_that_was_lost() -> None:
    """Two of three disks lost and replaced: without KIP-853 the two empty ones would elect each other."""
    world = quorum()
    for number in (101, 102):
        world.kill_controller(number)
        world.replace_controller_disk(number)
    world.kill_controller(100)
    for number in (101, 102):
        world.start_controller(number)
    world.loop.run_for(30 * SECOND)
    assert world.quorum.leader is None
    world.start_controller(100)
    world.loop.run_for(30 * SECOND)
    assert world.quorum.leader is None, "one voter of three is no majority"


def test_auto_join_removes_the_old_disk_and_adds_the_new_one() -> None:
    simulation = Simulation(read("controller-auto-join"), 1)
    simulation.advance_to(50 * SECOND)
    world = simulation.world
    before = key(world, 102)
    assert before in leads(world).voters.keys
    simulation.advance_to(90 * SECOND)
    assert before not in leads(world).voters.keys
    assert key(world, 102) in leads(world).voters.keys


def test_a_controller_with_auto_join_has_to_be_stopped_before_it_is_removed() -> None:
    world = quorum(auto_join=True)
    assert error(ask(world, 100, remove(world, 102))) == "NONE"
    leader = leads(world)
    assert leader.leadership is not None
    busy = leader.leadership.changes
    until(world, lambda: held(world, 102) == (100, 101, 102) and busy.quorum().voters_committed)
    world.kill_controller(102)
    assert error(ask(world, 100, remove(world, 102))) == "NONE"
    world.loop.run_for(30 * SECOND)
    assert voters(world) == (100, 101)


def test_from_two_voters_one_that_is_dead_cannot_be_removed() -> None:
    """A set of two stands no failure: the change would have to be committed by the one that is dead."""
    world = quorum((100, 101))
    world.kill_controller(101)
    reply = ask(world, 100, remove(world, 100))
    assert error(reply) in ("REQUEST_TIMED_OUT", "NOT_LEADER_OR_FOLLOWER")


def test_a_quorum_grows_from_one_voter_to_three_and_back() -> None:
    world = quorum((100,), observers=(101, 102))
    for number in (101, 102):
        assert error(ask(world, 100, add(world, number))) == "NONE"
    assert voters(world) == (100, 101, 102)
    for number in (101, 102):
        assert error(ask(world, 100, remove(world, number))) == "NONE"
    assert voters(world) == (100,)
    world.kill_controller(100)
    world.start_controller(100)
    assert leads(world).id == 100, "it elects itself"


def test_a_voter_that_moved_makes_itself_known() -> None:
    world = quorum()
    world.kill_controller(102)
    world.quorum.configure(102, port=9999)
    world.start_controller(102)

    def known_port() -> int:
        voter = world.quorum.disks[100].log.voters.find(key(world, 102))
        return 0 if voter is None else voter.endpoints[0].port

    until(world, lambda: known_port() == 9999)
    shown = described(world)
    assert [e.port for voter in shown.voters.voters if voter.key.id == 102 for e in voter.endpoints] == [9999]


def test_endpoints_that_nobody_can_reach_make_the_quorum_unavailable_for_good() -> None:
    world = quorum()
    for number in (101, 102):
        own = world.quorum.context.hosts[number].voter(key(world, number))
        wrong = own._replace(endpoints=(own.endpoints[0]._replace(port=1),))
        body = UpdateRaftVoter(wrong, 1, world.quorum.context.cluster_id)
        assert error(ask(world, 100, body)) == "NONE"
    until(world, lambda: knows(world, 101) and knows(world, 102))
    world.kill_controller(100)
    world.loop.run_for(60 * SECOND)
    assert world.quorum.leader is None


def test_voters_that_were_never_written_are_written_by_the_first_leader() -> None:
    """The bootstrap snapshot's set is then in every voter's log, whatever each was formatted with (KIP-853)."""
    world = World(quorum().topology, 1)  # unwatched: these logs are other ones than those it began with
    formatted = leads(world).voters
    for number in (100, 101, 102):
        world.kill_controller(number)
        disk = world.quorum.disks[number]
        kept = [
            entry
            for entry in disk.log.entries
            if isinstance(entry.body, (LeaderChangeMessage, MetadataRecord))
        ]
        disk.log = RaftLog(formatted, 1)
        disk.log.append(kept)
        world.start_controller(number)
    assert world.quorum.disks[101].log.voters_offset is None
    leader = leads(world)
    assert leader.log.voters_offset is not None
    assert leader.voters == formatted
    until(world, lambda: knows(world, 101) and knows(world, 102))
    assert world.quorum.disks[102].log.voters_offset == leader.log.voters_offset


# kraft.version.


def upgrade(world: World, number: int = 100) -> Any:
    replies = send(world, number, UpdateFeature(KRAFT_VERSION, 1))
    until(world, lambda: bool(replies))
    return replies[0]


def test_kraft_version_1_gives_static_voters_their_directory_ids() -> None:
    world = quorum(kraft_version=0, observers=(103,))
    assert [key.directory_id for key in leads(world).voters.keys] == ["", "", ""]
    early = upgrade(world)
    assert "directory ids" in str(early.refusal), "voters have not told of themselves yet"
    world.loop.run_for(5 * SECOND)
    assert upgrade(world) == Done(None)
    assert leads(world).voters.keys == tuple(key(world, number) for number in (100, 101, 102))
    assert error(ask(world, 100, add(world, 103))) == "NONE"
    until(world, lambda: knows(world, 102))
    assert world.quorum.disks[102].log.kraft_version == 1
    assert upgrade(world) == Done(None), "it is the level already"


def test_after_the_upgrade_nothing_is_listed_of_nameless_voters_nor_of_disks_that_they_had() -> None:
    """As on a real quorum: each voter once, by its directory, and no observer beside it."""
    world = quorum(kraft_version=0)
    world.kill_controller(102)
    world.quorum.replace_disk(102)
    world.start_controller(102)
    world.loop.run_for(5 * SECOND)
    assert upgrade(world) == Done(None)
    shown = described(world)
    assert [row.key.id for row in shown.observer_progress] == [1, 2, 3]
    assert all(row.key.directory_id for row in shown.voter_progress)
    world.loop.run_for(5 * SECOND)
    assert [row.last_fetch_ms > 9_000 for row in described(world).voter_progress] == [True] * 3


def test_kraft_version_1_needs_software_that_supports_it() -> None:
    world = quorum(kraft_version=0)
    world.quorum.configure(102, kraft_versions=(0, 0))
    world.loop.run_for(5 * SECOND)
    assert "do not support" in str(upgrade(world).refusal)


def test_kraft_version_1_needs_brokers_that_support_it() -> None:
    made = quorum(kraft_version=0).topology
    old = BrokerSpec(3, kraft_versions=(0, 0))
    world = World(replace(made, brokers=(*made.brokers[:2], old)), 1)
    world.loop.run_for(5 * SECOND)
    assert "brokers 3 do not support kraft.version 1" in str(upgrade(world).refusal)


def test_every_new_leader_of_static_voters_is_told_again() -> None:
    world = quorum(kraft_version=0)
    world.loop.run_for(5 * SECOND)
    world.kill_controller(100)
    world.start_controller(100)
    leader = leads(world)
    world.loop.run_for(5 * SECOND)
    assert upgrade(world, leader.id) == Done(None)


# What the leader shows.


def test_the_quorum_is_shown_with_lags_that_make_sense() -> None:
    world = quorum(observers=(103,))
    world.loop.run_for(10 * SECOND)
    shown = described(world)
    now = world.loop.now // 1000
    rows = (*shown.voter_progress, *shown.observer_progress)
    assert [row.key.id for row in rows] == [100, 101, 102, 1, 2, 3, 103]
    end = leads(world).log.end
    for row in rows:
        assert end - 2 <= row.log_end_offset <= end
        assert 0 <= now - row.last_fetch_ms <= 1000
        assert 0 <= now - row.last_caught_up_ms <= 1500
        assert row.key.directory_id


def test_a_dead_observer_is_shown_for_some_minutes_and_then_forgotten() -> None:
    world = quorum(observers=(103,))
    world.kill_controller(103)

    def shown() -> list[int]:
        told = described(world)
        return [row.key.id for row in told.observer_progress]

    world.loop.run_for(240 * SECOND)
    assert 103 in shown()
    world.loop.run_for(120 * SECOND)
    assert 103 not in shown()
