"""The schema of a scenario file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, PositiveInt, Tag, model_validator

from backends.simulator.scenario.bounds import (
    BROKERS,
    CONTROLLERS,
    PARTITIONS,
    Interval,
    Milliseconds,
    Seconds,
    Setting,
    TopicName,
)
from backends.simulator.scenario.faults import Fault, StrictModel
from recovery.controller.rules import UncleanRecoveryStrategy

LogDirs = Annotated[int, Field(gt=0, le=100)]
Partitions = Annotated[int, Field(gt=0, le=PARTITIONS)]


class BrokerModel(StrictModel):
    """``min_isr`` is min.insync.replicas in this broker's own file."""

    id: Annotated[int, Field(ge=0)]
    rack: str | None = None
    log_dirs: LogDirs = 1
    kraft_versions: tuple[Literal[0], Literal[0, 1]] = (0, 1)
    min_isr: PositiveInt | None = None


class ManyBrokers(StrictModel):
    """``count`` brokers from id ``first`` on, assigned to the racks in turn."""

    count: Annotated[int, Field(gt=0, le=BROKERS)]
    first: Annotated[int, Field(ge=0)] = 1
    racks: tuple[str, ...] = ()
    log_dirs: LogDirs = 1


def _written_as(value: object) -> str:
    return _MANY if isinstance(value, (dict, ManyBrokers)) else _EACH


# With spaces, so that no key of a file can be mistaken for one of them.
_MANY, _EACH = "so many", "each one"
Brokers = Annotated[
    Annotated[tuple[BrokerModel, ...], Field(min_length=1, max_length=BROKERS), Tag(_EACH)]
    | Annotated[ManyBrokers, Tag(_MANY)],
    Discriminator(_written_as),
]


class Switches(StrictModel):
    """How this cluster differs from released Kafka 4.3."""

    kafka: Literal["4.4", "4.3", "4.0", "3.9", "kip-966"] = "4.3"
    elr: bool | None = None
    last_known_elr_members: bool | None = None
    dead_last_known_leader_elected: bool | None = None
    recovery_manager: bool | None = None
    kip966_reassignment: bool | None = None
    kip966_min_isr_change: bool | None = None
    reassignment_waits_for_all: bool | None = None
    broker_epoch_check: bool = True
    high_watermark_needs_min_isr: bool = True
    clean_shutdown_detection: bool | None = None
    duplicate_voter_ids: bool = False


class NetworkModel(StrictModel):
    """Each message takes ``latency_ms`` plus up to ``jitter_ms``; ``loss`` is a probability."""

    latency_ms: Milliseconds = 0.5
    jitter_ms: Milliseconds = 0.5
    loss: Annotated[float, Field(ge=0, lt=1)] = 0


class ClusterModel(StrictModel):
    """``config`` holds Kafka's names and values.

    ``controllers`` are the initial voters; the first leads. ``spare_controllers`` are formatted without initial
    controllers, and do not run yet.
    """

    brokers: Brokers
    controllers: Annotated[tuple[int, ...], Field(min_length=1, max_length=CONTROLLERS)] = (100, 101, 102)
    spare_controllers: Annotated[tuple[int, ...], Field(max_length=CONTROLLERS)] = ()
    kraft_version: Literal[0, 1] = 1
    min_isr: PositiveInt = 1
    strategy: UncleanRecoveryStrategy = UncleanRecoveryStrategy.BALANCED
    switches: Switches = Switches()
    config: dict[str, Setting] = Field(default_factory=dict)
    network: NetworkModel = NetworkModel()


class TopicModel(StrictModel):
    """``replicas`` are assigned in turn; without them ``replication_factor`` spreads replicas over brokers and
    racks.

    ``count`` creates that many topics, with their number for ``{n}`` in the name.
    """

    name: TopicName
    count: Partitions = 1
    partitions: Partitions = 1
    replicas: Annotated[tuple[tuple[int, ...], ...], Field(min_length=1)] | None = None
    replication_factor: PositiveInt | None = None
    min_isr: PositiveInt | None = None
    strategy: UncleanRecoveryStrategy | None = None
    records: Annotated[int, Field(ge=0, le=10**15)] = 0
    configs: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _placed(self) -> TopicModel:
        if (self.replicas is None) == (self.replication_factor is None):
            raise ValueError("give either replicas or replication_factor")
        if self.count > 1 and "{n}" not in self.name:
            raise ValueError("with a count, the name needs {n}")
        return self


class WorkloadModel(StrictModel):
    """A batch of ``records`` to each of the ``partitions`` (default: all), ``every`` seconds.

    ``keeps_leader``: its metadata is old, so it sends to the leader that it knows until that one refuses or does
    not answer.
    """

    topic: str
    partitions: tuple[int, ...] | None = None
    acks: Literal["all", 1, 0] = "all"
    records: Annotated[int, Field(gt=0, le=10**9)] = 10
    every: Interval = 0.1
    start: Seconds = 0
    stop: Seconds | None = None
    keeps_leader: bool = False


class ConsumerModel(StrictModel):
    """A consumer that reads the ``partitions`` (default: all) ``every`` seconds."""

    topic: str
    partitions: tuple[int, ...] | None = None
    every: Interval = 0.1


class OperatorModel(StrictModel):
    """The operator arrives ``at`` that time, cannot reach ``cannot_reach``, and may not do what is ``denied``:
    "READ topic payments", "CLUSTER_ACTION cluster".
    """

    at: Seconds
    cannot_reach: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()


class Expectation(StrictModel):
    """What the operator meets: the number of ``offline`` partitions, the invariants that the run ``breaks``,
    the node ids of the voters, and whether one of them leads.
    """

    offline: Annotated[int, Field(ge=0)]
    breaks: tuple[str, ...] = ()
    voters: tuple[int, ...] | None = None
    led: bool = True


class ScenarioModel(StrictModel):
    """A whole file."""

    title: Annotated[str, Field(min_length=1)]
    about: str
    cluster: ClusterModel
    topics: Annotated[tuple[TopicModel, ...], Field(min_length=1)]
    workload: tuple[WorkloadModel, ...] = ()
    consumers: tuple[ConsumerModel, ...] = ()
    faults: tuple[Fault, ...] = ()
    operator: OperatorModel
    expect: Expectation
