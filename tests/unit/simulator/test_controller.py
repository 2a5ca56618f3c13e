"""What the simulated controller does beside elections of the ISR: directories, features, recoveries, requests."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from backends.simulator.loop import SECOND
from backends.simulator.messages import (
    CreateTopic,
    Done,
    Reassign,
    SetConfig,
    UpdateFeature,
)
from backends.simulator.world import World
from recovery.controller.controller_errors import ControllerError
from recovery.controller.rules import ELR_FEATURE, KIP_966, UncleanRecoveryStrategy
from recovery.model import TopicPartition
from tests.unit.simulator.clusters import FOO, QUICK, cluster, end, foo, tell, topology, until


def _offline(world: World, last: int = 3) -> None:
    """1, 2 and 3 are killed, ``last`` last; the other two are back after unclean shutdowns."""
    world.loop.run_for(3 * SECOND)
    others = [number for number in (1, 2, 3) if number != last]
    for number in (*others, last):
        world.kill_broker(number)
        until(world, partial(_fenced, world, number))
        world.loop.run_for(2 * SECOND)
    for number in others:
        world.start_broker(number)
    until(world, lambda: all(not world.image.brokers[number].fenced for number in others))


def _fenced(world: World, number: int) -> bool:
    return world.image.brokers[number].fenced


# Disks.


def _two_dirs(**more: Any) -> World:
    return cluster(topology(log_dirs=2, partitions=4, **more))


def test_a_failed_log_dir_costs_the_replicas_in_it_and_no_others() -> None:
    world = _two_dirs()
    world.break_log_dir(1, 0)
    until(world, lambda: foo(world).leader != 1)
    other = world.image.partitions[TopicPartition("foo", 1)]
    assert foo(world).isr == (2, 3)
    assert foo(world).replicas == (1, 2, 3), "the failed replica stays assigned"
    assert other.leader == 1
    assert other.isr == (1, 2, 3)
    assert not world.image.brokers[1].fenced


def test_an_idle_log_dir_that_fails_is_noticed_at_the_next_checkpoint() -> None:
    world = _two_dirs(acks=None)
    world.break_log_dir(1, 1)
    until(world, lambda: world.image.partitions[TopicPartition("foo", 1)].leader == 2)


def test_the_last_replica_on_a_failed_dir_leaves_nobody_and_the_isr_empty() -> None:
    world = _two_dirs()
    for number in (2, 3):
        world.kill_broker(number)
    until(world, lambda: foo(world).isr == (1,))
    world.break_log_dir(1, 0)
    until(world, lambda: foo(world).leader == -1)
    assert foo(world).isr == ()
    assert 1 in foo(world).elr
    assert world.image.partitions[TopicPartition("foo", 1)].leader == 1


def test_a_replaced_disk_is_replicated_again() -> None:
    world = _two_dirs()
    world.break_log_dir(1, 0)
    until(world, lambda: foo(world).isr == (2, 3))
    with pytest.raises(ValueError, match="is running"):
        world.replace_log_dir(1, 0)
    world.kill_broker(1)
    world.replace_log_dir(1, 0)
    world.start_broker(1)
    until(world, lambda: set(foo(world).isr) == {1, 2, 3})
    assert end(world, 1) >= 1000


def test_where_the_dir_is_good_only_the_one_partition_is_lost() -> None:
    world = _two_dirs()
    world.break_partition(1, FOO)
    until(world, lambda: foo(world).leader == 2)
    same_dir = world.image.partitions[TopicPartition("foo", 2)]
    assert same_dir.leader == 1
    assert world.brokers[1].storage.failed == {}


def test_a_broker_without_any_log_dir_left_stops() -> None:
    world = cluster(topology())
    world.break_log_dir(1, 0)
    until(world, lambda: 1 not in world.brokers)
    until(world, lambda: foo(world).leader == 2)


# Features and configurations.


def test_the_elr_is_switched_off_and_on_in_a_running_cluster() -> None:
    world = cluster(topology())
    world.kill_broker(2)
    world.kill_broker(3)
    until(world, lambda: foo(world).isr == (1,))
    assert foo(world).elr != ()
    assert tell(world, UpdateFeature(ELR_FEATURE, 0)) == Done(None)
    world.start_broker(2)
    until(world, lambda: set(foo(world).isr) == {1, 2})
    assert foo(world).elr == ()
    assert tell(world, UpdateFeature(ELR_FEATURE, 1)) == Done(None)
    world.kill_broker(2)
    until(world, lambda: foo(world).isr == (1,))
    assert foo(world).elr == (2,)
    assert tell(world, UpdateFeature("group.version", 1)).refusal.error is ControllerError.INVALID_CONFIG


def test_a_lower_min_isr_lets_consumers_go_on() -> None:
    world = cluster(topology(acks=1))
    world.kill_broker(2)
    world.kill_broker(3)
    until(world, lambda: foo(world).isr == (1,))
    world.loop.run_for(2 * SECOND)
    visible = world.disks[1].logs[FOO].high_watermark
    assert visible < end(world, 1)
    assert tell(world, SetConfig("foo", "min.insync.replicas", "1")) == Done(None)
    until(world, lambda: world.disks[1].logs[FOO].high_watermark > visible)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("min.insync.replicas", "two"),
        ("unclean.leader.election.enable", "maybe"),
        ("unclean.recovery.strategy", "balanced"),
        ("nonsense", "1"),
    ],
)
def test_a_wrong_configuration_is_refused_and_changes_nothing(name: str, value: str) -> None:
    world = cluster(topology())
    before = world.image
    answer = tell(world, SetConfig("foo", name, value))
    assert answer.refusal.error is ControllerError.INVALID_CONFIG
    assert world.image is before


def test_a_new_topic_is_replicated_and_a_second_of_the_name_refused() -> None:
    world = cluster(topology(log_dirs=2))
    assert tell(world, CreateTopic("bar", ((2, 3), (3, 1)), 2)) == Done(None)
    bar = TopicPartition("bar", 1)
    until(world, lambda: bar in world.disks[1].logs and bar in world.disks[3].logs)
    known = {*world.image.brokers[1].directories, *world.image.brokers[3].directories}
    until(world, lambda: set(world.image.partitions[bar].directories) <= known)
    assert tell(world, CreateTopic("bar", ((1,),), None)).refusal is not None
    assert tell(world, CreateTopic("baz", ((9,),), None)).refusal is not None


# Reassignments.


def test_a_reassignment_moves_the_data_and_deletes_the_old_replica() -> None:
    world = cluster(replace(topology(4), topics=(replace(topology().topics[0], assignments=((1, 2, 3),)),)))
    assert tell(world, Reassign(((FOO, (2, 3, 4)),), True)).refusals[FOO] is None
    until(world, lambda: foo(world).replicas == (2, 3, 4))
    until(world, lambda: FOO not in world.disks[1].logs)
    assert set(foo(world).isr) == {2, 3, 4}
    assert end(world, 4) >= 1000


# The Unclean Recovery manager (KIP-966).


def _manager(strategy: UncleanRecoveryStrategy, **rules: Any) -> World:
    config = replace(
        QUICK, rules=replace(KIP_966, strategy=strategy, **rules), unclean_recovery_timeout=5 * SECOND
    )
    return cluster(topology(config=config, acks=1))


def test_aggressive_recovers_with_the_best_of_those_that_answer() -> None:
    world = _manager(UncleanRecoveryStrategy.AGGRESSIVE)
    _offline(world)
    until(world, lambda: foo(world).has_leader)
    assert foo(world).leader in (1, 2)
    assert foo(world).leader == 2, "it went on when 1 was dead"
    assert world.active is not None
    assert world.active.active is not None
    assert world.active.active.recovery.finished == 1


def test_balanced_waits_for_the_last_known_elr_and_then_recovers() -> None:
    world = _manager(UncleanRecoveryStrategy.BALANCED)
    _offline(world)
    world.loop.run_for(30 * SECOND)
    assert foo(world).leader == -1, "3 is in the ELR and away"
    world.start_broker(3)
    until(world, lambda: foo(world).has_leader)
    assert foo(world).leader == 3, "it has the newest records"


def test_a_failover_in_the_middle_starts_the_recovery_anew() -> None:
    world = _manager(UncleanRecoveryStrategy.AGGRESSIVE)
    _offline(world)
    world.kill_controller(100)
    until(world, lambda: foo(world).has_leader)
    assert world.active is not None
    assert world.active.id != 100
