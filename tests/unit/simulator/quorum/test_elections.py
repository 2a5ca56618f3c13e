"""Controllers die, are cut off and come back: the quorum elects, and what is committed stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.simulator.loop import SECOND
from backends.simulator.messages import NotController, SetConfig
from backends.simulator.quorum.raft_messages import FetchMetadata, RaftVote, VoteReply
from backends.simulator.world import World
from recovery.membership.raft_votes import RaftLogEnd, RaftRole, VoteRequest
from tests.unit.simulator.quorum.quorums import (
    announced,
    cut,
    key,
    leads,
    nodes,
    others,
    quorum,
    send,
    until,
    voters,
)


def min_isr(world: World) -> int:
    return world.image.effective_min_isr("foo")


def configure(world: World, number: int, value: str) -> list[object]:
    """Somebody changes min ISR at that controller; the answer comes into the list."""
    replies: list[object] = []
    active = world.controllers[number].active
    assert active is not None
    active.handle(SetConfig("foo", "min.insync.replicas", value), replies.append)
    return replies


@pytest.mark.parametrize("seed", range(5))
def test_when_the_leader_dies_another_voter_goes_on_with_everything_that_was_committed(seed: int) -> None:
    world = quorum(seed=seed)
    replies = configure(world, 100, "1")
    until(world, lambda: bool(replies))
    world.kill_controller(100)
    leader = leads(world)
    assert leader.id in (101, 102)
    assert min_isr(world) == 1
    world.kill_broker(3)
    until(world, lambda: world.image.brokers[3].fenced)
    world.start_controller(100)
    until(world, lambda: world.quorum.replicas[100].state.role is RaftRole.FOLLOWER)
    assert leads(world) is leader, "who comes back does not disturb the leader"


def test_a_leader_without_a_majority_resigns_and_what_it_wrote_alone_is_lost() -> None:
    world = quorum()
    cut(world, (100,), others(world, 100))
    replies = configure(world, 100, "1")
    until(world, lambda: world.quorum.leading_epoch(100) < 0)
    assert world.loop.now < 6 * SECOND
    assert replies, "whoever waits is told that it may not have happened"
    new = leads(world)
    configure(world, new.id, "3")
    world.network.heal_all()
    until(world, lambda: world.quorum.disks[100].log.last_epoch == new.epoch)
    assert min_isr(world) == 3
    assert any("truncates" in line.what and line.node == "controller-100" for line in world.history.lines)


def test_what_earlier_epochs_wrote_is_not_committed_before_a_record_of_the_leaders_own() -> None:
    """A majority holds it, and a later leader may still truncate it (Raft, 5.4.2)."""
    world = quorum()
    leadership = leads(world).leadership
    assert leadership is not None
    state = leadership.state
    until(world, lambda: state.high_watermark == state.log.end)
    # As it stands for a new leader: everything was written before its epoch, and the last record is not committed.
    leadership.first = end = state.log.end
    state.high_watermark = end - 1
    fetch = FetchMetadata("", key(world, 101), state.epoch, RaftLogEnd(state.log.last_epoch, end))
    leadership.fetch(fetch, lambda _answer: None)
    assert state.high_watermark == end - 1


def test_two_leaders_at_once_do_not_both_commit() -> None:
    """The old one does not know yet; its epoch is older, and nobody of a majority listens to it."""
    world = quorum(controller_election_timeout=SECOND // 10)
    cut(world, (100,), others(world, 100))
    until(world, lambda: len([r for r in world.quorum.replicas.values() if r.leadership is not None]) == 2)
    old = configure(world, 100, "1")
    new = leads(world)
    assert new.id != 100
    answered = configure(world, new.id, "3")
    until(world, lambda: bool(answered))
    assert not old
    assert min_isr(world) == 3


def test_a_voter_that_was_cut_off_comes_back_without_an_election() -> None:
    """KIP-996: it asks before it raises its epoch, and those who hear the leader say no."""
    world = quorum()
    cut(world, (102,), others(world, 102))
    world.loop.run_for(30 * SECOND)
    assert world.quorum.disks[102].epoch == 1
    world.network.heal_all()
    until(world, lambda: world.quorum.disks[102].log.end == world.quorum.disks[100].log.end)
    assert leads(world).id == 100
    assert leads(world).epoch == 1


def test_a_voter_that_hears_nothing_but_is_heard_does_not_disturb_the_leader() -> None:
    world = quorum()
    world.network.cut(nodes((100,)), nodes((102,)), one_way=True)
    world.loop.run_for(30 * SECOND)
    assert leads(world).id == 100
    assert leads(world).epoch == 1


def test_two_of_three_voters_lost_stops_the_quorum_until_one_is_back() -> None:
    world = quorum()
    world.kill_controller(101)
    world.kill_controller(102)
    until(world, lambda: world.quorum.leader is None)
    world.kill_broker(3)
    world.loop.run_for(60 * SECOND)
    assert world.quorum.leader is None
    assert not world.image.brokers[3].fenced, "nobody can write that broker 3 is gone"
    world.start_controller(102)
    leads(world)
    until(world, lambda: world.image.brokers[3].fenced)


def test_a_vote_survives_a_crash() -> None:
    world = quorum()
    world.kill_controller(100)
    new = leads(world)
    voter = next(number for number in (101, 102) if number != new.id)
    world.kill_controller(new.id)
    voted = world.quorum.disks[voter].voted
    epoch = world.quorum.disks[voter].epoch
    assert voted is not None
    world.kill_controller(voter)
    world.start_controller(voter)
    request = VoteRequest(
        key(world, 103), epoch, RaftLogEnd(epoch - 1, 10_000), world.quorum.context.cluster_id
    )
    replies = send(world, voter, RaftVote(request))
    until(world, lambda: bool(replies))
    assert isinstance(replies[0], VoteReply)
    assert not replies[0].granted, "it has voted for another in that epoch"
    assert world.quorum.disks[voter].voted == voted


def test_a_leader_that_restarts_has_resigned() -> None:
    world = quorum()
    world.kill_controller(100)
    world.start_controller(100)
    assert world.quorum.replicas[100].state.role is RaftRole.RESIGNED
    assert leads(world).epoch > 1


def test_the_leader_hands_over_when_it_is_told_to() -> None:
    for seed in range(10):
        world = quorum(seed=seed)
        world.failover(102)
        until(world, lambda: world.quorum.leading_epoch(102) > 0)  # noqa: B023  # run before the next one
        assert leads(world).epoch == 2, "nobody else stood"


def test_brokers_find_the_new_leader_and_miss_nothing() -> None:
    world = quorum()
    replies = configure(world, 100, "1")
    until(world, lambda: bool(replies))
    world.kill_controller(100)
    leader = leads(world)
    replies = configure(world, leader.id, "3")
    until(world, lambda: all(b.state.image.effective_min_isr("foo") == 3 for b in world.brokers.values()))
    world.loop.run_for(5 * SECOND)
    assert leader.leadership is not None
    assert leader.leadership.announced
    observers = {row.key.id for row in leader.leadership.changes.quorum().progress}
    assert observers >= {1, 2, 3}


def test_a_controller_of_an_earlier_leadership_writes_nothing_any_more() -> None:
    world = quorum((100,))
    stale = world.controllers[100].active
    assert stale is not None
    world.kill_controller(100)
    world.start_controller(100)
    leads(world)
    replies: list[object] = []
    stale.handle(SetConfig("foo", "min.insync.replicas", "3"), replies.append)
    assert replies == [NotController(None)]
    world.loop.run_for(5 * SECOND)
    assert min_isr(world) == 2


def test_a_leader_whose_disk_fails_stops_with_the_write_and_what_it_was_asked_is_not_answered() -> None:
    world = quorum()
    active = world.controllers[100].active
    assert active is not None
    world.break_controller_disk(100)
    replies: list[object] = []
    active.handle(SetConfig("foo", "min.insync.replicas", "1"), replies.append)
    assert 100 not in world.controllers
    assert replies == [NotController(None)]
    assert leads(world).id != 100
    assert min_isr(world) == 2


def test_the_same_seed_gives_the_same_history() -> None:
    def run(seed: int) -> str:
        world = quorum(seed=seed, observers=(103,))
        world.kill_controller(100)
        leads(world)
        world.send_to_quorum(world.quorum.add(103))
        world.loop.run_for(20 * SECOND)
        return world.history.digest()

    assert run(3) == run(3)
    assert run(3) != run(4)


def test_no_more_happens_in_an_idle_quorum_than_a_no_op_every_half_second() -> None:
    """Some ten steps a second for three voters: scenarios with many brokers must not notice it."""
    made = replace(quorum().topology, brokers=(), topics=())
    world = World(made, 1)
    world.loop.run_for(10 * SECOND)
    before, end = world.loop.steps, leads(world).log.end
    world.loop.run_for(100 * SECOND)
    assert (world.loop.steps - before) / 100 < 16
    assert leads(world).log.end - end == 200


def test_a_log_is_kept_short_by_snapshots_and_stays_the_same_everywhere() -> None:
    world = quorum(metadata_records_retained=20)
    for value in ("1", "2", "3") * 10:
        replies = configure(world, 100, value)
        until(world, lambda: bool(replies))  # noqa: B023  # run before the next one
        world.loop.run_for(SECOND)
    for disk in (world.quorum.disks[number] for number in voters(world)):
        assert disk.log.start > 0
        assert len(disk.log.entries) <= 41
    assert announced(leads(world))
