"""What brokers and the controller do together when brokers die, come back, are cut off, or restart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.simulator.config import Config
from backends.simulator.events import Event, LeadershipTaken
from backends.simulator.loop import SECOND
from backends.simulator.messages import ElectLeaders, SetConfig
from backends.simulator.network import broker
from recovery.controller.transition_targets import ElectionKind
from tests.unit.simulator.clusters import (
    FOO,
    QUICK,
    cluster,
    controllers,
    end,
    foo,
    isolate,
    tell,
    topology,
    until,
    without_elr,
)


def test_followers_keep_up_and_the_high_watermark_follows() -> None:
    world = cluster(topology(), 1)
    world.loop.run_for(20 * SECOND)
    ends = {end(world, number) for number in (1, 2, 3)}
    assert min(ends) > 2000
    assert world.producers[0].acknowledged > 1000
    assert world.disks[1].logs[FOO].high_watermark >= 1000 + world.producers[0].acknowledged


def test_the_last_replica_standing_does_not_take_the_others_down_with_it() -> None:
    """T0 to T4 of KIP-966's motivation: with the ELR the replica that has everything is elected instead."""
    world = cluster(topology(), 1)
    world.loop.run_for(5 * SECOND)
    isolate(world, 1)
    until(world, lambda: foo(world).isr == (2, 3))
    isolate(world, 2)
    until(world, lambda: foo(world).isr == (3,))
    assert foo(world).elr == (2,)
    high_watermark = world.disks[3].logs[FOO].high_watermark
    world.power_off([3])
    until(world, lambda: foo(world).leader == -1)
    assert end(world, 3) < high_watermark, "the last replica lost committed records"
    world.network.heal_all()
    until(world, lambda: foo(world).leader == 2)
    world.start_broker(3)
    until(world, lambda: set(foo(world).isr) == {1, 2, 3})
    assert min(end(world, number) for number in (1, 2, 3)) >= high_watermark


def test_without_the_elr_the_last_replica_standing_truncates_everybody() -> None:
    world = cluster(topology(config=without_elr(), acks=-1), 1)
    world.loop.run_for(5 * SECOND)
    isolate(world, 1)
    until(world, lambda: foo(world).isr == (2, 3))
    isolate(world, 2)
    until(world, lambda: foo(world).isr == (3,))
    acknowledged = 1000 + world.producers[0].acknowledged
    world.producers[0].stop()
    world.power_off([3])
    until(world, lambda: foo(world).leader == -1)
    world.network.heal_all()
    world.loop.run_for(20 * SECOND)
    assert foo(world).leader == -1, "nobody else may lead while the last ISR member is away"
    world.start_broker(3)
    until(world, lambda: set(foo(world).isr) == {1, 2, 3})
    assert max(end(world, number) for number in (1, 2, 3)) < acknowledged


def test_a_killed_broker_keeps_its_page_cache_and_one_without_power_does_not() -> None:
    for power, keeps in ((False, True), (True, False)):
        world = cluster(topology(), 1)
        world.loop.run_for(5 * SECOND)
        before = end(world, 3)
        if power:
            world.power_off([3])
        else:
            world.kill_broker(3)
        assert (end(world, 3) == before) is keeps


@pytest.mark.parametrize("clean", [True, False])
def test_a_clean_shutdown_keeps_a_member_of_the_elr_and_an_unclean_one_does_not(clean: bool) -> None:
    world = cluster(topology(acks=None), 1)
    world.kill_broker(1)
    until(world, lambda: foo(world).isr == (2, 3))
    if clean:
        world.shut_down_broker(2)
    else:
        world.kill_broker(2)
    until(world, lambda: foo(world).isr == (3,) and 2 not in world.brokers)
    assert foo(world).elr == (2,)
    world.network.cut([broker(2)], [broker(3)])
    world.start_broker(2)
    until(world, lambda: not world.image.brokers[2].fenced)
    assert foo(world).elr == ((2,) if clean else ())


def test_registrations_without_clean_shutdown_detection_count_as_unclean() -> None:
    config = replace(QUICK, clean_shutdown_detection=False)
    world = cluster(topology(acks=None, config=config), 1)
    world.kill_broker(1)
    until(world, lambda: foo(world).isr == (2, 3))
    world.shut_down_broker(2)
    until(world, lambda: foo(world).isr == (3,) and 2 not in world.brokers)
    world.network.cut([broker(2)], [broker(3)])
    world.start_broker(2)
    until(world, lambda: not world.image.brokers[2].fenced)
    assert foo(world).elr == ()


@pytest.mark.parametrize("config", [QUICK, without_elr()], ids=["with the ELR", "without it"])
def test_below_min_isr_acks_all_is_refused_acks_1_is_taken_and_nothing_new_becomes_visible(
    config: Config,
) -> None:
    world = cluster(topology(acks=1, config=config), 1)
    world.loop.run_for(2 * SECOND)
    world.kill_broker(2)
    world.kill_broker(3)
    until(world, lambda: foo(world).isr == (1,))
    world.loop.run_for(2 * SECOND)
    visible = world.disks[1].logs[FOO].high_watermark
    acknowledged = world.producers[0].acknowledged
    world.loop.run_for(5 * SECOND)
    assert world.producers[0].acknowledged > acknowledged
    assert world.disks[1].logs[FOO].high_watermark == visible
    assert end(world, 1) > visible


def test_what_is_sent_with_acks_0_is_written_and_nobody_hears_whether() -> None:
    world = cluster(topology(acks=0), 1)
    world.loop.run_for(5 * SECOND)
    assert min(end(world, number) for number in (1, 2, 3)) > 1400
    assert (world.producers[0].acknowledged, world.producers[0].refused) == (0, 0)
    world.kill_broker(1)
    until(world, lambda: foo(world).leader == 2)
    assert world.producers[0].refused == 0, "what went to the dead leader is lost in silence"
    until(world, lambda: end(world, 2) > end(world, 1))


def test_a_follower_that_cannot_reach_its_leader_leaves_the_isr_and_comes_back() -> None:
    world = cluster(topology(), 1)
    world.network.cut([broker(1)], [broker(2)])
    until(world, lambda: foo(world).isr == (1, 3))
    assert not world.image.brokers[2].fenced
    world.network.heal_all()
    until(world, lambda: set(foo(world).isr) == {1, 2, 3})


def test_an_idle_partition_without_any_traffic_loses_a_silent_follower_too() -> None:
    world = cluster(topology(acks=None), 1)
    world.network.cut([broker(1)], [broker(2)])
    until(world, lambda: foo(world).isr == (1, 3))


def test_a_broker_cut_off_from_the_controllers_is_fenced_and_unfenced() -> None:
    world = cluster(topology(), 1)
    world.network.cut([broker(1)], controllers(world))
    until(world, lambda: foo(world).leader == 2)
    assert world.image.brokers[1].fenced
    assert world.brokers[1].state.image.partitions[FOO].leader == 1, "it serves old metadata"
    world.network.heal_all()
    until(world, lambda: set(foo(world).isr) == {1, 2, 3})
    assert end(world, 1) >= world.disks[2].logs[FOO].high_watermark


def test_the_same_seed_gives_the_same_history_and_another_seed_another() -> None:
    def run(seed: int) -> str:
        world = cluster(topology(), seed)
        world.loop.run_for(5 * SECOND)
        world.power_off([1])
        world.loop.run_for(10 * SECOND)
        world.start_broker(1)
        world.loop.run_for(10 * SECOND)
        return world.history.digest()

    assert run(7) == run(7)
    assert run(7) != run(8)


def test_a_failover_of_the_controller_in_the_middle_loses_nothing_that_was_committed() -> None:
    world = cluster(topology(), 1)
    world.kill_broker(3)
    until(world, lambda: foo(world).isr == (1, 2))
    assert world.active is not None
    world.kill_controller(world.active.id)
    world.failover(101)
    world.kill_broker(2)
    until(world, lambda: foo(world).isr == (1,))
    assert foo(world).elr == (2,)
    world.start_broker(2)
    world.start_broker(3)
    until(world, lambda: set(foo(world).isr) == {1, 2, 3})


def test_a_leader_that_was_killed_never_leads_its_old_epoch_again() -> None:
    """Not even while it reads, at its start, the metadata of the time when it led."""
    world = cluster(topology(acks=None, records=20))
    tell(world, ElectLeaders(ElectionKind.DESIGNATED, ((FOO, 2),)))
    led = foo(world).leader
    for number in range(70):  # more than a starting broker reads at once
        tell(world, SetConfig("foo", "min.insync.replicas", str(1 + number % 2)))
    epoch = foo(world).leader_epoch
    world.kill_broker(led)
    until(world, lambda: foo(world).leader not in (led, -1))
    taken: list[LeadershipTaken] = []

    def look(event: Event) -> None:
        if isinstance(event, LeadershipTaken) and event.broker == led:
            taken.append(event)

    world.events.subscribers.append(look)
    world.start_broker(led)
    until(world, lambda: led in foo(world).isr)
    assert [event for event in taken if event.epoch <= epoch] == []
