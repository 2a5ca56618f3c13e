"""Random incidents that leave partitions without a leader, to hold verdicts against: the ELR on and off, power
losses, failed and emptied disks, unclean elections by the topic's own setting, brokers that stay down, and
transactions that are committed, aborted, and left open; topics that are deleted and made again, brokers that obey
different values of min.insync.replicas, and leaders that are cut off from the controllers.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from backends.simulator.loop import MILLISECOND, SECOND
from backends.simulator.messages import CreateTopic, DeleteTopic, ElectLeaders, SetConfig
from backends.simulator.network import broker, controller
from backends.simulator.topology import ProducerSpec, Topology, TransactionSpec
from backends.simulator.world import World
from recovery.controller.rules import MIN_ISR, ControllerRules, UncleanRecoveryStrategy
from recovery.controller.transition_targets import ElectionKind
from recovery.model import TopicPartition
from testbed.histories.quorum_faults import Fault
from testbed.histories.random_histories import (
    FAULTS,
    PARTITIONS,
    TOPIC,
    HistoryResult,
    judged_run,
    tell,
    topology,
)

INCIDENT_SECONDS = 45
BROKERS_DIFFER = True


def random_incident(
    seed: int,
    seconds: int = INCIDENT_SECONDS,
    *,
    brokers_differ: bool = BROKERS_DIFFER,
    operator: bool = False,
) -> HistoryResult:
    """One run of ``seconds`` of virtual time. ``brokers_differ``: with the faults of :data:`DIFFERING_BROKERS`.
    ``operator``: somebody looks in and elects meanwhile, by the code that does so in production.
    """
    made = incident_topology(seed)
    if brokers_differ:
        made = with_differing_brokers(made, seed)
    faults = {**INCIDENT_FAULTS, **DIFFERING_BROKERS} if brokers_differ else INCIDENT_FAULTS
    first = _begin_differing if brokers_differ else None
    result = judged_run(made, seed, seconds, faults, first, operator=operator)
    return replace(result, incident=True)


def with_differing_brokers(made: Topology, seed: int) -> Topology:
    """Half of the clusters without the ELR have files that differ, and nothing that is set for the whole cluster.
    Configurations come late after leaderships, and most producers stay with a leader until it refuses.
    """
    random = Random(f"differing brokers {seed}")  # noqa: S311  # seeded: the same numbers again
    in_files = random.random() < 0.5 and not made.config.rules.elr
    brokers = tuple(
        replace(spec, min_isr=random.choice((1, 2, 2, 3)) if in_files else None) for spec in made.brokers
    )
    late = random.choice((1, 30, 100, 300)) * MILLISECOND
    keeps = random.random() < 0.7
    producers = tuple(replace(producer, keeps_leader=keeps) for producer in made.producers)
    config = replace(made.config, publish_time=late)
    return replace(made, brokers=brokers, producers=producers, config=config)


def incident_topology(seed: int) -> Topology:
    """As those of random histories, with the ELR off in half of them."""
    drawn = topology(seed)
    random = Random(f"incident {seed}")  # noqa: S311  # seeded: the same numbers again
    elr = random.random() < 0.5
    strategy = random.choice((UncleanRecoveryStrategy.BALANCED,) * 5 + (UncleanRecoveryStrategy.AGGRESSIVE,))
    rules = ControllerRules(elr=elr, strategy=strategy)
    config = replace(
        drawn.config,
        rules=rules,
        flush_interval=random.choice((1, 3, 10, 600)) * SECOND,
    )
    acks = random.choice((-1, -1, 1))
    return replace(
        drawn,
        config=config,
        min_isr=random.choice((1, 2, 2, 2, 2, 3)),
        producers=(
            ProducerSpec(TOPIC, tuple(range(PARTITIONS)), acks, 5, SECOND // 10),
            ProducerSpec(TOPIC, tuple(range(PARTITIONS)), -1, 5, SECOND // 10),
        ),
        transactions=(
            TransactionSpec(TOPIC, tuple(range(PARTITIONS)), 3, 3, SECOND // 5, 5 * SECOND),
            TransactionSpec(TOPIC, (0,), 2, 5, SECOND // 3, 3 * SECOND),
        ),
    )


def _start_one(world: World, random: Random) -> None:
    world.start_broker(random.choice(list(world.specs)))


def _unclean_topic(world: World, random: Random) -> None:
    value = random.choice(("true", "false", "false"))
    tell(world, SetConfig(TOPIC, "unclean.leader.election.enable", value))


def _power_off_all(world: World, _random: Random) -> None:
    world.power_off(list(world.specs))


_WEIGHTS = {
    "kill": 18,
    "power off": 8,
    "start all": 2,
    "shut down": 6,
    "cut two brokers": 4,
    "cut from the controllers": 4,
    "isolate": 4,
    "heal": 10,
    "slow requests for the ISR": 3,
    "failover": 2,
    "break a disk": 3,
    "replace disks": 4,
    "elect": 5,
    "min ISR": 2,
    "reassign": 3,
    "ELR feature": 1,
}

INCIDENT_FAULTS: dict[str, tuple[int, Fault]] = {
    **{name: (weight, FAULTS[name][1]) for name, weight in _WEIGHTS.items()},
    "start one": (14, _start_one),
    "unclean topic": (1, _unclean_topic),
    "power off all": (2, _power_off_all),
}


def _make_the_topic_again(world: World, random: Random) -> None:
    """With other replicas, and mostly without a value of its own."""
    brokers = list(world.specs)
    assignments = tuple(tuple(random.sample(brokers, 3)) for _ in range(PARTITIONS))
    alive = {number for number, registration in world.image.brokers.items() if registration.active}
    if not all(alive.intersection(replicas) for replicas in assignments):
        return  # it could be deleted, and not be made
    tell(world, DeleteTopic(TOPIC))
    tell(world, CreateTopic(TOPIC, assignments, random.choice((None, None, 1, 2))))


def _min_isr_somewhere(world: World, random: Random) -> None:
    """At any level; None removes the value."""
    value = random.choice((None, "1", "2", "2", "3"))
    where = random.choice(("topic", "cluster", "broker", "broker"))
    broker = random.choice(list(world.specs)) if where == "broker" else None
    tell(world, SetConfig(TOPIC if where == "topic" else "", MIN_ISR, value, broker))


def _edit_a_file(world: World, random: Random) -> None:
    """Obeyed when the broker starts again."""
    world.files[random.choice(list(world.specs))] = random.choice((1, 2, 3))


def _raise_and_fail_over(world: World, random: Random) -> None:
    """In one delta, to more than an ISR has: the new leader comes to the new value after its leadership. Often it
    dies soon.
    """
    tp = TopicPartition(TOPIC, random.randrange(PARTITIONS))
    partition = world.image.partitions.get(tp)
    if partition is None:
        return
    tell(world, SetConfig(TOPIC, MIN_ISR, str(min(len(partition.isr) + 1, 3))))
    tell(world, ElectLeaders(ElectionKind.PREFERRED, None))
    if random.random() < 0.6:
        soon = random.randrange(100 * MILLISECOND, SECOND)
        world.loop.call_later(soon, lambda: world.kill_broker(partition.replicas[0]))


def _late_metadata(world: World, random: Random) -> None:
    """A broker asks late for metadata, and gets much in one delta; its heartbeats go on."""
    late = random.choice(list(world.specs))
    extra = random.randrange(100 * MILLISECOND, 3 * SECOND)
    for number in world.topology.every_controller:
        world.network.delay(broker(late), controller(number), extra, "metadata")


def _cut_off_a_leader(world: World, random: Random) -> None:
    """First it is cut off from the other brokers, alone or with one follower, so that the rest leaves the ISR; then
    they are cut off from the controllers.
    """
    led = [partition for partition in world.image.partitions.values() if partition.has_leader]
    if not led:
        return
    partition = random.choice(led)
    group = [partition.leader, *random.sample(partition.isr, min(random.randrange(2), len(partition.isr)))]
    inside = [broker(number) for number in dict.fromkeys(group)]
    world.network.cut(inside, [broker(number) for number in world.specs if number not in group])
    controllers = [controller(number) for number in world.topology.every_controller]
    one_way = random.random() < 0.3
    sides = (controllers, inside) if random.random() < 0.5 else (inside, controllers)
    world.loop.call_later(random.randrange(2, 8) * SECOND, lambda: world.network.cut(*sides, one_way=one_way))


def _begin_differing(world: World, random: Random) -> None:
    """Most of these runs begin with values that were set, and a topic that was made again, so that what follows
    meets them.
    """
    steps = random.choice(
        (
            (),
            (_min_isr_of_the_topic, _make_the_topic_again),
            (_min_isr_of_the_topic, _make_the_topic_again, _restart_one),
            (_min_isr_somewhere, _min_isr_somewhere, _min_isr_somewhere),
        )
    )
    for number, step in enumerate(steps, start=1):
        world.loop.call_later(number * SECOND, step, world, random)


def _min_isr_of_the_topic(world: World, random: Random) -> None:
    tell(world, SetConfig(TOPIC, MIN_ISR, random.choice(("2", "2", "3"))))


def _restart_one(world: World, random: Random) -> None:
    """It may bring the old value back."""
    number = random.choice(list(world.specs))
    world.kill_broker(number)
    world.loop.call_later(SECOND, world.start_broker, number)


DIFFERING_BROKERS: dict[str, tuple[int, Fault]] = {
    "make the topic again": (3, _make_the_topic_again),
    "min ISR somewhere": (7, _min_isr_somewhere),
    "edit a file": (3, _edit_a_file),
    "raise and fail over": (4, _raise_and_fail_over),
    "late metadata": (4, _late_metadata),
    "cut off a leader": (7, _cut_off_a_leader),
}
"""What makes brokers obey other values than the controllers', and acknowledge what no controller knows of."""
