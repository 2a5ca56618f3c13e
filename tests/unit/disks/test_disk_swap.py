"""A disk that is replaced: what its broker could be elected to lead from an empty one, and what is back."""

from __future__ import annotations

from recovery.disks.disk_swap import moved, swap, waiting
from recovery.disks.values import LogDirPlace
from tests.unit.disks.clusters import A, B, cluster, state, tp

PLACE = LogDirPlace(1, B)


def test_the_last_known_leader_would_be_elected_from_its_empty_disk() -> None:
    offline = state(0, leader=-1, isr=(), elr=(), last_known_elr=(1,), offline_replicas=(1,))
    found = swap(cluster(offline, state(1)), PLACE, [tp(0), tp(1)])
    (danger,) = found.dangers
    assert danger.tp == tp(0)
    assert "last known leader" in danger.why
    assert danger.others == (2, 3)
    assert str(found.steps[0]).startswith("recover first")


def test_with_the_elr_a_member_that_lost_its_disk_is_not_elected_cleanly() -> None:
    offline = state(0, leader=-1, isr=(), elr=(1,), last_known_elr=(), offline_replicas=(1,))
    assert swap(cluster(offline), PLACE, [tp(0)]).dangers == ()


def test_without_the_elr_the_last_isr_member_is_elected_empty_or_not() -> None:
    offline = state(0, leader=-1, isr=(1,), elr=None, last_known_elr=None, offline_replicas=(1,))
    (danger,) = swap(cluster(offline, elr=False), PLACE, [tp(0)]).dangers
    assert "last member of the ISR" in danger.why


def test_where_there_is_no_other_copy_nothing_can_be_recovered_first() -> None:
    alone = state(0, (1,), leader=-1, isr=(), elr=(), last_known_elr=(1,), offline_replicas=(1,))
    found = swap(cluster(alone), PLACE, [tp(0)])
    assert found.dangers[0].others == ()
    assert not str(found.steps[0]).startswith("recover first")


def test_a_led_partition_and_one_on_another_disk_are_no_danger() -> None:
    led = state(0, leader=2, isr=(2, 3), offline_replicas=(1,))
    other = state(1, leader=-1, isr=(), elr=(), last_known_elr=(1,))
    assert swap(cluster(led, other), PLACE, [tp(0)]).dangers == ()


def test_it_is_over_when_every_replica_of_the_disk_is_back_in_the_isr() -> None:
    behind, back = state(0, isr=(2, 3), leader=2), state(1)
    assert waiting([behind, back], PLACE, [tp(0), tp(1)]) == [behind]
    assert waiting([back], PLACE, [tp(1)]) == []


def test_the_metadata_log_on_the_disk_is_said() -> None:
    steps = swap(cluster(state(0)), LogDirPlace(1, A), [tp(0)]).steps
    assert any("metadata log" in str(step) for step in steps)


def test_a_replica_on_another_dir_than_before_is_pointed_out() -> None:
    kept = {1: {A: frozenset({tp(0)}), B: frozenset({tp(1)})}}
    now = {1: {A: frozenset({tp(0), tp(1)}), B: frozenset()}}
    (found,) = moved(kept, now)
    assert (found.tp, found.was, found.now) == (tp(1), B, A)
