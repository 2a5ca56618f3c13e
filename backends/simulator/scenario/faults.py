"""What can happen to a cluster, as a scenario writes it. Times are seconds of virtual time."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt

from backends.simulator.scenario.bounds import Seconds, TopicName


class Strict(BaseModel):
    """A misspelt key is a mistake, never ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


Nodes = Annotated[tuple[str, ...], Field(min_length=1)]


class Timed(Strict):
    """``at`` seconds after the start; ``note`` is printed when it happens."""

    at: Seconds
    note: str = ""


class Cut(Timed):
    """Nothing passes between ``nodes`` and ``others`` (default: everybody else), or only towards ``nodes``."""

    do: Literal["cut"]
    nodes: Nodes
    others: tuple[str, ...] = ("others",)
    one_way: bool = False


class Heal(Timed):
    """Undo cuts between ``nodes`` and ``others``; without nodes, all cuts and delays."""

    do: Literal["heal"]
    nodes: tuple[str, ...] = ()
    others: tuple[str, ...] = ("others",)


class Delay(Timed):
    """What ``source`` sends to ``target`` takes ``seconds`` longer, on one ``channel`` of its connections."""

    do: Literal["delay"]
    source: str
    target: Nodes
    seconds: Seconds
    channel: Literal["", "alter-partition", "heartbeat", "metadata"] = ""


class BrokerFault(Timed):
    """``nodes`` are brokers, a rack (``rack-a``) or ``brokers``; ``every`` seconds lie between one and the next."""

    do: Literal["kill", "power-off", "start", "shut-down"]
    nodes: Nodes
    every: Seconds = 0


class DiskFault(Timed):
    """``log_dir`` is counted from 0. A disk is replaced while its broker is down."""

    do: Literal["break-disk", "replace-disk"]
    node: str
    log_dir: Annotated[int, Field(ge=0)] = 0


class PartitionFault(Timed):
    """The files of one partition (``topic-3``) fail, in a log dir that is good."""

    do: Literal["break-partition"]
    node: str
    partition: str


class ControllerFault(Timed):
    """Failover has the leader resign in favour of ``node``. A disk that breaks stops its controller; one is
    replaced while its controller is down, by a formatted one with another directory id.
    """

    do: Literal[
        "kill-controller",
        "start-controller",
        "failover",
        "break-controller-disk",
        "replace-controller-disk",
    ]
    node: str


class Moved(Timed):
    """The controller is started again with another address; as a voter it makes itself known there."""

    do: Literal["move-controller"]
    node: str
    host: Annotated[str, Field(min_length=1)]
    port: Annotated[int, Field(gt=0, lt=65536)] = 9093


class VoterChange(Timed):
    """Asked of the quorum's leader: add ``node`` with the disk that it has, or remove the voter of its id."""

    do: Literal["add-voter", "remove-voter"]
    node: str


class KRaftVersion(Timed):
    """Upgrade kraft.version."""

    do: Literal["set-kraft-version"]
    level: Literal[1]


class Configure(Timed):
    """A topic's configuration, or the cluster's; a value of null removes it."""

    do: Literal["set-config"]
    topic: str = ""
    name: str
    value: str | None = None


class Feature(Timed):
    """Switch the ELR on (1) or off (0)."""

    do: Literal["set-elr"]
    level: Literal[0, 1]


class Reassigned(Timed):
    """Give a partition other replicas; null cancels a running reassignment."""

    do: Literal["reassign"]
    partition: str
    replicas: tuple[int, ...] | None = None


class Elected(Timed):
    """An election as Kafka's own tool asks for it."""

    do: Literal["elect"]
    kind: Literal["preferred", "unclean"]
    partitions: tuple[str, ...] = ()


class Created(Timed):
    """A new topic."""

    do: Literal["create-topic"]
    topic: TopicName
    replicas: Annotated[tuple[tuple[int, ...], ...], Field(min_length=1)]
    min_isr: PositiveInt | None = None


Fault = Annotated[
    Cut
    | Heal
    | Delay
    | BrokerFault
    | DiskFault
    | PartitionFault
    | ControllerFault
    | Moved
    | VoterChange
    | KRaftVersion
    | Configure
    | Feature
    | Reassigned
    | Elected
    | Created,
    Field(discriminator="do"),
]
