"""The schema of a scenario file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, PositiveInt, Tag, model_validator

from backends.simulator.scenario.bounds import (
    BROKERS,
    CONTROLLERS,
    LARGEST_SETTING,
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
    """``min_isr`` is min.insync.replicas in this broker's own file. ``down``: it does not run at time 0, and the
    controller knows that. ``fenced``: the controller counts it as down, though it runs. ``failed_log_dirs``
    (counted from 0) had failed before.
    """

    id: Annotated[int, Field(ge=0)]
    rack: str | None = None
    log_dirs: LogDirs = 1
    kraft_versions: tuple[Literal[0], Literal[0, 1]] = (0, 1)
    min_isr: PositiveInt | None = None
    down: bool = False
    fenced: bool = False
    failed_log_dirs: tuple[Annotated[int, Field(ge=0)], ...] = ()

    @model_validator(mode="after")
    def _one_works(self) -> BrokerModel:
        """A broker without any log dir that works does not run."""
        if not set(self.failed_log_dirs) < set(range(self.log_dirs)):
            raise ValueError(f"failed_log_dirs below {self.log_dirs}, and not all of them")
        return self


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
    """How this cluster differs from released Kafka 4.3. ``released_calls``: nodes offer no call of the recovery
    tool's specification; None: as in Kafka 4.4, which has another call of that number.
    """

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
    released_calls: bool | None = None


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


Offset = Annotated[int, Field(ge=0, le=LARGEST_SETTING)]
Span = tuple[Annotated[int, Field(ge=0, le=2**31 - 1)], Offset]


class LogModel(StrictModel):
    """A replica's log at time 0: leader epochs with the offset where each begins, ascending, and the log's end.
    The first epoch begins where the log does. ``log_dir`` is counted from 0.
    """

    epochs: tuple[Span, ...] = ()
    end: Offset = 0
    high_watermark: Offset = 0
    log_dir: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _ascending(self) -> LogModel:
        offsets = [*(start for _, start in self.epochs), self.end]
        epochs = [epoch for epoch, _ in self.epochs]
        if epochs != sorted(set(epochs)) or offsets != sorted(offsets) or len(set(offsets)) != len(offsets):
            raise ValueError("epochs and offsets that ascend, below the end")
        if self.high_watermark > self.end:
            raise ValueError("a high_watermark up to the end")
        return self


class PartitionModel(StrictModel):
    """A partition at time 0, as the controller holds it (KIP-966's names), and the logs by broker. Without a
    ``leader`` it is offline. A replica without a log here has none on its disk.
    """

    replicas: Annotated[tuple[int, ...], Field(min_length=1)]
    isr: tuple[int, ...] = ()
    leader: Annotated[int, Field(ge=0)] | None = None
    leader_epoch: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    logs: dict[int, LogModel] = Field(default_factory=dict)


class TopicModel(StrictModel):
    """``replicas`` are assigned in turn; without them ``replication_factor`` spreads replicas over brokers and
    racks. Or each partition is as ``start`` says, in the order of their numbers.

    ``count`` creates that many topics, with their number for ``{n}`` in the name.
    """

    name: TopicName
    count: Partitions = 1
    partitions: Partitions = 1
    replicas: Annotated[tuple[tuple[int, ...], ...], Field(min_length=1)] | None = None
    replication_factor: PositiveInt | None = None
    start: Annotated[tuple[PartitionModel, ...], Field(min_length=1)] | None = None
    min_isr: PositiveInt | None = None
    strategy: UncleanRecoveryStrategy | None = None
    records: Annotated[int, Field(ge=0, le=10**15)] = 0
    configs: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _placed(self) -> TopicModel:
        placed = (self.replicas, self.replication_factor, self.start)
        if sum(one is not None for one in placed) != 1:
            raise ValueError("give either replicas, replication_factor or start")
        if self.start is not None:
            if self.records or self.count > 1:
                raise ValueError("with start, neither records nor a count")
            if "partitions" in self.model_fields_set and self.partitions != len(self.start):
                raise ValueError(f"start has {len(self.start)} partitions, and not {self.partitions}")
        if self.count > 1 and "{n}" not in self.name:
            raise ValueError("with a count, the name needs {n}")
        return self

    @property
    def each(self) -> int:
        """How many partitions each topic has."""
        return self.partitions if self.start is None else len(self.start)


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
