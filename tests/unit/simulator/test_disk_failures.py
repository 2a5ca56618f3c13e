"""A log dir fails while something else is under way with what lies in it."""

from __future__ import annotations

from dataclasses import replace

from backends.simulator.loop import SECOND
from backends.simulator.messages import CreateTopic, DeleteRecords, DeleteTopic, Done, Error, Reassign
from backends.simulator.network import broker
from backends.simulator.topology import ConsumerSpec
from recovery.model import TopicPartition
from tests.unit.simulator.clusters import FOO, ask, cluster, controllers, end, foo, tell, topology, until

OTHER = TopicPartition("foo", 2)


def test_a_topic_that_is_being_deleted_is_left_alone_when_its_log_dir_fails() -> None:
    """Broker 1 has not heard of it yet, and reports the failed log dir with all that lies in it."""
    world = cluster(topology(log_dirs=2, partitions=4, acks=None))
    world.network.cut([broker(1)], controllers(world))
    assert tell(world, DeleteTopic("foo")) == Done(None)
    world.break_log_dir(1, 0)
    until(world, lambda: bool(world.brokers[1].storage.failed))
    assert FOO in world.brokers[1].state.image.partitions
    world.network.heal_all()
    failed = world.disks[1].directories[0].id
    until(world, lambda: failed not in world.image.brokers[1].directories)
    world.loop.run_for(10 * SECOND)
    assert not world.image.partitions
    assert not world.brokers[1].state.image.partitions
    assert not world.image.brokers[1].fenced


def test_a_reassignment_in_progress_goes_on_when_a_log_dir_under_it_fails() -> None:
    """As shipped, what is being reassigned gets another leader like everything else, or it would be offline; the
    reassignment itself is neither ended nor begun anew.
    """
    world = cluster(topology(4, log_dirs=2, partitions=4, acks=None))
    for tp in (FOO, OTHER):
        assert tell(world, Reassign(((tp, (1, 2)),), True)).refusals[tp] is None
    world.kill_broker(4)
    until(world, lambda: 4 not in foo(world).isr)
    until(world, lambda: not foo(world).reassigning)
    assert tell(world, Reassign(((FOO, (2, 4)),), True)).refusals[FOO] is None
    asked = foo(world)
    assert asked.adding == (4,)
    world.break_log_dir(1, world.disks[1].logs[FOO].directory)
    until(world, lambda: foo(world).leader == 2)
    assert (foo(world).adding, foo(world).removing) == (asked.adding, asked.removing)
    assert foo(world).isr == (2,)
    world.start_broker(4)
    until(world, lambda: foo(world).replicas == (2, 4))
    assert set(foo(world).isr) == {2, 4}
    assert end(world, 4) == end(world, 2)
    assert 1 not in foo(world).replicas


def test_a_failing_read_takes_the_log_dir_offline_before_anything_is_written() -> None:
    made = replace(
        topology(log_dirs=2, partitions=4, acks=None), consumers=(ConsumerSpec("foo", (0,), SECOND // 10),)
    )
    world = cluster(made)
    world.loop.run_for(SECOND // 2)
    began = world.loop.now
    world.break_log_dir(1, 0)
    until(world, lambda: bool(world.brokers[1].storage.failed))
    assert world.loop.now - began < world.topology.config.high_watermark_checkpoint_interval // 10
    until(world, lambda: foo(world).leader == 2)


def test_in_a_failed_log_dir_checkpoints_stop_and_no_new_logs_are_made() -> None:
    world = cluster(topology(log_dirs=2, partitions=4))
    world.loop.run_for(10 * SECOND)
    world.break_log_dir(1, 0)
    until(world, lambda: bool(world.brokers[1].storage.failed))
    stands = world.disks[1].logs[FOO]
    for number in range(4):
        assert tell(world, CreateTopic(f"new-{number}", ((1, 2),), None)) == Done(None)
    made = [TopicPartition(f"new-{number}", 0) for number in range(4)]
    until(world, lambda: all(tp in world.disks[1].logs for tp in made))
    assert {world.disks[1].logs[tp].directory for tp in made} == {1}
    world.loop.run_for(20 * SECOND)
    assert world.disks[1].logs[FOO] == stands
    refused = ask(world, DeleteRecords(FOO, 10))
    assert refused.error is Error.NOT_LEADER_OR_FOLLOWER
    assert ask(world, DeleteRecords(TopicPartition("foo", 1), 10)).error is None
