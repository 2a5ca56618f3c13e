"""A disk that is replaced: what its broker could be elected to lead from an empty one, and what is back."""

from __future__ import annotations

from recovery.disks.disk_swap import SwapStepKind, moved, swap, waiting
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
    kinds = [step.kind for step in found.steps]
    assert kinds[:3] == [SwapStepKind.READ, SwapStepKind.RECOVER, SwapStepKind.STOP]
    assert "it may decide whom to elect for 1 offline partition" in found.steps[0].what
    assert found.steps[1].what.startswith("recover first")
    assert "--evidence disk-1.json" in found.steps[1].command


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
    kinds = [step.kind for step in found.steps]
    assert kinds[:3] == [SwapStepKind.READ, SwapStepKind.STOP, SwapStepKind.DISK]
    assert "the only copy of 1 partition" in found.steps[0].what
    assert "ktriage disk scan" in found.steps[0].command
    assert found.steps[2].what.startswith("remove the old disk and keep it")


def test_the_only_copy_on_a_disk_that_works_is_read_when_its_broker_has_stopped() -> None:
    steps = swap(cluster(state(0, (1,)), state(1)), PLACE, [tp(0), tp(1)]).steps
    assert [step.kind for step in steps[:3]] == [SwapStepKind.STOP, SwapStepKind.READ, SwapStepKind.DISK]
    assert all(step.kind is not SwapStepKind.READ for step in swap(cluster(state(1)), PLACE, [tp(1)]).steps)


def test_the_commands_of_the_steps_name_the_cluster() -> None:
    steps = swap(cluster(state(1)), PLACE, [tp(1)]).steps
    *_, wait, leaders = (step.command_line(("--cluster", "a b")) for step in steps)
    assert wait == f"ktriage log-dirs --swap {PLACE} --wait --cluster 'a b'"
    assert leaders.endswith("--all-topic-partitions --cluster 'a b'")


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
    assert any("metadata log" in step.what for step in steps)


def test_a_replica_on_another_dir_than_before_is_pointed_out() -> None:
    kept = {1: {A: frozenset({tp(0)}), B: frozenset({tp(1)})}}
    now = {1: {A: frozenset({tp(0), tp(1)}), B: frozenset()}}
    (found,) = moved(kept, now)
    assert (found.tp, found.was, found.now) == (tp(1), B, A)
