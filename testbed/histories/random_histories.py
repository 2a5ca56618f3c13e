"""Random histories: a small cluster, random faults, and every invariant checked at every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from random import Random
from typing import Any

from backends.simulator.config import Config
from backends.simulator.invariants.checker import Checker
from backends.simulator.invariants.promises import BrokenInvariant, LostRecords
from backends.simulator.loop import MILLISECOND, SECOND
from backends.simulator.messages import ElectLeaders, Reassign, SetConfig, UpdateFeature
from backends.simulator.network import NetworkConditions, broker, controller
from backends.simulator.scenario.build import Scenario
from backends.simulator.simulation import Simulation
from backends.simulator.topology import BrokerSpec, ConsumerSpec, ProducerSpec, TopicSpec, Topology
from backends.simulator.world import World
from recovery.controller.rules import ELR_FEATURE, KIP_966, ControllerRules, UncleanRecoveryStrategy
from recovery.controller.transition_targets import ElectionKind
from recovery.membership.quorum import MembershipRules
from recovery.model import NO_LEADER, TopicPartition
from testbed.histories.incident_operator import IncidentOperator
from testbed.histories.quorum_faults import QUORUM_FAULTS, Fault
from testbed.histories.verdict_soundness import VerdictCounts, VerdictSoundness

Faults = Mapping[str, tuple[int, Fault]]
"""By name: how often one happens in relation to the others, and what it does."""

TOPIC = "fuzz"
PARTITIONS = 3


@dataclass(frozen=True, slots=True)
class HistoryResult:
    """The run of one seed: broken invariants, excused losses, the digest of the history, and its verdicts."""

    seed: int
    steps: int
    broken: tuple[BrokenInvariant, ...]
    lost: tuple[LostRecords, ...]
    digest: str
    error: str = ""
    verdicts: VerdictCounts = field(default_factory=VerdictCounts)
    incident: bool = False
    operator: bool = False

    @property
    def failed(self) -> bool:
        return bool(self.broken or self.error)

    @property
    def replay(self) -> str:
        """The command that runs this seed again, with its history."""
        name = "operator" if self.operator else "verdicts" if self.incident else "simulator"
        return f"python -m benchmarks.soak {name} --first {self.seed} --rounds 1"


def random_history(seed: int, seconds: int = 60) -> HistoryResult:
    """One run of ``seconds`` of virtual time."""
    return judged_run(topology(seed), seed, seconds, FAULTS)


def judged_run(
    made: Topology,
    seed: int,
    seconds: int,
    faults: Faults,
    first: Fault | None = None,
    *,
    operator: bool = False,
) -> HistoryResult:
    """One run of ``faults`` on the cluster ``made``, after ``first``; before each fault every verdict is held
    against the truth. With ``operator``, an operator looks in and elects meanwhile.
    """
    simulation = Simulation(without_faults(made), seed)
    world, checker = simulation.world, simulation.checker
    if first is not None:
        first(world, _random(seed, "first"))
    soundness = VerdictSoundness(world, checker.known, _random(seed, "verdicts"))
    looking = IncidentOperator(simulation, soundness, _random(seed, "operator")) if operator else None

    def judge() -> None:
        checker.settle()
        checker.broken.extend(
            BrokenInvariant(world.loop.now, name, detail)
            for name, detail in chain(soundness.judge_all(), looking.broken_promises() if looking else ())
        )

    error = ""
    try:
        run(world, seed, seconds, faults=faults, before_fault=judge)
        judge()
    except Exception as failed:  # any exception is the result of this seed
        error = f"{type(failed).__name__}: {failed}"
    finally:
        if looking is not None:
            looking.close()
    return HistoryResult(
        seed,
        world.loop.steps,
        tuple(checker.broken),
        tuple(checker.lost),
        world.history.digest(),
        error,
        soundness.counts,
        operator=operator,
    )


def without_faults(made: Topology) -> Scenario:
    """That cluster, with an operator from the beginning."""
    return Scenario(made.name, made.name, "", "", made, (), 0, (), 0, ())


def prepare(seed: int) -> tuple[World, Checker]:
    """The world of that seed at time 0, and its checker."""
    world = World(topology(seed), seed)
    return world, Checker(world, strict=False)


def run(
    world: World,
    seed: int,
    seconds: int,
    only: tuple[str, ...] | None = None,
    *,
    faults: Faults | None = None,
    before_fault: Callable[[], None] = lambda: None,
) -> None:
    """Faults for two thirds of the time; then everything is repaired and has time to settle.

    ``only`` names the faults that may happen; None means all of ``faults``, by default :data:`FAULTS`.
    ``before_fault`` is called before each.
    """
    random = _random(seed, "faults")
    drawn = FAULTS if faults is None else faults
    quiet = seconds * SECOND * 2 // 3
    while world.loop.now < quiet:
        world.loop.run_for(random.randrange(100 * MILLISECOND, 4 * SECOND))
        before_fault()
        names = list(drawn if only is None else only)
        name = random.choices(names, [drawn[name][0] for name in names])[0]
        world.history.add("fuzz", name)
        drawn[name][1](world, random)
    mend(world)
    world.loop.run_until(seconds * SECOND)


def mend(world: World) -> None:
    """Heal every cut and start every node."""
    world.history.add("fuzz", "mend")
    world.network.heal_all()
    for number in world.specs:
        world.start_broker(number)
    for number in world.topology.every_controller:
        world.start_controller(number)


def topology(seed: int) -> Topology:
    """A cluster drawn from the seed: mostly with the rules of released Kafka, otherwise with all of KIP-966."""
    random = _random(seed, "topology")
    count = random.choice((3, 3, 4, 5))
    ids = tuple(range(1, count + 1))
    assignments = tuple(tuple(random.sample(ids, 3)) for _ in range(PARTITIONS))
    strategy = random.choice((UncleanRecoveryStrategy.BALANCED,) * 3 + tuple(UncleanRecoveryStrategy))
    rules = replace(random.choice((ControllerRules(), ControllerRules(), KIP_966)), strategy=strategy)
    config = Config(
        rules=rules,
        broker_heartbeat_interval=SECOND // 2,
        broker_session_timeout=3 * SECOND,
        replica_lag_time_max=random.choice((2, 5)) * SECOND,
        flush_interval=random.choice((1, 10, 600)) * SECOND,
        unclean_election_interval=10 * SECOND,
        leader_rebalance_interval=10 * SECOND,
        unclean_recovery_timeout=5 * SECOND,
        **_quorum(_random(seed, "quorum")),
    )
    log_dirs = random.choice((1, 1, 2))
    acks = random.choice((-1, -1, 1))
    return Topology(
        f"fuzz-{seed}",
        tuple(BrokerSpec(number, log_dirs=log_dirs) for number in ids),
        (TopicSpec(TOPIC, PARTITIONS, assignments, records=100),),
        min_isr=random.choice((1, 2, 2, 3)),
        config=config,
        weather=NetworkConditions(loss=random.choice((0.0, 0.0, 0.01))),
        producers=(
            ProducerSpec(TOPIC, tuple(range(PARTITIONS)), acks, 5, 200 * MILLISECOND),
            ProducerSpec(TOPIC, (0,), -1, 5, 300 * MILLISECOND),
        ),
        spare_controllers=(103, 104),
        consumers=(ConsumerSpec(TOPIC, tuple(range(PARTITIONS)), 250 * MILLISECOND),),
    )


def _quorum(random: Random) -> dict[str, Any]:
    return {
        "kraft_version": random.choice((1, 1, 1, 1, 1, 0)),
        "auto_join": random.random() < 0.3,
        "metadata_records_retained": random.choice((10, 512)),
        "membership": MembershipRules(duplicate_ids=random.random() < 0.2),
    }


def _random(seed: int, what: str) -> Random:
    # One stream per part, so that a change of one part does not shift the draws of the others.
    return Random(f"{what} {seed}")  # noqa: S311  # seeded: the same numbers again


def _any_broker(world: World, random: Random) -> int:
    return random.choice(list(world.specs))


def _kill(world: World, random: Random) -> None:
    world.kill_broker(_any_broker(world, random))


def _power_off(world: World, random: Random) -> None:
    count = random.choice((1, 1, 2))
    world.power_off(random.sample(list(world.specs), count))


def _start(world: World, _random: Random) -> None:
    for number in world.specs:
        world.start_broker(number)


def _shut_down(world: World, random: Random) -> None:
    world.shut_down_broker(_any_broker(world, random))


def _cut_brokers(world: World, random: Random) -> None:
    one, other = random.sample(list(world.specs), 2)
    world.network.cut([broker(one)], [broker(other)], one_way=random.random() < 0.3)


def _cut_controllers(world: World, random: Random) -> None:
    controllers = [controller(number) for number in world.topology.every_controller]
    world.network.cut([broker(_any_broker(world, random))], controllers, one_way=random.random() < 0.3)


def _isolate(world: World, random: Random) -> None:
    alone = broker(_any_broker(world, random))
    world.network.cut([alone], [node for node in world.nodes() if node != alone])


def _heal(world: World, _random: Random) -> None:
    world.network.heal_all()


def _slow(world: World, random: Random) -> None:
    source = broker(_any_broker(world, random))
    extra = random.randrange(100 * MILLISECOND, 5 * SECOND)
    for number in world.topology.every_controller:
        world.network.delay(source, controller(number), extra, "alter-partition")


def _failover(world: World, random: Random) -> None:
    number = random.choice(world.topology.controllers)
    world.start_controller(number)
    world.failover(number)


def _break_disk(world: World, random: Random) -> None:
    number = _any_broker(world, random)
    world.break_log_dir(number, random.randrange(len(world.disks[number].directories)))


def _replace_disks(world: World, _random: Random) -> None:
    for number, disk in world.disks.items():
        for index, directory in enumerate(disk.directories):
            if directory.broken:
                world.kill_broker(number)
                world.replace_log_dir(number, index)
        world.start_broker(number)


def tell(world: World, body: object) -> None:
    active = world.active
    if active is not None and active.active is not None:
        active.active.handle(body, lambda _reply: None)


def _elect(world: World, random: Random) -> None:
    kind = random.choice(
        (ElectionKind.PREFERRED, ElectionKind.PREFERRED, ElectionKind.UNCLEAN, ElectionKind.DESIGNATED)
    )
    tp = TopicPartition(TOPIC, random.randrange(PARTITIONS))
    if tp not in world.image.partitions:
        return  # its topic is being deleted and made again
    leader = random.choice(world.image.partitions[tp].replicas)
    chosen = leader if kind is ElectionKind.DESIGNATED else NO_LEADER
    tell(world, ElectLeaders(kind, ((tp, chosen),)))


def _min_isr(world: World, random: Random) -> None:
    tell(world, SetConfig(TOPIC, "min.insync.replicas", str(random.choice((1, 2, 3)))))


def _reassign(world: World, random: Random) -> None:
    tp = TopicPartition(TOPIC, random.randrange(PARTITIONS))
    target = None if random.random() < 0.3 else tuple(random.sample(list(world.specs), 3))
    tell(world, Reassign(((tp, target),), True))


def _elr(world: World, random: Random) -> None:
    tell(world, UpdateFeature(ELR_FEATURE, random.randrange(2)))


# name → (relative frequency, the fault).
FAULTS: Faults = {
    "kill": (8, _kill),
    "power off": (6, _power_off),
    "start all": (14, _start),
    "shut down": (5, _shut_down),
    "cut two brokers": (6, _cut_brokers),
    "cut from the controllers": (5, _cut_controllers),
    "isolate": (3, _isolate),
    "heal": (12, _heal),
    "slow requests for the ISR": (4, _slow),
    "failover": (3, _failover),
    "break a disk": (2, _break_disk),
    "replace disks": (3, _replace_disks),
    "elect": (4, _elect),
    "min ISR": (1, _min_isr),
    "reassign": (3, _reassign),
    "ELR feature": (1, _elr),
    **QUORUM_FAULTS,
}
