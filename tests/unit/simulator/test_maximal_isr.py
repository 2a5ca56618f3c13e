"""The ISR that a leader asks for and the one that the controller committed (KIP-966, "Additional High Watermark
advancement requirement"; KIP-903, "Leader").
"""

from __future__ import annotations

from backends.simulator.broker.controller_channel import ALTER_PARTITION
from backends.simulator.loop import SECOND
from backends.simulator.network import broker, controller
from backends.simulator.world import World
from tests.unit.simulator.clusters import FOO, cluster, end, foo, isr_change_pending, topology, until


def late(world: World, seconds: int) -> None:
    """What the leader, 1, asks of the controllers about ISRs comes late."""
    for number in world.topology.controllers:
        world.network.delay(broker(1), controller(number), seconds * SECOND, ALTER_PARTITION)


def back(world: World, number: int) -> None:
    """It is alive again, and the leader has asked to add it to the ISR."""
    world.start_broker(number)
    until(world, lambda: isr_change_pending(world) and number not in foo(world).isr)


def visible(world: World) -> int:
    return world.disks[1].logs[FOO].high_watermark


def test_who_is_asked_for_does_not_count_as_min_isr_before_the_controller_has_committed_it() -> None:
    """ISR [1], ELR [2], which is cut off; 3 has caught up. What 1 and 3 have is not what 2 has."""
    world = cluster(topology(acks=1))
    world.kill_broker(3)
    until(world, lambda: foo(world).isr == (1, 2))
    world.network.cut([broker(2)], [node for node in world.nodes() if node != broker(2)])
    until(world, lambda: foo(world).isr == (1,))
    assert foo(world).elr == (2,)
    world.loop.run_for(2 * SECOND)
    before = visible(world)
    assert before <= end(world, 2) < end(world, 1)
    late(world, 10)
    back(world, 3)
    world.loop.run_for(5 * SECOND)
    assert end(world, 3) > before, "it follows"
    assert visible(world) == before, "and nothing new is visible"
    until(world, lambda: set(foo(world).isr) == {1, 3})
    until(world, lambda: visible(world) > before)
    assert foo(world).elr == ()


def test_who_is_asked_for_is_waited_for_as_the_isr_is() -> None:
    """ISR [1, 2] is enough for min ISR; 3 was asked for, may be in the ISR by now, and hangs."""
    world = cluster(topology(acks=-1))
    world.kill_broker(3)
    until(world, lambda: foo(world).isr == (1, 2))
    late(world, 10)
    back(world, 3)
    world.network.cut([broker(1)], [broker(3)])
    world.loop.run_for(SECOND)
    stands = visible(world)
    world.loop.run_for(2 * SECOND)
    assert visible(world) == stands
    assert end(world, 1) > stands
    until(world, lambda: visible(world) > stands)


def test_a_leader_whose_candidate_is_ineligible_goes_on_with_the_committed_isr() -> None:
    """3 has restarted since it caught up: the controller knows, and the leader takes its request back."""
    world = cluster(topology(acks=-1))
    world.kill_broker(3)
    until(world, lambda: foo(world).isr == (1, 2))
    late(world, 10)
    back(world, 3)
    world.kill_broker(3)
    world.network.cut([broker(1)], [broker(3)])
    world.start_broker(3)
    until(world, lambda: any("INELIGIBLE_REPLICA" in line.what for line in world.history.lines))
    late(world, 0)
    before = world.producers[0].acknowledged
    until(world, lambda: world.producers[0].acknowledged > before + 20, 15 * SECOND)
    assert foo(world).isr == (1, 2)
