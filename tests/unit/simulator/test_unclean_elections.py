"""Who is elected when nobody is left in the ISR: KIP-966's rules for its first phase, which Kafka ships
(``unclean.recovery.manager.enabled`` off), and what ``unclean.leader.election.enable`` stands for.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.simulator.loop import SECOND
from backends.simulator.messages import Done, SetConfig
from backends.simulator.world import World
from recovery.controller.registration import LeaderRecoveryState
from recovery.controller.rules import KIP_966, ControllerRules, UncleanRecoveryStrategy
from tests.unit.simulator.clusters import FOO, QUICK, cluster, end, foo, tell, topology, until

ENABLE = "unclean.leader.election.enable"


def shipped() -> World:
    """The recovery manager is off; acks=1, so that who dies last has most."""
    return cluster(
        topology(
            acks=1, config=replace(QUICK, rules=ControllerRules(), unclean_election_interval=20 * SECOND)
        )
    )


def managed() -> World:
    return cluster(
        topology(acks=1, config=replace(QUICK, rules=KIP_966, unclean_recovery_timeout=5 * SECOND))
    )


def die(world: World, *numbers: int, clean: bool = False) -> None:
    """One after the other, each fenced before the next."""
    for number in numbers:
        world.loop.run_for(2 * SECOND)
        if clean:
            world.shut_down_broker(number)
        else:
            world.kill_broker(number)
        until(world, lambda number=number: world.image.brokers[number].fenced)  # type: ignore[misc]  # bound per turn


def come_back(world: World, *numbers: int) -> None:
    for number in numbers:
        world.start_broker(number)
    until(world, lambda: not any(world.image.brokers[number].fenced for number in numbers))


def enable(world: World, value: str, topic: str = "foo") -> None:
    assert tell(world, SetConfig(topic, ENABLE, value)) == Done(None)


def test_another_member_of_the_isr_goes_before_the_elr() -> None:
    world = shipped()
    die(world, 1)
    assert (foo(world).leader, foo(world).isr) == (2, (2, 3))


def test_a_member_of_the_elr_that_is_alive_is_elected() -> None:
    world = shipped()
    die(world, 1)
    die(world, 2, clean=True)
    die(world, 3)
    assert (foo(world).leader, set(foo(world).elr)) == (-1, {2, 3})
    come_back(world, 2)
    assert (foo(world).leader, foo(world).isr) == (2, (2,))


def test_of_dead_members_of_the_elr_the_first_to_return_is_elected_and_nobody_else() -> None:
    world = shipped()
    die(world, 1)
    die(world, 2, clean=True)
    die(world, 3, clean=True)
    come_back(world, 1)
    world.loop.run_for(60 * SECOND)
    assert foo(world).leader == -1, "1 is alive and in neither set"
    come_back(world, 3)
    assert foo(world).leader == 3
    come_back(world, 2)
    until(world, lambda: set(foo(world).isr) == {1, 2, 3})
    assert foo(world).leader == 3


def test_without_any_member_the_last_known_leader_is_elected_when_it_returns_and_nobody_else() -> None:
    world = shipped()
    die(world, 1, 2, 3)
    come_back(world, 1, 2)
    world.loop.run_for(60 * SECOND)
    assert (foo(world).leader, foo(world).last_known_elr) == (-1, (3,))
    come_back(world, 3)
    until(world, lambda: foo(world).leader == 3)


@pytest.mark.parametrize("topic", ["foo", ""], ids=["topic", "cluster"])
def test_with_unclean_elections_allowed_the_first_live_replica_is_elected_by_the_clock(topic: str) -> None:
    """The option is switched on in the middle of the incident: the periodic look finds the partition."""
    world = shipped()
    die(world, 1, 2, 3)
    come_back(world, 2, 1)
    assert foo(world).leader == -1
    longer, shorter = end(world, 2), end(world, 1)
    assert shorter < longer
    enable(world, "true", topic)
    until(world, lambda: foo(world).has_leader)
    assert foo(world).leader == 1, "the first in the order, not the best log"
    assert any("periodic unclean election" in line.what for line in world.history.lines)
    assert world.active is not None and world.active.active is not None
    assert world.active.active.recovery.finished == 0


def test_with_unclean_elections_allowed_nobody_waits_for_the_elr() -> None:
    world = shipped()
    enable(world, "true")
    die(world, 1, 2, 3)
    assert foo(world).leader == -1
    come_back(world, 2)
    assert (foo(world).leader, foo(world).isr) == (2, (2,))
    assert foo(world).leader_recovery_state is LeaderRecoveryState.RECOVERING
    told = [line.what for line in world.history.lines if "unclean election" in line.what]
    assert told == ["broker 2 unfenced; 1 partition; led after an unclean election: foo-0 by 2"]
    come_back(world, 3)
    until(world, lambda: set(foo(world).isr) == {2, 3})
    assert (foo(world).leader, foo(world).leader_recovery_state) == (2, LeaderRecoveryState.RECOVERED)


@pytest.mark.parametrize(
    ("value", "strategy"),
    [("true", UncleanRecoveryStrategy.AGGRESSIVE), ("false", UncleanRecoveryStrategy.BALANCED)],
)
def test_the_option_stands_for_a_strategy(value: str, strategy: UncleanRecoveryStrategy) -> None:
    world = managed()
    assert tell(world, SetConfig("foo", "unclean.recovery.strategy", "None")) == Done(None)
    assert world.image.strategies.of("foo") is UncleanRecoveryStrategy.NONE
    enable(world, value)
    assert world.image.strategies.of("foo") is strategy
    die(world, 1, 2, 3)
    come_back(world, 1, 2)
    world.loop.run_for(10 * SECOND)
    # Aggressive asks who is alive for their logs and takes the best; Balanced waits for the ELR.
    assert foo(world).leader == (2 if value == "true" else -1)
    assert FOO in world.disks[2].logs


def test_the_recovery_manager_is_switched_on_in_the_middle_of_the_incident() -> None:
    """It finds the partitions that have no leader, and elects the best log instead of the first in the order."""
    world = shipped()
    die(world, 1, 2, 3)
    come_back(world, 2, 1)
    assert end(world, 2) > end(world, 1)
    assert tell(world, SetConfig("foo", "unclean.recovery.strategy", "Aggressive")) == Done(None)
    manager = "unclean.recovery.manager.enabled"
    assert tell(world, SetConfig("", manager, "true")) == Done(None)
    until(world, lambda: foo(world).has_leader)
    assert foo(world).leader == 2
    assert any("unclean recovery of foo-0 elects 2" in line.what for line in world.history.lines)
    assert tell(world, SetConfig("", manager, None)) == Done(None)
    assert not world.image.rules.recovery_manager
    for wrong in (SetConfig("", manager, "yes"), SetConfig("foo", manager, "true")):
        answer = tell(world, wrong)
        assert isinstance(answer, Done) and answer.refusal is not None
