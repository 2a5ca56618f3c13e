"""Each promise is broken once on purpose, by breaking the rule that guards it, and the break is caught.

The number of seeds that it took is printed with ``-rP``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from backends.simulator.broker.broker_process import BrokerProcess
from backends.simulator.broker.controller_channel import ALTER_PARTITION
from backends.simulator.broker.leadership import Leadership
from backends.simulator.broker.partition_leader import PartitionLeader
from backends.simulator.broker.replica_log import Log
from backends.simulator.events import Event, LeadershipTaken, MetadataWritten
from backends.simulator.invariants.checker import Checker, InvariantBroken
from backends.simulator.invariants.promises import DataPromise
from backends.simulator.loop import SECOND
from backends.simulator.messages import Consume
from backends.simulator.network import broker, controller
from backends.simulator.rpc import Answer
from backends.simulator.topology import ConsumerSpec, Topology
from backends.simulator.world import World
from recovery.controller import broker_changes as rules
from recovery.controller.cluster_image import ClusterImage
from recovery.controller.invariants import Invariant
from recovery.controller.registration import PartitionChange
from testbed.histories.random_histories import prepare, random_history, run
from tests.unit.simulator.clusters import (
    FOO,
    QUICK,
    cluster,
    foo,
    isolate,
    isr_change_pending,
    topology,
    until,
)

Run = Callable[[int], None]


def _caught(name: str, run: Run, seeds: int = 50) -> None:
    """The invariant of that name is broken by one of the first ``seeds`` seeds."""
    for seed in range(1, seeds + 1):
        try:
            run(seed)
        except InvariantBroken as broken:
            assert broken.broken.name == name, str(broken)
            print(f"{name}: caught with seed {seed}")
            return
    raise AssertionError(f"{name}: not caught in {seeds} seeds")


def _last_replica_standing(world: World) -> None:
    world.loop.run_for(3 * SECOND)
    isolate(world, 1)
    until(world, lambda: foo(world).isr == (2, 3))
    isolate(world, 2)
    until(world, lambda: foo(world).isr == (3,))
    world.loop.run_for(3 * SECOND)
    world.power_off([3])
    until(world, lambda: foo(world).leader == -1)
    world.network.heal_all()
    world.start_broker(3)
    world.loop.run_for(40 * SECOND)


def test_a_high_watermark_that_moves_below_min_isr_is_caught() -> None:
    config = replace(QUICK, high_watermark_needs_min_isr=False)
    _caught(
        DataPromise.HIGH_WATERMARK_NEEDS_MIN_ISR,
        lambda seed: _last_replica_standing(cluster(topology(acks=1, config=config), seed)),
    )


def _names(scenario: Callable[[World], None], world: World) -> dict[str, str]:
    """What the scenario breaks, by name, each with its first detail."""
    checker = Checker(world, strict=False)
    scenario(world)
    found: dict[str, str] = {}
    for broken in checker.broken:
        found.setdefault(broken.name, broken.detail)
    return found


def test_an_elr_that_lacks_what_consumers_saw_is_caught_in_the_data() -> None:
    config = replace(QUICK, high_watermark_needs_min_isr=False)
    found = _names(_last_replica_standing, World(topology(acks=1, config=config), 1))
    assert DataPromise.ELR_HOLDS_HIGH_WATERMARK in found
    assert DataPromise.HIGH_WATERMARK_KEPT in found, "2 was elected without what 3 had shown"


def _late_alter_partition(world: World) -> None:
    """KAFKA-14139: the follower catches up, the request to add it is late, and it loses its disk meanwhile."""
    world.kill_broker(2)
    until(world, lambda: foo(world).isr == (1,))
    world.start_broker(2)
    until(world, lambda: not world.image.brokers[2].fenced)
    world.loop.run_for(10 * SECOND)
    world.kill_broker(2)
    until(world, lambda: foo(world).isr == (1,))
    for number in world.topology.controllers:
        world.network.delay(broker(1), controller(number), 10 * SECOND, ALTER_PARTITION)
    world.start_broker(2)
    until(world, lambda: FOO in world.disks[2].logs and isr_change_pending(world))
    epoch = world.image.brokers[2].epoch
    world.kill_broker(2)
    world.replace_log_dir(2, 0)
    # 2 must not catch up again before the late request arrives: that would make it right after all.
    world.network.cut([broker(1)], [broker(2)])
    world.start_broker(2)
    until(world, lambda: world.image.brokers[2].epoch > epoch and not world.image.brokers[2].fenced)
    world.loop.run_for(20 * SECOND)
    world.network.heal_all()


def test_the_race_of_a_late_alter_partition_is_caught_without_the_broker_epoch_check() -> None:
    config = replace(QUICK, broker_epoch_check=False)
    _caught(
        DataPromise.ISR_HOLDS_HIGH_WATERMARK,
        lambda seed: _late_alter_partition(cluster(topology(2, min_isr=1, config=config), seed)),
    )


def test_the_race_is_harmless_with_the_broker_epoch_check() -> None:
    config = QUICK
    for seed in range(1, 6):
        world = cluster(topology(2, min_isr=1, config=config), seed)
        _late_alter_partition(world)
        assert foo(world).isr == (1,)
        assert any("INELIGIBLE_REPLICA" in line.what for line in world.history.lines)


def test_acknowledged_records_lost_with_one_unclean_shutdown_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A controller that takes every registration for a clean one leaves the damaged replica in the ELR."""
    register = rules.register

    def trusting(
        image: ClusterImage,
        number: int,
        epoch: int,
        _previous: int,
        directories: tuple[str, ...],
        *,
        incarnation: int,
    ) -> object:
        clean = image.brokers[number].epoch
        return register(image, number, epoch, clean, directories, incarnation=incarnation)

    monkeypatch.setattr("backends.simulator.controller.broker_sessions.register", trusting)

    def scenario(world: World) -> None:
        world.loop.run_for(3 * SECOND)
        world.shut_down_broker(1)
        until(world, lambda: foo(world).isr == (2, 3))
        world.power_off([3])
        until(world, lambda: foo(world).isr == (2,))
        isolate(world, 2)
        until(world, lambda: foo(world).leader == -1)
        world.start_broker(3)
        world.loop.run_for(20 * SECOND)

    found = _names(scenario, World(topology(), 1))
    assert DataPromise.ACKNOWLEDGED_KEPT in found
    assert DataPromise.HIGH_WATERMARK_KEPT in found


def test_a_follower_that_does_not_truncate_is_caught_by_log_matching(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backends.simulator.broker.fetch_sessions._divergence", lambda _log, _position: None)

    def run(seed: int) -> None:
        world = cluster(topology(acks=1), seed)
        world.loop.run_for(3 * SECOND)
        isolate(world, 1)
        until(world, lambda: foo(world).leader == 2)
        world.loop.run_for(5 * SECOND)
        world.network.heal_all()
        world.loop.run_for(20 * SECOND)

    _caught(DataPromise.LOG_MATCHING, run)


def test_a_second_leader_of_an_epoch_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that takes the leadership of what it follows."""
    take = PartitionLeader.take
    original = PartitionLeader.drop

    def drop(leader: PartitionLeader, tp: object) -> None:
        partition = leader.state.image.partitions[FOO]
        if partition.leader == 1 and leader.id == 2 and leader.state.offset > 1:
            take(leader, FOO, partition)
        else:
            original(leader, FOO)

    monkeypatch.setattr(PartitionLeader, "drop", drop)

    def run(seed: int) -> None:
        world = cluster(topology(), seed)
        world.kill_broker(3)
        world.loop.run_for(10 * SECOND)
        world.shut_down_broker(1)
        world.loop.run_for(10 * SECOND)
        world.start_broker(1)
        world.loop.run_for(10 * SECOND)
        world.shut_down_broker(2)
        world.loop.run_for(10 * SECOND)
        world.start_broker(2)
        world.loop.run_for(10 * SECOND)

    _caught(DataPromise.ONE_LEADER_AN_EPOCH, run)


def test_a_high_watermark_that_falls_within_an_epoch_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    end = Leadership.replicated

    def falling(lead: Leadership, leader: int, log_end: int) -> int:
        return end(lead, leader, log_end) - (40 if log_end % 100 == 0 else 0)

    monkeypatch.setattr(Leadership, "replicated", falling)
    advance = PartitionLeader.advance

    def without_check(leader: PartitionLeader, tp: object, lead: Leadership) -> None:
        log = leader.storage.log(FOO)
        if lead.replicated(1, log.end) < log.high_watermark:
            leader.storage.write(FOO, log._replace(high_watermark=0))
        advance(leader, FOO, lead)

    monkeypatch.setattr(PartitionLeader, "advance", without_check)
    _caught(DataPromise.HIGH_WATERMARK_RISES, lambda seed: cluster(topology(), seed).loop.run_for(5 * SECOND))


def test_an_elr_kept_at_min_isr_is_caught_by_the_metadata_rules() -> None:
    world = World(topology(acks=None), 1)
    checker = Checker(world, strict=False)
    world.kill_broker(3)
    until(world, lambda: foo(world).isr == (1, 2))
    broken = foo(world)._replace(elr=(3,), partition_epoch=foo(world).partition_epoch + 1)
    table = {FOO: broken}
    after = replace(world.image, partitions=table)
    change = PartitionChange(elr=(3,))
    world.events.emit(MetadataWritten(world.image, after, {FOO: change}, "by hand"))
    checker.settle()
    assert [found.name for found in checker.broken] == [Invariant.ELR_ONLY_UNDER_MIN_ISR]


def test_a_loss_that_an_operator_chose_is_reported_and_breaks_nothing() -> None:
    world = World(topology(acks=-1), 1)
    checker = Checker(world)
    world.loop.run_for(3 * SECOND)
    world.power_off([1, 2, 3])
    until(world, lambda: foo(world).leader == -1)
    world.start_broker(3)
    world.loop.run_for(20 * SECOND)
    assert not checker.broken
    assert all(lost.excuse for lost in checker.lost)
    assert isinstance(world.disks[3].logs[FOO], Log)


def _with_a_consumer(made: Topology) -> Topology:
    return replace(made, consumers=(ConsumerSpec("foo", (0,), SECOND // 10),))


def test_a_leader_that_shows_what_is_not_replicated_yet_is_caught_by_its_consumers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Consumers read to the log's end: what they saw goes with the leader that alone had it."""
    whole = BrokerProcess._consume

    def beyond(process: BrokerProcess, body: Consume, answer: Answer) -> None:
        log = process.storage.log(body.tp)
        process.storage.disk.logs[body.tp] = log._replace(high_watermark=log.end)
        try:
            whole(process, body, answer)
        finally:
            process.storage.disk.logs[body.tp] = log

    monkeypatch.setattr(BrokerProcess, "_consume", beyond)

    def run(seed: int) -> None:
        world = cluster(_with_a_consumer(topology(acks=1)), seed)
        world.loop.run_for(3 * SECOND)
        isolate(world, 1)
        until(world, lambda: foo(world).leader == 2)
        world.loop.run_for(5 * SECOND)

    _caught(DataPromise.READ_KEPT, run)


def test_consumers_read_what_is_committed_and_nothing_that_goes_with_a_clean_succession() -> None:
    world = cluster(_with_a_consumer(topology(acks=1)), 1)
    world.loop.run_for(3 * SECOND)
    (consumer,) = world.consumers
    first = consumer.read
    assert first > 0
    isolate(world, 1)
    until(world, lambda: foo(world).leader == 2)
    world.network.heal_all()
    until(world, lambda: consumer.read > first + 100)


def test_who_was_elected_uncleanly_may_be_cut_off_and_lead_only_after_a_clean_election() -> None:
    """Seed 10537: broker 2 is elected uncleanly in epoch 4, never hears of it, is fenced, and is elected in epoch 6
    as the only member of the ELR. What its log lacks was given up with epoch 4.
    """
    world, checker = prepare(10_537)
    taken: list[int] = []

    def look(event: Event) -> None:
        if isinstance(event, LeadershipTaken) and event.tp.partition == 0:
            taken.append(event.epoch)

    world.events.subscribers.append(look)
    run(world, 10_537, 60)
    checker.settle()
    assert 2 in taken and 4 not in taken and 6 in taken
    assert not checker.broken, str(checker.broken[0])


@pytest.mark.parametrize("seed", [16_316, 19_050])
def test_what_was_given_up_is_no_broken_promise(seed: int) -> None:
    """16316: a replica that has no log yet is elected uncleanly. 19050: a controller loses its disk after the
    upgrade to kraft.version 1, and votes for one that has not heard of it and counts it by its node id.
    """
    result = random_history(seed)
    assert not result.failed, result.error or str(result.broken[0])
