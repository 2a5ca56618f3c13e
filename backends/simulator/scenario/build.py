"""Converts a checked scenario file to the values that a simulation takes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields, replace

from backends.simulator.broker.replica_log import Log
from backends.simulator.config import Config
from backends.simulator.controller.metadata_changes import LARGEST, RECOVERY_MANAGER, STRATEGY_VALUES
from backends.simulator.loop import MILLISECOND, SECOND
from backends.simulator.network import NetworkConditions, NetworkNode
from backends.simulator.permissions import EXPECTED, any_topic, is_permission
from backends.simulator.scenario.bounds import PARTITIONS
from backends.simulator.scenario.errors import MisplacedValue
from backends.simulator.scenario.fault_targets import check_fault, check_replicas, nodes
from backends.simulator.scenario.faults import Fault, TopicCreation
from backends.simulator.scenario.file_model import (
    ClusterModel,
    ConsumerModel,
    LogModel,
    ManyBrokers,
    PartitionModel,
    ScenarioModel,
    Switches,
    TopicModel,
    WorkloadModel,
)
from backends.simulator.topology import (
    BrokerSpec,
    ConsumerSpec,
    PartitionStart,
    ProducerSpec,
    TopicSpec,
    Topology,
    spread,
)
from recovery.controller.registration import Registration
from recovery.controller.rules import KIP_966, MIN_ISR, ControllerRules, UncleanRecoveryStrategy, shipped
from recovery.membership.quorum import MembershipRules
from recovery.model import NO_LEADER, EpochSpan

_MS = "ms"
_VALUE = "value"

# Kafka's name → (field of Config, unit).
CONFIGS: dict[str, tuple[str, str]] = {
    "broker.heartbeat.interval.ms": ("broker_heartbeat_interval", _MS),
    "broker.session.timeout.ms": ("broker_session_timeout", _MS),
    "replica.lag.time.max.ms": ("replica_lag_time_max", _MS),
    "replica.fetch.wait.max.ms": ("replica_fetch_wait_max", _MS),
    "replica.fetch.backoff.ms": ("replica_fetch_backoff", _MS),
    "replica.high.watermark.checkpoint.interval.ms": ("high_watermark_checkpoint_interval", _MS),
    "request.timeout.ms": ("request_timeout", _MS),
    "controller.quorum.election.timeout.ms": ("controller_election_timeout", _MS),
    "controller.quorum.fetch.timeout.ms": ("controller_fetch_timeout", _MS),
    "controller.quorum.request.timeout.ms": ("controller_request_timeout", _MS),
    "controller.quorum.auto.join.enable": ("auto_join", _VALUE),
    "metadata.max.idle.interval.ms": ("metadata_idle_interval", _MS),
    "log.flush.interval.ms": ("flush_interval", _MS),
    "leader.imbalance.check.interval.ms": ("leader_rebalance_interval", _MS),
    "leader.imbalance.per.broker.percentage": ("leader_imbalance_percentage", _VALUE),
    "auto.leader.rebalance.enable": ("auto_leader_rebalance", _VALUE),
    "unclean.leader.election.interval.ms": ("unclean_election_interval", _MS),
    "unclean.recovery.timeout.ms": ("unclean_recovery_timeout", _MS),
    "replica.fetch.max.records": ("replica_fetch_records", _VALUE),
    "max.request.partition.size.limit": ("partition_limit", _VALUE),
}


_OF_THE_CONTROLLER = (MIN_ISR, *STRATEGY_VALUES, RECOVERY_MANAGER)
"""What the controller obeys: ``min_isr``, ``strategy`` and the switch ``recovery_manager`` by Kafka's names."""
_SWITCHES = ("controller.quorum.auto.join.enable", "auto.leader.rebalance.enable")
# With 0 nothing would ever be read, or described.
_AT_LEAST_ONE = ("replica.fetch.max.records", "max.request.partition.size.limit")


@dataclass(frozen=True, slots=True)
class Scenario:
    """``digest`` is that of the file's text; a saved state belongs to exactly that text. ``operator_at`` in
    virtual µs.
    """

    name: str
    title: str
    about: str
    digest: str
    topology: Topology
    faults: tuple[Fault, ...]
    operator_at: int
    cannot_reach: tuple[NetworkNode, ...]
    offline: int
    breaks: tuple[str, ...]
    voters: tuple[int, ...] | None = None
    led: bool = True


def build(model: ScenarioModel, name: str, text: str) -> Scenario:
    """Raises MisplacedValue if parts of the file contradict each other."""
    brokers = _brokers(model.cluster)
    _few_enough(model.topics)
    topics = tuple(
        spec
        for index, topic in enumerate(model.topics)
        for spec in _topics(topic, brokers, ("topics", index))
    )
    topology = Topology(
        name,
        brokers,
        topics,
        model.cluster.controllers,
        _cluster_min_isr(model.cluster),
        replace(_config(model.cluster), denied=model.operator.denied),
        _weather(model.cluster),
        tuple(_producers(model, topics)),
        _spare(model.cluster, brokers),
        tuple(_consumers(model, topics)),
    )
    scenario = Scenario(
        name,
        model.title,
        " ".join(model.about.split()),
        hashlib.sha256(text.encode()).hexdigest(),
        topology,
        tuple(sorted(model.faults, key=lambda fault: fault.at)),
        round(model.operator.at * SECOND),
        nodes(model.operator.cannot_reach, topology, ("operator", "cannot_reach")),
        model.expect.offline,
        model.expect.breaks,
        model.expect.voters,
        model.expect.led,
    )
    for index, fault in enumerate(model.faults):
        check_fault(fault, topology, ("faults", index))
    _check_denied(model, topology)
    return scenario


def _check_denied(model: ScenarioModel, topology: Topology) -> None:
    known = {"*", *(topic.name for topic in topology.topics)}
    known |= {fault.topic for fault in model.faults if isinstance(fault, TopicCreation)}
    for index, permission in enumerate(model.operator.denied):
        path = ("operator", "denied", index)
        if not is_permission(permission):
            raise MisplacedValue(path, f"{EXPECTED}; not {permission!r}")
        if any_topic(permission) is not None and permission.split(" ")[2] not in known:
            raise MisplacedValue(path, f"a topic of the scenario, or *, in {permission!r}")


def _brokers(cluster: ClusterModel) -> tuple[BrokerSpec, ...]:
    given = cluster.brokers
    if isinstance(given, ManyBrokers):
        racks = given.racks or (None,)
        specs = [
            BrokerSpec(given.first + number, racks[number % len(racks)], given.log_dirs)
            for number in range(given.count)
        ]
    else:
        specs = [
            BrokerSpec(
                broker.id,
                broker.rack,
                broker.log_dirs,
                broker.kraft_versions,
                broker.min_isr,
                fenced=broker.down or broker.fenced,
                running=not broker.down,
                failed_log_dirs=broker.failed_log_dirs,
            )
            for broker in given
        ]
    ids = [spec.id for spec in specs]
    if len(set(ids)) != len(ids):
        raise MisplacedValue(("cluster", "brokers"), "every broker needs an id of its own")
    return tuple(specs)


def _spare(cluster: ClusterModel, brokers: tuple[BrokerSpec, ...]) -> tuple[int, ...]:
    ids = (*cluster.controllers, *cluster.spare_controllers)
    if len(set(ids)) != len(ids):
        raise MisplacedValue(("cluster", "spare_controllers"), "every controller needs an id of its own")
    both = sorted({spec.id for spec in brokers}.intersection(ids))
    if both:
        raise MisplacedValue(
            ("cluster", "controllers"), f"ids that no broker has; {both[0]} is the id of a broker"
        )
    return cluster.spare_controllers


def _topics(
    topic: TopicModel, brokers: tuple[BrokerSpec, ...], path: tuple[int | str, ...]
) -> list[TopicSpec]:
    start: tuple[PartitionStart, ...] = ()
    if topic.start is not None:
        start = tuple(
            _start(one, brokers, (*path, "start", number)) for number, one in enumerate(topic.start)
        )
        assignments = tuple(one.replicas for one in topic.start)
    elif topic.replicas is not None:
        assignments = topic.replicas
        for replicas in assignments:
            check_replicas(replicas, brokers, (*path, "replicas"))
    else:
        assert topic.replication_factor is not None
        if topic.replication_factor > len(brokers):
            raise MisplacedValue(
                (*path, "replication_factor"), f"at most {len(brokers)}, the number of brokers"
            )
        assignments = spread(brokers, topic.replication_factor)
    names = [topic.name.replace("{n}", str(number)) for number in range(topic.count)]
    own = topic.replication_factor is None
    min_isr, strategy = _min_isr(topic, path), _strategy(topic, path)
    configs = {
        name: value for name, value in topic.configs.items() if name not in (MIN_ISR, *STRATEGY_VALUES)
    }
    return [
        TopicSpec(
            name,
            topic.each,
            # The placement of each topic continues where the previous topic ended.
            assignments if own else _rotated(assignments, number * topic.partitions),
            min_isr,
            strategy,
            topic.records,
            configs,
            start,
        )
        for number, name in enumerate(names)
    ]


def _start(
    given: PartitionModel, brokers: tuple[BrokerSpec, ...], path: tuple[int | str, ...]
) -> PartitionStart:
    check_replicas(given.replicas, brokers, (*path, "replicas"))
    log_dirs = {spec.id: spec.log_dirs for spec in brokers}
    for key in ("isr", "elr", "last_known_elr", "adding", "removing"):
        if not set(getattr(given, key)).issubset(given.replicas):
            raise MisplacedValue((*path, key), f"replicas of the partition: {list(given.replicas)}")
    if given.leader is not None and given.leader not in given.isr:
        raise MisplacedValue((*path, "leader"), f"a member of the ISR {list(given.isr)}")
    logs = {}
    for broker, log in given.logs.items():
        where = (*path, "logs", broker)
        if broker not in given.replicas:
            raise MisplacedValue(where, f"one of the replicas {list(given.replicas)}")
        if log.log_dir >= log_dirs[broker]:
            raise MisplacedValue((*where, "log_dir"), f"a number below {log_dirs[broker]}")
        logs[broker] = _log(log)
    registration = Registration(
        given.replicas,
        given.isr,
        NO_LEADER if given.leader is None else given.leader,
        given.leader_epoch,
        elr=given.elr,
        last_known_elr=given.last_known_elr,
        removing=given.removing,
        adding=given.adding,
    )
    return PartitionStart(registration, logs)


def _log(given: LogModel) -> Log:
    """All of it is flushed."""
    starts = [*(start for _, start in given.epochs), given.end]
    spans = tuple(
        EpochSpan(epoch, start, end) for (epoch, start), end in zip(given.epochs, starts[1:], strict=True)
    )
    start = starts[0]
    return Log(spans, start, given.end, given.high_watermark, given.high_watermark, given.log_dir)


def _min_isr(topic: TopicModel, path: tuple[int | str, ...]) -> int | None:
    value = topic.configs.get(MIN_ISR)
    if value is None:
        return topic.min_isr
    where = (*path, "configs", MIN_ISR)
    if topic.min_isr is not None:
        raise MisplacedValue(where, "min_isr or this configuration, not both")
    if not (value.isdecimal() and 1 <= int(value) <= LARGEST):
        raise MisplacedValue(where, f"a number from 1 to {LARGEST}")
    return int(value)


def _strategy(topic: TopicModel, path: tuple[int | str, ...]) -> UncleanRecoveryStrategy | None:
    """The controller elects by it, whichever of its three names the file uses."""
    chosen = topic.strategy
    for name, values in STRATEGY_VALUES.items():
        value = topic.configs.get(name)
        if value is None:
            continue
        where = (*path, "configs", name)
        if chosen is not None:
            raise MisplacedValue(where, f"one of strategy, {' and '.join(STRATEGY_VALUES)}")
        if value not in values:
            raise MisplacedValue(where, f"one of {', '.join(values)}")
        chosen = values[value]
    return chosen


def _few_enough(topics: tuple[TopicModel, ...]) -> None:
    """Checks the total number of partitions, and that no two topics have the same name."""
    known: set[str] = set()
    partitions = 0
    for index, topic in enumerate(topics):
        partitions += topic.count * topic.each
        if partitions > PARTITIONS:
            raise MisplacedValue(("topics", index, "partitions"), f"at most {PARTITIONS:,} partitions in all")
        names = {topic.name.replace("{n}", str(number)) for number in range(topic.count)}
        if names & known:
            raise MisplacedValue(("topics", index, "name"), "a name that no other topic has")
        known |= names


def _rotated(assignments: tuple[tuple[int, ...], ...], by: int) -> tuple[tuple[int, ...], ...]:
    at = by % len(assignments)
    return (*assignments[at:], *assignments[:at])


def _config(cluster: ClusterModel) -> Config:
    values: dict[str, int] = {}
    for name, value in cluster.config.items():
        if name in _OF_THE_CONTROLLER:
            continue
        known = CONFIGS.get(name)
        if known is None:
            raise MisplacedValue(
                ("cluster", "config", name), f"one of {', '.join((*CONFIGS, *_OF_THE_CONTROLLER))}"
            )
        if isinstance(value, str):
            raise MisplacedValue(("cluster", "config", name), "a number, true or false")
        field, unit = known
        least = 1 if unit == _MS or name in _AT_LEAST_ONE else 0
        if name in _SWITCHES:
            if not isinstance(value, bool):
                raise MisplacedValue(("cluster", "config", name), "true or false")
        elif value < least or isinstance(value, bool):
            raise MisplacedValue(("cluster", "config", name), f"a number, at least {least}")
        values[field] = round(value * MILLISECOND) if unit == _MS else int(value)
    switches = cluster.switches
    rules = replace(_rules(switches), strategy=_cluster_strategy(cluster))
    if RECOVERY_MANAGER in cluster.config:
        rules = replace(rules, recovery_manager=_cluster_manager(cluster))
    old = switches.kafka == "3.9"
    detects = switches.clean_shutdown_detection
    config = Config(
        rules=rules,
        broker_epoch_check=switches.broker_epoch_check,
        high_watermark_needs_min_isr=switches.high_watermark_needs_min_isr,
        clean_shutdown_detection=not old if detects is None else detects,
        kraft_version=cluster.kraft_version,
        membership=MembershipRules(duplicate_ids=switches.duplicate_voter_ids),
        released_calls=switches.kafka == "4.4"
        if switches.released_calls is None
        else switches.released_calls,
    )
    return replace(config, **values)  # type: ignore[arg-type]  # CONFIGS names fields that hold numbers


def _cluster_min_isr(cluster: ClusterModel) -> int:
    value = cluster.config.get(MIN_ISR)
    if value is None:
        return cluster.min_isr
    where = ("cluster", "config", MIN_ISR)
    if "min_isr" in cluster.model_fields_set:
        raise MisplacedValue(where, "min_isr or this configuration, not both")
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST:
        raise MisplacedValue(where, f"a number from 1 to {LARGEST}")
    return value


def _cluster_strategy(cluster: ClusterModel) -> UncleanRecoveryStrategy:
    named = [name for name in STRATEGY_VALUES if name in cluster.config]
    if not named:
        return cluster.strategy
    where = ("cluster", "config", named[-1])
    if len(named) > 1 or "strategy" in cluster.model_fields_set:
        raise MisplacedValue(where, f"one of strategy, {' and '.join(STRATEGY_VALUES)}")
    value, values = cluster.config[named[0]], STRATEGY_VALUES[named[0]]
    # YAML has true and false of its own.
    chosen = values.get(str(value).lower() if isinstance(value, bool) else str(value))
    if chosen is None:
        raise MisplacedValue(where, f"one of {', '.join(values)}")
    return chosen


def _cluster_manager(cluster: ClusterModel) -> bool:
    value = cluster.config[RECOVERY_MANAGER]
    where = ("cluster", "config", RECOVERY_MANAGER)
    if cluster.switches.recovery_manager is not None:
        raise MisplacedValue(where, "the switch recovery_manager or this configuration, not both")
    if not isinstance(value, bool):
        raise MisplacedValue(where, "true or false")
    return value


def _rules(switches: Switches) -> ControllerRules:
    if switches.kafka == "kip-966":
        rules = KIP_966
    else:
        major, minor = (int(part) for part in switches.kafka.split("."))
        rules = shipped((major, minor), elr=(major, minor) >= (4, 0))
    own = {field.name for field in fields(ControllerRules)}
    given = {
        name: value for name, value in switches.model_dump().items() if name in own and value is not None
    }
    return replace(rules, **given)


def _weather(cluster: ClusterModel) -> NetworkConditions:
    network = cluster.network
    return NetworkConditions(
        round(network.latency_ms * MILLISECOND), round(network.jitter_ms * MILLISECOND), network.loss
    )


def _consumers(model: ScenarioModel, topics: tuple[TopicSpec, ...]) -> list[ConsumerSpec]:
    return [
        ConsumerSpec(load.topic, _used(load, topics, ("consumers", index)), round(load.every * SECOND))
        for index, load in enumerate(model.consumers)
    ]


def _used(
    load: WorkloadModel | ConsumerModel, topics: tuple[TopicSpec, ...], path: tuple[int | str, ...]
) -> tuple[int, ...]:
    """The partitions that a client uses. Raises MisplacedValue for an unknown topic or partition."""
    topic = next((topic for topic in topics if topic.name == load.topic), None)
    if topic is None:
        raise MisplacedValue((*path, "topic"), "the name of one of the topics")
    partitions = tuple(range(topic.partitions)) if load.partitions is None else load.partitions
    if any(not 0 <= number < topic.partitions for number in partitions):
        raise MisplacedValue((*path, "partitions"), f"numbers below {topic.partitions}")
    return partitions


def _producers(model: ScenarioModel, topics: tuple[TopicSpec, ...]) -> list[ProducerSpec]:
    specs = []
    for index, load in enumerate(model.workload):
        partitions = _used(load, topics, ("workload", index))
        specs.append(
            ProducerSpec(
                load.topic,
                partitions,
                -1 if load.acks == "all" else load.acks,
                load.records,
                round(load.every * SECOND),
                round(load.start * SECOND),
                None if load.stop is None else round(load.stop * SECOND),
                load.keeps_leader,
            )
        )
    return specs
