"""A disk that has failed: what was on it, from the last healthy listing and from what is offline now."""

from __future__ import annotations

from recovery.disks.failed_dirs import EvidenceSource, RemainingWork, failed_dirs, last_copies
from recovery.disks.values import LogDirPlace
from tests.unit.disks.clusters import A, B, cluster, state, tp

GONE = LogDirPlace(1, B)


def test_the_worst_stand_first_and_each_says_what_is_left_to_do() -> None:
    of = cluster(
        state(0, leader=2, isr=(2, 3), offline_replicas=(1,)),
        state(1, leader=2, isr=(2,), offline_replicas=(1, 3)),
        state(2, (1,), leader=-1, isr=(), elr=(1,), offline_replicas=(1,)),
        state(3, leader=-1, isr=(), elr=(1,), offline_replicas=(1, 2)),
        state(4),
        fenced=(2, 3),
        failed=(GONE,),
    )
    kept = {1: {A: frozenset({tp(4)}), B: frozenset({tp(0), tp(1), tp(2), tp(3)})}}
    (found,) = failed_dirs(of, (GONE,), kept)
    assert [(row.tp.partition, row.left) for row in found.lost] == [
        (2, RemainingWork.LAST_COPY),
        (3, RemainingWork.OFFLINE),
        (1, RemainingWork.UNDER),
        (0, RemainingWork.DISK),
    ]
    assert all(row.sure for row in found.lost)
    assert [row.tp for row in last_copies((found,))] == [tp(2)]


def test_without_a_listing_what_is_offline_was_on_the_only_dir_that_failed() -> None:
    of = cluster(state(0, leader=2, isr=(2, 3), offline_replicas=(1,)), failed=(GONE,))
    (found,) = failed_dirs(of, (GONE,), {})
    assert [(row.tp, row.known, row.sure) for row in found.lost] == [(tp(0), EvidenceSource.ALONE, True)]
    (found, other) = failed_dirs(of, (GONE, LogDirPlace(2, A)), {})
    assert [row.known for row in found.lost] == [EvidenceSource.ALONE], (
        "another broker's dir holds nothing of this one"
    )
    assert other.lost == ()


def test_with_two_failed_dirs_and_no_listing_it_may_have_been_on_either() -> None:
    of = cluster(state(0, leader=2, isr=(2, 3), offline_replicas=(1,)), failed=(GONE, LogDirPlace(1, A)))
    for found in failed_dirs(of, (GONE, LogDirPlace(1, A)), {}):
        assert [(row.tp, row.known, row.sure) for row in found.lost] == [
            (tp(0), EvidenceSource.PERHAPS, False)
        ]


def test_a_replica_that_was_on_another_disk_is_not_this_ones_loss() -> None:
    of = cluster(state(0, leader=2, isr=(2, 3), offline_replicas=(1,)), failed=(GONE, LogDirPlace(1, A)))
    kept = {1: {A: frozenset({tp(0)}), B: frozenset()}}
    b, a = failed_dirs(of, (GONE, LogDirPlace(1, A)), kept)
    assert b.lost == ()
    assert [row.tp for row in a.lost] == [tp(0)]


def test_a_broker_that_is_fenced_has_lost_nothing_by_that() -> None:
    of = cluster(state(0, leader=2, isr=(2, 3), offline_replicas=(1,)), fenced=(1,), failed=(GONE,))
    assert failed_dirs(of, (GONE,), {})[0].lost == ()


def test_a_failure_that_the_broker_has_not_noticed_is_told_as_such() -> None:
    of = cluster(state(0), on_b=[(1, 0)], failed=(GONE,))
    (found,) = failed_dirs(of, (GONE,), {1: {B: frozenset({tp(0)})}})
    assert [row.left for row in found.lost] == [RemainingWork.UNNOTICED]
