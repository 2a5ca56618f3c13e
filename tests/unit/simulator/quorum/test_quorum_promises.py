"""Each promise of the quorum is shown to be able to fail: the rule it guards is broken, and some seed meets it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

import pytest

from backends.simulator.invariants.checker import InvariantBroken
from backends.simulator.invariants.promises import QuorumPromise
from backends.simulator.loop import SECOND
from backends.simulator.quorum import raft_elections, voter_changes
from backends.simulator.quorum.raft_leader import RaftLeader
from backends.simulator.quorum.raft_log import RaftLog
from backends.simulator.quorum.voter_changes import VoterChanges
from backends.simulator.world import World
from benchmarks.soak.quorum import FAULTS
from recovery.membership import voters as rules
from recovery.membership.quorum import Quorum, VoterChangeRefusal
from recovery.membership.raft_votes import Elector, RaftLogEnd, Vote, VoteRequest, vote
from recovery.membership.voter_changes import RemoveRaftVoter, remove_voter
from recovery.membership.voters import ReplicaKey, VoterSet
from testbed.histories.random_histories import prepare, run
from tests.unit.simulator.quorum.quorums import ask, cut, key, knows, quorum, send, until

SEEDS = 60


def _caught(promise: QuorumPromise, seeds: int = SEEDS) -> None:
    """Some seed finds it, where nothing but controllers fail."""
    for seed in range(seeds):
        world, checker = prepare(seed)
        # Brokers may stumble over metadata that should not be: the promise is broken before that.
        with suppress(ValueError):
            run(world, seed, 40, FAULTS)
        checker.settle()
        if promise in [found.name for found in checker.broken]:
            print(f"{promise.name} caught with seed {seed}, the {seed + 1}. that was tried")
            return
    raise AssertionError(f"{seeds} seeds did not meet: {promise}")


def _caught_in(promise: QuorumPromise, scenario: Callable[[World], None], seeds: int = 5) -> None:
    """One of the seeds stops with the promise in what happens to a small quorum."""
    for seed in range(seeds):
        try:
            scenario(quorum(seed=seed, controller_request_timeout=60 * SECOND))
        except InvariantBroken as stopped:
            if stopped.broken.name == promise:
                print(f"{promise.name} caught with seed {seed}, the {seed + 1}. that was tried")
                return
    raise AssertionError(f"{seeds} seeds did not meet: {promise}")


@pytest.mark.long
def test_a_vote_that_is_forgotten_makes_two_leaders_of_one_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(elector: Elector, request: VoteRequest) -> Vote:
        outcome = vote(elector._replace(voted=None, leader_known=False), request)
        return outcome._replace(elector=outcome.elector._replace(voted=elector.voted))

    monkeypatch.setattr(raft_elections, "vote", forgetful)
    _caught(QuorumPromise.ONE_LEADER_AN_EPOCH)


@pytest.mark.long
def test_a_vote_for_a_shorter_log_loses_what_was_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    def generous(elector: Elector, request: VoteRequest) -> Vote:
        outcome = vote(elector._replace(log_end=RaftLogEnd(0, 0)), request)
        return outcome._replace(elector=outcome.elector._replace(log_end=elector.log_end))

    monkeypatch.setattr(raft_elections, "vote", generous)
    _caught(QuorumPromise.COMMITTED_KEPT)


def test_a_leader_that_never_says_where_the_logs_part_leaves_logs_that_do_not_match(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def agreeable(_log: RaftLog, epoch: int) -> RaftLogEnd:
        return RaftLogEnd(epoch, 1 << 40)

    monkeypatch.setattr(RaftLog, "end_of_epoch", agreeable)
    _caught(QuorumPromise.LOG_MATCHING)


def test_what_one_voter_holds_is_not_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(_voters: VoterSet, ends: Mapping[ReplicaKey, int]) -> int:
        return max(ends.values(), default=0)

    monkeypatch.setattr(rules, "high_watermark", hasty)
    _caught(QuorumPromise.MAJORITY_COMMITS)


def test_a_high_watermark_that_falls_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    advance = RaftLeader._advance

    def falling(leading: RaftLeader) -> None:
        leading.state.high_watermark = 0
        advance(leading)

    monkeypatch.setattr(RaftLeader, "_advance", falling)
    _caught_in(QuorumPromise.HIGH_WATERMARK_RISES, lambda world: world.loop.run_for(5 * SECOND))


def _count_all(_voters: VoterSet, ends: Mapping[ReplicaKey, int]) -> int:
    """The majority by number, whoever holds it."""
    return sorted(ends.values(), reverse=True)[_voters.majority - 1]


def test_an_observer_that_is_counted_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = RaftLeader.ends

    def everybody(leading: RaftLeader) -> dict[ReplicaKey, int]:
        seen = {key: held.offset for key, held in leading.progress.everybody() if key.id >= 100}
        return {**seen, **ends(leading)}

    monkeypatch.setattr(RaftLeader, "ends", everybody)
    monkeypatch.setattr(rules, "high_watermark", _count_all)

    def scenario(world: World) -> None:
        world.start_controller(103)
        world.loop.run_for(5 * SECOND)
        cut(world, (100,), (101, 102))
        world.loop.run_for(2 * SECOND)

    _caught_in(QuorumPromise.OBSERVER_NEVER_COUNTS, scenario)


def _leader_removed_that_only_102_hears(world: World) -> None:
    world.loop.run_for(SECOND)
    cut(world, (100,), (101,))
    send(world, 100, RemoveRaftVoter(key(world, 100), world.quorum.context.cluster_id))
    world.loop.run_for(2 * SECOND)


def test_a_removed_leader_that_counts_itself_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = RaftLeader.ends

    def itself_too(leading: RaftLeader) -> dict[ReplicaKey, int]:
        return {**ends(leading), leading.state.key: leading.state.log.end}

    monkeypatch.setattr(RaftLeader, "ends", itself_too)
    monkeypatch.setattr(rules, "high_watermark", _count_all)
    _caught_in(QuorumPromise.REMOVED_LEADER_NOT_COUNTED, _leader_removed_that_only_102_hears)


def test_a_second_change_before_the_first_is_committed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def impatient(of: Quorum, request: RemoveRaftVoter) -> VoterSet | VoterChangeRefusal:
        return remove_voter(replace(of, change_pending=False, voters_offset=None), request)

    monkeypatch.setattr(voter_changes, "remove_voter", impatient)

    def scenario(world: World) -> None:
        cut(world, (100,), (101, 102))
        for number in (101, 102):
            send(world, 100, RemoveRaftVoter(key(world, number), world.quorum.context.cluster_id))
        world.loop.run_for(2 * SECOND)

    _caught_in(QuorumPromise.ONE_CHANGE_AT_A_TIME, scenario)


def test_a_change_of_two_voters_at_once_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is both: more than one voter, and sets whose majorities need not meet."""

    def sweeping(of: Quorum, request: RemoveRaftVoter) -> VoterSet:
        return VoterSet(tuple(voter for voter in of.voters.voters if voter.key == request.key))

    monkeypatch.setattr(voter_changes, "remove_voter", sweeping)

    def scenario(world: World) -> None:
        ask(world, 100, RemoveRaftVoter(key(world, 100), world.quorum.context.cluster_id))

    _caught_in(QuorumPromise.ONE_CHANGE_AT_A_TIME, scenario)


def test_committed_sets_without_a_voter_in_common_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def sweeping(of: Quorum, request: RemoveRaftVoter) -> VoterSet:
        return VoterSet(tuple(voter for voter in of.voters.voters if voter.key == request.key))

    monkeypatch.setattr(voter_changes, "remove_voter", sweeping)
    monkeypatch.setattr(
        "backends.simulator.invariants.quorum_promises._differences", lambda _before, _after: 1
    )  # the other promise would stop the run first

    def scenario(world: World) -> None:
        ask(world, 100, RemoveRaftVoter(key(world, 100), world.quorum.context.cluster_id))

    _caught_in(QuorumPromise.VOTER_SETS_OVERLAP, scenario)


def test_a_change_before_the_epoch_is_committed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug of single-server changes: the new leader holds a set that its predecessor did not commit."""
    known = VoterChanges.quorum

    def hasty(of: VoterChanges) -> Quorum:
        found = known(of)
        return replace(found, high_watermark=found.log_end_offset)

    monkeypatch.setattr(VoterChanges, "quorum", hasty)

    def scenario(world: World) -> None:
        world.start_controller(103)
        until(world, lambda: knows(world, 103))
        cut(world, (100,), (102,))
        send(world, 100, world.quorum.add(103))
        until(world, lambda: len(world.quorum.disks[100].log.voters.voters) == 4)
        cut(world, (100,), (103,))
        until(world, lambda: len(world.quorum.disks[101].log.voters.voters) == 4)
        world.kill_controller(100)
        until(world, lambda: world.quorum.leader is not None)
        world.send_to_quorum(RemoveRaftVoter(key(world, 102), world.quorum.context.cluster_id))
        world.loop.run_for(2 * SECOND)

    _caught_in(QuorumPromise.ONE_CHANGE_AT_A_TIME, scenario)
