"""What a description of the quorum comes to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recovery.membership.catch_up_rate import CatchUpRate
from recovery.membership.directory_ids import directory_id, directory_uuid
from recovery.membership.preflight import LivenessLimits
from recovery.membership.quorum import QuorumReplica
from recovery.membership.quorum_health import MemberState, all_fetched, committing, health, with_change_known
from recovery.membership.quorum_without_leader import QuorumWithoutLeader, VoterHost
from recovery.membership.replica_lookup import NotChosen, newcomer, voter_of
from recovery.membership.voters import ReplicaKey
from tests.unit.membership.quorums import NOW, key, progress, quorum, voters


def test_a_dead_voter_is_silent_a_removed_one_a_ghost_and_a_slow_one_behind() -> None:
    ghost, slow = key(9), key(8)
    of = quorum(1, 2, 3, down=(3,))
    rows = (*of.progress, progress(ghost, silent_ms=60_000), progress(slow, behind=5_000))
    found = health(replace(of, progress=rows), LivenessLimits(), {1, 2, 3, 8, 9})
    states = {m.key: m.state for m in found.members}
    assert states[key(3)] is MemberState.SILENT
    assert states[ghost] is MemberState.GHOST
    assert states[slow] is MemberState.BEHIND
    assert found.strength.spare == 0
    assert not found.well


def test_a_voter_that_the_leader_has_not_heard_of_is_listed_and_stands_first() -> None:
    of = quorum(1, 2, 3)
    unheard = replace(of, progress=tuple(held for held in of.progress if held.key != key(3)))
    found = health(unheard, LivenessLimits())
    first = found.silent_first[0]
    assert (first.key, first.state, first.lag, first.fetch_ms) == (key(3), MemberState.SILENT, None, None)
    assert [m.key for m in found.dead_voters] == [key(3)]


def test_a_former_disk_of_a_voter_is_a_ghost_at_once_and_no_trouble() -> None:
    old = ReplicaKey(3, "former")
    of = quorum(1, 2, 3)
    found = health(
        replace(of, progress=(*of.progress, progress(old, silent_ms=5_000))), LivenessLimits(), {1, 2, 3}
    )
    assert found.duplicates == (3,)
    assert [m.key for m in found.ghosts] == [old]
    assert found.well


def test_a_broker_that_died_does_not_fetch_and_is_no_dead_voter_and_no_ghost() -> None:
    of = quorum(1, 2, 3)
    rows = (*of.progress, progress(key(7), silent_ms=60_000))
    found = health(replace(of, progress=rows), LivenessLimits(), {1, 2, 3})
    assert [m.key for m in found.dead_brokers] == [key(7)]
    assert not found.ghosts
    assert not found.dead_voters
    assert found.well


def test_an_observer_is_a_broker_only_where_the_controllers_do_not_list_it() -> None:
    of = quorum(1, 2, 3, observers=(key(7),))
    assert health(of, LivenessLimits(), {1, 2, 3}).members[-1].role == "broker"
    assert health(of, LivenessLimits(), {1, 2, 3, 7}).members[-1].role == "observer"
    assert health(of, LivenessLimits(), None).members[-1].role == "observer"


def test_one_reading_suffices_where_a_majority_was_caught_up_a_moment_ago() -> None:
    assert committing(quorum(1, 2, 3, down=(3,)))
    assert not committing(quorum(1, 2, 3, down=(2, 3)))
    assert not committing(quorum(1, 2, 3, high_watermark=None))


def test_a_set_is_committed_once_the_high_watermark_has_passed_where_the_log_ended() -> None:
    first = quorum(1, 2, 3, change_pending=None, voters_offset=None, high_watermark=499)
    still = replace(first, log_end_offset=501)
    assert with_change_known(first, still) is None
    later = replace(first, high_watermark=500, log_end_offset=501)
    known = with_change_known(first, later)
    assert known is not None
    assert known.change_pending is False
    other = replace(later, voters=voters(1, 2))
    changed = with_change_known(first, other)
    assert changed is not None
    assert changed.change_pending is True
    assert with_change_known(first, replace(later, leader_epoch=8)) is None


def test_who_has_not_fetched_since_the_first_reading_does_not_count() -> None:
    first = quorum(1, 2, 3)
    later = replace(first, now_ms=NOW + 400)
    assert not all_fetched(replace(first, now_ms=NOW + 100), later)
    assert all_fetched(first, later)


def test_the_newcomer_is_the_one_that_fetches() -> None:
    old, new = ReplicaKey(3, "old"), ReplicaKey(3, "new")
    of = quorum(1, 2)
    rows = (*of.progress, progress(old, silent_ms=60_000), progress(new))
    both = replace(of, progress=rows)
    assert newcomer(both, 3, None) == new
    assert newcomer(both, 3, "old") == old
    twice = replace(of, progress=(*of.progress, progress(old), progress(new)))
    with pytest.raises(NotChosen, match=r"give .*directory-id"):
        newcomer(twice, 3, None)
    for node, said in ((9, "does not fetch"), (1, "is a voter already")):
        with pytest.raises(NotChosen, match=said):
            newcomer(of, node, None)
    with pytest.raises(NotChosen, match="stopped fetching"):
        newcomer(replace(of, progress=(*of.progress, progress(old, silent_ms=60_000))), 3, None)
    with pytest.raises(NotChosen, match="VOTER_NOT_FOUND"):
        voter_of(of, 2, "typo")


def test_directory_ids_are_taken_in_both_forms() -> None:
    kafka = "Oyj3ZnJs9J7nsBpCRGW9Kg"
    uuid = directory_uuid(kafka)
    assert uuid == "3b28f766-726c-f49e-e7b0-1a424465bd2a"
    assert directory_id(uuid) == directory_id(f" {kafka}== ") == kafka
    assert directory_uuid("") == ""
    for wrong in ("", "abc", "AAAAAAAAAAAAAAAAAAAAAA", "Oyj3ZnJs9J7nsBpCRGW9Kh", uuid[:-1]):
        with pytest.raises(ValueError, match=r"directory|keeps for itself"):
            directory_id(wrong)


def test_a_lost_majority_says_how_many_must_come_back_the_fullest_first() -> None:
    hosts = (
        VoterHost(key(1), "h1:9093", True, "", 90, 80),
        VoterHost(key(2), "h2:9093", False, "refused", 95, -1),
        VoterHost(key(3), "h3:9093", False, "refused", 99, -1),
    )
    found = QuorumWithoutLeader("c", hosts, True, "then")
    assert found.missing == 1
    assert [host.key.id for host in found.down] == [3, 2]
    assert "Bring back 1 of: 3 (h3:9093), 2 (h2:9093)" in found.sentence
    assert "nobody leads" in QuorumWithoutLeader("c", (hosts[0],), True, "").sentence
    assert "name one with --bootstrap-controller" in QuorumWithoutLeader("c", (), False, "").sentence


def test_an_estimate_needs_something_that_shrinks() -> None:
    assert CatchUpRate().with_sample(0, 100).seconds_left is None
    assert CatchUpRate().with_sample(0, 100).with_sample(1, 100).seconds_left is None
    assert CatchUpRate().with_sample(0, 100).with_sample(2, 60).seconds_left == 3.0


def test_a_controller_on_a_new_disk_may_be_no_voter_though_enough_answer() -> None:
    """No call tells which disk a controller has: that it reports no metadata is all that is seen."""
    up = VoterHost(key(1), "h1:9093", True, "", -1, 42)
    new = VoterHost(key(2), "h2:9093", True, "", -1, -1)
    down = VoterHost(key(3), "h3:9093", False, "refused", -1, -1)
    doubtful = QuorumWithoutLeader("c", (up, new, down), False, "").sentence
    assert "2 reports no metadata: it started after the leader was lost, or its disk is new. With" in doubtful
    assert "With a new disk, 1 of 3 voters answer and 2 are needed" in doubtful
    assert doubtful.endswith("Bring 3 back with the disk that it had")
    assert "Compare directory.id in meta.properties" in doubtful
    enough = QuorumWithoutLeader("c", (up, up._replace(key=key(4)), new), False, "").sentence
    assert "2 reports no metadata" not in enough
    assert "Bring" not in enough, "nobody is down"
    # Where nobody tells any metadata, that one does not is no sign of anything.
    assert "2 reports no metadata" not in QuorumWithoutLeader("c", (new, new, down), False, "").sentence


def test_static_voters_that_are_also_listed_without_a_directory_are_no_ghosts() -> None:
    """The leader lists a static voter by its id alone until the first fetch tells its directory, and after that."""
    of = quorum(1, 2, 3, kraft_version=0)
    bare = tuple(QuorumReplica(ReplicaKey(node), 0) for node in (2, 3))
    found = health(replace(of, progress=(*of.progress, *bare)), LivenessLimits(), {1, 2, 3})
    assert found.well
    assert (found.ghosts, found.duplicates) == ((), ())
    removed = replace(of, voters=voters(1, 2), progress=(*of.progress, QuorumReplica(ReplicaKey(9), 0)))
    assert [m.key.id for m in health(removed, LivenessLimits(), {1, 2, 3, 9}).ghosts] == [9]


def test_who_fetches_runs_voters_and_observers_alike() -> None:
    found = health(quorum(1, 2, 3, down=(3,), observers=(key(7),)), LivenessLimits(), {1, 2, 3})
    assert found.running == {1, 2, 7}
