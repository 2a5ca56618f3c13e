"""The faults of a scenario file. Times are seconds of virtual time."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt

from backends.simulator.scenario.bounds import MOST_RECORDS, Seconds, TopicName


class StrictModel(BaseModel):
    """An unknown key is an error, never ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


Nodes = Annotated[tuple[str, ...], Field(min_length=1)]


class TimedFault(StrictModel):
    """``at`` seconds after the start; ``note`` is printed when it happens."""

    at: Seconds
    note: str = ""


class CutFault(TimedFault):
    """Cut ``nodes`` from ``others`` (default: all other nodes); with ``one_way`` only messages from ``nodes``."""

    do: Literal["cut"]
    nodes: Nodes
    others: tuple[str, ...] = ("others",)
    one_way: bool = False


class HealFault(TimedFault):
    """Undo cuts between ``nodes`` and ``others``; without nodes, all cuts and delays."""

    do: Literal["heal"]
    nodes: tuple[str, ...] = ()
    others: tuple[str, ...] = ("others",)


class DelayFault(TimedFault):
    """Messages from ``source`` to ``target`` take ``seconds`` longer, on one ``channel`` of its connections."""

    do: Literal["delay"]
    source: str
    target: Nodes
    seconds: Seconds
    channel: Literal["", "alter-partition", "heartbeat", "metadata"] = ""


class BrokerFault(TimedFault):
    """``nodes`` are brokers, a rack (``rack-a``) or ``brokers``; ``every`` is the time in seconds between two
    of them.
    """

    do: Literal["kill", "power-off", "start", "shut-down"]
    nodes: Nodes
    every: Seconds = 0


class DiskFault(TimedFault):
    """``log_dir`` is counted from 0. A disk is replaced while its broker is down."""

    do: Literal["break-disk", "replace-disk"]
    node: str
    log_dir: Annotated[int, Field(ge=0)] = 0


class PartitionFault(TimedFault):
    """The files of one partition (``topic-3``) fail, in a working log dir."""

    do: Literal["break-partition"]
    node: str
    partition: str


class ControllerFault(TimedFault):
    """``failover``: the leader resigns in favour of ``node``. A broken disk stops its controller.

    A disk is replaced while its controller is down, by a formatted one with another directory id.
    """

    do: Literal[
        "kill-controller",
        "start-controller",
        "failover",
        "break-controller-disk",
        "replace-controller-disk",
    ]
    node: str


class ControllerMove(TimedFault):
    """The controller restarts with another address; a voter then updates its voter entry."""

    do: Literal["move-controller"]
    node: str
    host: Annotated[str, Field(min_length=1)]
    port: Annotated[int, Field(gt=0, lt=65536)] = 9093


class VoterChangeFault(TimedFault):
    """A request to the quorum's leader: add ``node`` with its current disk, or remove the voter of its id."""

    do: Literal["add-voter", "remove-voter"]
    node: str


class KRaftVersionUpgrade(TimedFault):
    """Upgrade kraft.version."""

    do: Literal["set-kraft-version"]
    level: Literal[1]


class ConfigFault(TimedFault):
    """A topic's configuration, one broker's, or the cluster's; a value of null removes it."""

    do: Literal["set-config"]
    topic: str = ""
    broker: int | None = None
    name: str
    value: str | None = None


class FileEdit(TimedFault):
    """min.insync.replicas in the broker's own file; the broker reads it when it starts."""

    do: Literal["edit-file"]
    node: str
    min_isr: PositiveInt


class FeatureFault(TimedFault):
    """Switch the ELR on (1) or off (0)."""

    do: Literal["set-elr"]
    level: Literal[0, 1]


class ReassignmentFault(TimedFault):
    """Give a partition other replicas; null cancels a running reassignment."""

    do: Literal["reassign"]
    partition: str
    replicas: tuple[int, ...] | None = None


class ElectionFault(TimedFault):
    """An election, as Kafka's own tool requests it."""

    do: Literal["elect"]
    kind: Literal["preferred", "unclean"]
    partitions: tuple[str, ...] = ()


class TopicCreation(TimedFault):
    """A new topic."""

    do: Literal["create-topic"]
    topic: TopicName
    replicas: Annotated[tuple[tuple[int, ...], ...], Field(min_length=1)]
    min_isr: PositiveInt | None = None


class TopicDeletion(TimedFault):
    """A topic and its records are deleted; ``create-topic`` makes another of that name."""

    do: Literal["delete-topic"]
    topic: TopicName


class OffsetCommit(TimedFault):
    """A consumer group has read a partition up to ``offset``, commits it, and leaves. ``epoch`` False: it commits
    no leader epoch, as clients did before KIP-320.
    """

    do: Literal["commit"]
    group: Annotated[str, Field(min_length=1)]
    partition: str
    offset: Annotated[int, Field(ge=0)]
    epoch: bool = True


class TransactionalRecords(TimedFault):
    """The producer with that transactional id writes ``records`` to each partition, in its open transaction or in a
    new one. The scenario needs a topic __transaction_state, whose leaders are the coordinators.
    """

    do: Literal["write-transaction"]
    id: Annotated[str, Field(min_length=1)]
    partitions: Annotated[tuple[str, ...], Field(min_length=1)]
    records: Annotated[int, Field(gt=0, le=MOST_RECORDS)]


class TransactionEnd(TimedFault):
    """The producer commits or aborts its open transaction: its coordinator writes a marker to each partition."""

    do: Literal["end-transaction"]
    id: Annotated[str, Field(min_length=1)]
    outcome: Literal["commit", "abort"]


Fault = Annotated[
    CutFault
    | HealFault
    | DelayFault
    | BrokerFault
    | DiskFault
    | PartitionFault
    | ControllerFault
    | ControllerMove
    | VoterChangeFault
    | KRaftVersionUpgrade
    | ConfigFault
    | FileEdit
    | FeatureFault
    | ReassignmentFault
    | ElectionFault
    | TopicCreation
    | TopicDeletion
    | OffsetCommit
    | TransactionalRecords
    | TransactionEnd,
    Field(discriminator="do"),
]
