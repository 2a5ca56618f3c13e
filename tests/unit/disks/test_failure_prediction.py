"""If a disk failed: the JBOD document's selector, KIP-966's edges, and brokers that stop with their metadata."""

from __future__ import annotations

import pytest

from recovery.disks.failure_preview import if_places_fail
from recovery.disks.values import WHOLE_BROKER, DiskError, DiskOutcome, LogDirPlace
from tests.unit.disks.clusters import A, B, cluster, state, tp


def test_a_leader_is_followed_by_the_first_assigned_replica_that_is_in_sync() -> None:
    of = cluster(state(0, isr=(1, 3)), state(1), on_b=[(1, 0), (1, 1)])
    found = if_places_fail(of, [LogDirPlace(1, B)])
    fates = {fate.tp: fate for fate in found.fates}
    assert fates[tp(0)].leader == 3
    assert fates[tp(0)].isr == (3,)
    assert fates[tp(0)].falls_under
    assert fates[tp(1)].leader == 2
    assert not fates[tp(1)].falls_under
    assert found.stopped == ()


def test_a_follower_that_is_lost_leaves_the_leader_be() -> None:
    found = if_places_fail(cluster(state(0), on_b=[(3, 0)]), [LogDirPlace(3, B)])
    (fate,) = found.fates
    assert fate.leader == 1
    assert fate.isr == (1, 2)
    assert not fate.new_leader


def test_what_is_on_another_disk_is_not_hit() -> None:
    assert if_places_fail(cluster(state(0), state(1), on_b=[(1, 0)]), [LogDirPlace(1, B)]).fates[1:] == ()


def test_a_replica_out_of_sync_is_no_leader_and_the_partition_goes_offline() -> None:
    of = cluster(state(0, isr=(1,), elr=()), on_b=[(1, 0)])
    (fate,) = if_places_fail(of, [LogDirPlace(1, B)]).fates
    assert fate.goes_offline
    assert not fate.last_copy_lost
    assert fate.elr == (1,)


def test_an_eligible_replica_is_elected_when_the_isr_is_gone() -> None:
    of = cluster(state(0, isr=(1,), elr=(2,)), on_b=[(1, 0)])
    (fate,) = if_places_fail(of, [LogDirPlace(1, B)]).fates
    assert fate.leader == 2
    assert not fate.unclean


def test_without_the_elr_the_last_member_stays_in_the_isr() -> None:
    of = cluster(state(0, isr=(1,), elr=None, last_known_elr=None), on_b=[(1, 0)], elr=False)
    (fate,) = if_places_fail(of, [LogDirPlace(1, B)]).fates
    assert fate.goes_offline
    assert fate.isr == (1,)


def test_with_unclean_elections_on_the_first_live_replica_leads() -> None:
    of = cluster(state(0, isr=(1,), elr=()), on_b=[(1, 0)], unclean=True)
    (fate,) = if_places_fail(of, [LogDirPlace(1, B)]).fates
    assert fate.leader == 2
    assert fate.unclean


def test_several_disks_that_hold_every_copy_lose_it() -> None:
    of = cluster(state(0, (1, 2)), state(1), on_b=[(1, 0), (2, 0), (1, 1), (2, 1)])
    found = if_places_fail(of, [LogDirPlace(1, B), LogDirPlace(2, B)])
    assert [fate.tp for fate in found.last_copies] == [tp(0)]
    assert found.fates[0].tp == tp(0)


def test_the_dir_of_the_metadata_log_stops_the_whole_broker() -> None:
    of = cluster(state(0, (1, 2)), on_b=[(1, 0), (2, 0)])
    found = if_places_fail(of, [LogDirPlace(1, A)])
    assert found.stopped == (1,)
    (fate,) = found.fates
    assert fate.leader == 2
    assert fate.copies == 2, "what is on its other disk is still there"


def test_a_whole_broker_and_its_last_dir_are_the_same_loss_of_leaders() -> None:
    of = cluster(state(0), state(1), on_b=[(1, 0)])
    whole = if_places_fail(of, [LogDirPlace(1, WHOLE_BROKER)])
    both = if_places_fail(of, [LogDirPlace(1, A), LogDirPlace(1, B)])
    assert [(f.tp, f.leader, f.isr) for f in whole.fates] == [(f.tp, f.leader, f.isr) for f in both.fates]


def test_a_fenced_broker_still_holds_a_copy_and_a_failed_disk_does_not() -> None:
    of = cluster(state(0, isr=(1,), offline_replicas=(2, 3)), on_b=[(1, 0)], fenced=(2,))
    (fate,) = if_places_fail(of, [LogDirPlace(1, B)]).fates
    assert fate.copies == 1


@pytest.mark.parametrize(
    ("place", "said"), [(LogDirPlace(9, B), "broker 9"), (LogDirPlace(1, "/x"), "has no log dir /x")]
)
def test_a_place_that_is_not_there_is_refused_with_what_is(place: LogDirPlace, said: str) -> None:
    with pytest.raises(DiskError, match=said):
        if_places_fail(cluster(state(0)), [place])


def test_a_copy_that_was_lost_before_is_not_lost_by_what_fails_next() -> None:
    """Replica 1 is on a disk that has failed already; nothing else holds the partition."""
    gone = state(0, (1,), leader=-1, isr=(1,), offline_replicas=(1,))
    found = if_places_fail(cluster(gone, failed=(LogDirPlace(1, A),)), [LogDirPlace(1, WHOLE_BROKER)])
    assert [fate.tp for fate in found.fates] == [tp(0)]
    assert found.last_copies == ()


def test_what_becomes_of_each_partition_is_told_the_worst_first() -> None:
    """A lost copy of what is offline already changes nothing for the controller, and much for a recovery."""
    dark = state(3, leader=-1, isr=(), elr=(), offline_replicas=(3,))
    of = cluster(
        state(0), state(1, isr=(1, 3)), state(2, isr=(1,), elr=()), dark, on_b=[(1, n) for n in range(4)]
    )
    found = if_places_fail(of, [LogDirPlace(1, B)])
    assert [(fate.tp.partition, fate.outcomes) for fate in found.fates] == [
        (2, (DiskOutcome.OFFLINE,)),
        (3, (DiskOutcome.SURVIVOR,)),
        (1, (DiskOutcome.UNDER_MIN_ISR, DiskOutcome.NEW_LEADER)),
        (0, (DiskOutcome.NEW_LEADER,)),
    ]
    (follower,) = if_places_fail(cluster(state(0), on_b=[(3, 0)]), [LogDirPlace(3, B)]).fates
    assert follower.outcomes == (DiskOutcome.FEWER,)


def test_the_last_copy_of_what_is_offline_already_is_the_worst() -> None:
    dark = state(0, leader=-1, isr=(), elr=(), offline_replicas=(2, 3))
    (fate,) = if_places_fail(cluster(dark, on_b=[(1, 0)]), [LogDirPlace(1, B)]).fates
    assert fate.outcomes == (DiskOutcome.LAST_COPY,)
