"""One random incident of a drill, determined by its seed: the same for every recovery method until the
recovery starts.

Three brokers, one topic, a producer with acks=all and one with acks=1. Within seconds of virtual time all
three brokers fail, one after the other, and some return and fail again, until a partition has no leader. Then
some come back, the operator starts, and later the others come back too, unless their disk is lost. An
incident is small, so that a hundred thousand can be run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from random import Random
from typing import Literal

from backends.base.judged_partitions import UNCLEAN_ELECTION
from backends.simulator.config import Config
from backends.simulator.loop import MILLISECOND, SECOND
from backends.simulator.scenario.build import Scenario
from backends.simulator.scenario.faults import BrokerFault, ConfigFault, DiskFault, ElectionFault, Fault
from backends.simulator.scenario.files import read
from backends.simulator.topology import BrokerSpec, ProducerSpec, TopicSpec, Topology
from recovery.controller.rules import ControllerRules

TOPIC = "orders"
PARTITIONS = 2
BROKERS = (1, 2, 3)
RECORDS = 100
OPERATOR_AT = 17.0
REST_BACK_AT = 20.0
OPERATOR_AGAIN_AT = 24.0
"""When the operator looks again: those who were waited for are back, or will not help."""
END = 30.0


class IncidentShape(StrEnum):
    """KILLS: processes die, the page cache stays. POWER: what was not flushed is lost. DISKS: as POWER, and
    one broker's disk does not come back. LONG_TAIL: an unclean election during the failures, so that a stale
    log is the longest. NO_ELR: as POWER, on a cluster without the ELR. SELF_ELECTING: as POWER, with
    unclean.leader.election.enable on the topic. FAILED_DISK: a log dir fails under a broker that goes on running,
    and is replaced when the rest come back.
    """

    KILLS = "kills"
    POWER = "power"
    DISKS = "disks"
    LONG_TAIL = "long-tail"
    NO_ELR = "no-elr"
    SELF_ELECTING = "self-electing"
    FAILED_DISK = "failed-disk"


_Do = Literal["kill", "power-off", "start"]

SHAPES = frozenset(shape.value for shape in IncidentShape)


def scenario(name: str, seed: int, rules: ControllerRules, min_isr: int | None) -> Scenario:
    """A random incident of that kind, or a scenario that comes with ktriage, with those controller rules.

    Raises ScenarioError for a name that is neither.
    """
    if name in SHAPES:
        shape = IncidentShape(name)
        elr = rules.elr and shape is not IncidentShape.NO_ELR
        return _drawn(shape, seed, replace(rules, elr=elr), min_isr or 1)
    found = read(name)
    topology = replace(found.topology, config=replace(found.topology.config, rules=rules))
    if min_isr is not None:
        topics = tuple(replace(topic, min_isr=None) for topic in topology.topics)
        topology = replace(topology, min_isr=min_isr, topics=topics)
    return replace(found, topology=topology)


def _drawn(shape: IncidentShape, seed: int, rules: ControllerRules, min_isr: int) -> Scenario:
    random = Random(f"drill {shape} {seed}")  # noqa: S311  # seeded: the same numbers again
    faults = tuple(sorted(_faults(shape, random), key=lambda fault: fault.at))
    name = f"{shape.value}@{seed}"
    return Scenario(
        name,
        name,
        "",
        "",
        _topology(name, random, rules, min_isr, log_dirs=2 if shape is IncidentShape.FAILED_DISK else 1),
        faults,
        round(OPERATOR_AT * SECOND),
        (),
        0,
        (),
    )


def _topology(name: str, random: Random, rules: ControllerRules, min_isr: int, *, log_dirs: int) -> Topology:
    assignments = tuple(tuple(random.sample(BROKERS, 3)) for _ in range(PARTITIONS))
    config = Config(
        rules=rules,
        broker_heartbeat_interval=SECOND,
        broker_session_timeout=3 * SECOND,
        replica_lag_time_max=2 * SECOND,
        flush_interval=random.choice((1, 30)) * SECOND,
        unclean_election_interval=600 * SECOND,
        auto_leader_rebalance=False,
        unclean_recovery_timeout=3 * SECOND,
    )
    partitions = tuple(range(PARTITIONS))
    interval = random.choice((300, 500, 700)) * MILLISECOND
    stop = round((END - 3) * SECOND)
    producers = (
        ProducerSpec(TOPIC, partitions, -1, random.choice((5, 20)), interval, stop=stop),
        ProducerSpec(TOPIC, partitions, 1, random.choice((5, 50)), 2 * interval, 100 * MILLISECOND, stop),
    )
    brokers = tuple(BrokerSpec(number, log_dirs=log_dirs) for number in BROKERS)
    topics = (TopicSpec(TOPIC, PARTITIONS, assignments, records=RECORDS),)
    return Topology(name, brokers, topics, (100,), min_isr, config, producers=producers)


def _faults(shape: IncidentShape, random: Random) -> Iterator[Fault]:
    if shape is IncidentShape.LONG_TAIL:
        yield from _long_tail(random)
        return
    if shape is IncidentShape.SELF_ELECTING:
        yield ConfigFault(at=0.5, do="set-config", topic=TOPIC, name=UNCLEAN_ELECTION, value="true")
    if shape is IncidentShape.FAILED_DISK:
        yield from _failed_disk(random)
        return
    order = random.sample(BROKERS, 3)
    kinds: tuple[_Do, ...] = ("kill",) if shape is IncidentShape.KILLS else ("kill", "power-off", "power-off")
    at = 2.0
    for broker in order:
        yield _broker(at, random.choice(kinds), broker)
        if random.random() < 0.35 and broker != order[-1]:
            yield _broker(at + 3.5, "start", broker)
            yield _broker(at + random.uniform(4, 6), random.choice(kinds), broker)
        at += random.choice((0.05, random.uniform(0.3, 4.5)))
    back = random.sample(BROKERS, random.choice((1, 2, 2)))
    for broker in back:
        yield _broker(random.uniform(13.5, 15.0), "start", broker)
    rest = [broker for broker in BROKERS if broker not in back]
    gone = random.choice(rest) if shape is IncidentShape.DISKS else 0
    for broker in rest:
        if broker == gone:
            yield DiskFault(at=REST_BACK_AT - 0.5, do="replace-disk", node=f"broker-{broker}")
        yield _broker(REST_BACK_AT, "start", broker)


def _failed_disk(random: Random) -> Iterator[Fault]:
    """The others drop out one after another, and the log dir of the last one fails while its process runs."""
    failing, *others = random.sample(BROKERS, 3)
    kinds: tuple[_Do, ...] = ("kill", "power-off")
    at = 2.0
    for broker in others:
        yield _broker(at, random.choice(kinds), broker)
        at += random.choice((0.05, random.uniform(0.3, 4.5)))
    log_dir = random.choice((0, 1))  # the other one keeps the process up
    disk = f"broker-{failing}"
    yield DiskFault(at=at + random.uniform(0.1, 3.0), do="break-disk", node=disk, log_dir=log_dir)
    back = random.sample(others, random.choice((1, 2, 2)))
    for broker in others:
        yield _broker(random.uniform(13.5, 15.0) if broker in back else REST_BACK_AT, "start", broker)
    yield _broker(REST_BACK_AT - 0.6, "kill", failing)
    yield DiskFault(at=REST_BACK_AT - 0.5, do="replace-disk", node=disk, log_dir=log_dir)
    yield _broker(REST_BACK_AT, "start", failing)


def _long_tail(random: Random) -> Iterator[Fault]:
    """One broker stays alone, takes records and dies; another is elected uncleanly, takes other records, and
    dies too.
    """
    alone, second, third = random.sample(BROKERS, 3)
    yield _broker(1.0, "kill", second)
    yield _broker(1.1, "kill", third)
    yield _broker(random.uniform(5.0, 6.5), "kill", alone)
    yield _broker(6.6, "start", second)
    yield ElectionFault(
        at=8.2,
        do="elect",
        kind="unclean",
        partitions=tuple(f"{TOPIC}-{number}" for number in range(PARTITIONS)),
    )
    yield _broker(random.uniform(8.3, 9.5), "start", third)
    yield _broker(random.uniform(10.6, 11.4), "kill", second)
    yield _broker(11.5, "kill", third)
    back = (alone, random.choice((second, third)))
    for broker in back:
        yield _broker(13.5, "start", broker)
    for broker in BROKERS:
        if broker not in back:
            yield _broker(REST_BACK_AT, "start", broker)


def _broker(at: float, do: _Do, broker: int) -> BrokerFault:
    return BrokerFault(at=at, do=do, nodes=(f"broker-{broker}",))
