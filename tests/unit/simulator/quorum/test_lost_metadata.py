"""Static voters go by node id: one that comes back empty elects a log that lacks what it had committed itself.

Kafka loses metadata so (KIP-853, "Motivation"). What the cluster does after that is told and judged as ever.
"""

from __future__ import annotations

from dataclasses import replace

from backends.simulator.invariants.checker import Checker
from backends.simulator.loop import SECOND
from backends.simulator.messages import SetConfig
from backends.simulator.topology import ConsumerSpec, ProducerSpec
from backends.simulator.world import World
from recovery.controller.rules import ControllerRules, UncleanRecoveryStrategy
from tests.unit.simulator.clusters import end, foo
from tests.unit.simulator.quorum.quorums import cut, leads, quorum, until

ELECTS_UNCLEANLY = ControllerRules(strategy=UncleanRecoveryStrategy.BALANCED)


def _without_102() -> tuple[World, Checker]:
    """Somebody produces and consumes, and 102 does not hear any more what 100 and 101 commit."""
    made = replace(
        quorum(kraft_version=0, rules=ELECTS_UNCLEANLY).topology,
        producers=(ProducerSpec("foo", (0,), -1, 10, SECOND // 10),),
        consumers=(ConsumerSpec("foo", (0,), SECOND // 10),),
    )
    world = World(made, 1)
    checker = Checker(world, strict=False)
    world.loop.run_for(SECOND)
    cut(world, (102,), (100, 101))
    world.loop.run_for(20 * SECOND)
    return world, checker


def _set_min_isr(world: World, controller: int, value: int) -> list[object]:
    replies: list[object] = []
    active = world.controllers[controller].active
    assert active is not None
    active.handle(SetConfig("foo", "min.insync.replicas", str(value)), replies.append)
    until(world, lambda: bool(replies))
    return replies


def _lose_what_102_has_not_heard_of(world: World) -> None:
    """100 dies, 101 comes back with an empty disk, and together with 102 it is a majority."""
    world.kill_controller(100)
    world.kill_controller(101)
    world.replace_controller_disk(101)
    world.start_controller(101)
    world.network.heal_all()
    assert leads(world).id == 102


def test_what_is_committed_anew_below_what_was_lost_is_told() -> None:
    world, _ = _without_102()
    _set_min_isr(world, 100, 1)
    lost = world.quorum.disks[100].log.end
    _lose_what_102_has_not_heard_of(world)
    _set_min_isr(world, 102, 3)
    assert leads(world).log.end < lost, "it lies where something else had been committed"
    assert world.image.effective_min_isr("foo") == 3


def test_an_unclean_election_that_is_committed_below_what_was_lost_is_known_for_one() -> None:
    world, checker = _without_102()
    _set_min_isr(world, 100, 2)
    _set_min_isr(world, 100, 1)
    world.power_off([1, 2, 3])
    _lose_what_102_has_not_heard_of(world)
    epoch = foo(world).leader_epoch
    for number in world.specs:
        world.start_broker(number)
    world.loop.run_for(10 * SECOND)
    assert foo(world).leader_epoch > epoch
    assert [str(broken) for broken in checker.broken] == []
    assert checker.lost, "the election was one that loses records"


def test_a_member_that_left_the_isr_is_elected_by_metadata_that_does_not_know_it() -> None:
    world, checker = _without_102()
    world.shut_down_broker(2)
    until(world, lambda: foo(world).isr == (1, 3))
    short = end(world, 2)
    world.loop.run_for(5 * SECOND)
    assert end(world, 1) > short
    world.kill_broker(1)
    world.kill_broker(3)
    _lose_what_102_has_not_heard_of(world)
    world.start_broker(2)
    until(world, lambda: foo(world).leader == 2)
    world.loop.run_for(SECOND)
    assert [str(broken) for broken in checker.broken] == []
    assert [lost.excuse for lost in checker.lost] == ["metadata was lost with a static voter's disk"]
