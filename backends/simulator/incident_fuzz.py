"""Random incidents that leave partitions without a leader, to hold verdicts against: the ELR on and off, power
losses, failed and emptied disks, unclean elections by the topic's own setting, brokers that stay down, and
transactions that are committed, aborted, and left open.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from backends.simulator import fuzz
from backends.simulator.fuzz import FAULTS, PARTITIONS, TOPIC, FuzzResult
from backends.simulator.loop import SECOND
from backends.simulator.messages import SetConfig
from backends.simulator.quorum_faults import Fault
from backends.simulator.topology import ProducerSpec, Topology, TransactionSpec
from backends.simulator.world import World
from recovery.controller.rules import ControllerRules, UncleanRecoveryStrategy

INCIDENT_SECONDS = 45


def fuzz_incident(seed: int, seconds: int = INCIDENT_SECONDS) -> FuzzResult:
    """One run of ``seconds`` of virtual time."""
    result = fuzz.judged_run(incident_topology(seed), seed, seconds, INCIDENT_FAULTS)
    return replace(result, incident=True)


def incident_topology(seed: int) -> Topology:
    """As the fuzzer's, with the ELR off in half of them."""
    drawn = fuzz.topology(seed)
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
    fuzz.tell(world, SetConfig(TOPIC, "unclean.leader.election.enable", value))


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
