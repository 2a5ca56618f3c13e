"""The controller's metadata as one frozen value: brokers, partitions, configurations and the rules in force."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

from recovery.controller.controller_errors import ControllerError, ControllerRefusal
from recovery.controller.registration import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    PartitionChange,
    Registration,
    merge,
)
from recovery.controller.rules import (
    ControllerRules,
    UncleanRecoveryStrategy,
    effective_min_isr,
    with_strategy,
)
from recovery.controller.transition_targets import ElectionKind
from recovery.model import TopicPartition

T = TypeVar("T")


class BrokerRegistration(NamedTuple):
    """A broker as the controller has registered it. ``directories`` are its online log directories' ids; none
    where they are not tracked. ``incarnation`` tells one process of the broker from the next; None: not tracked.
    """

    epoch: int
    fenced: bool = False
    in_controlled_shutdown: bool = False
    directories: tuple[str, ...] = ()
    incarnation: int | None = None

    @property
    def active(self) -> bool:
        return not self.fenced and not self.in_controlled_shutdown

    def online(self, directory: str | None) -> bool:
        """Whether a replica in ``directory`` can be served; a replica without an assigned directory can
        (KIP-858).
        """
        if directory == LOST_DIRECTORY:
            return False
        placed = directory not in (None, UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY)
        return not placed or not self.directories or directory in self.directories


@dataclass(frozen=True, slots=True)
class Layered(Generic[T]):
    """A configuration with Kafka's precedence: topic, then node, then cluster, then the static value.

    ``node`` is the active controller's own value, ``static`` that of its file: the controller decides by them.
    ``brokers`` are values set for one broker each. That broker obeys them, and the controller does not.
    """

    static: T
    cluster: T | None = None
    node: T | None = None
    topics: Mapping[str, T] = field(default_factory=dict)
    brokers: Mapping[int, T] = field(default_factory=dict)

    def of(self, topic: str) -> T:
        if topic in self.topics:
            return self.topics[topic]
        if self.node is not None:
            return self.node
        return self.static if self.cluster is None else self.cluster


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """Everything that the controller decides from. ``min_isr`` is min.insync.replicas as configured."""

    brokers: Mapping[int, BrokerRegistration]
    partitions: Mapping[TopicPartition, Registration]
    rules: ControllerRules = field(default_factory=ControllerRules)
    min_isr: Layered[int] = field(default_factory=lambda: Layered(1))
    strategies: Layered[UncleanRecoveryStrategy] = field(
        default_factory=lambda: Layered(UncleanRecoveryStrategy.BALANCED)
    )

    def effective_min_isr(self, topic: str) -> int:
        """The topic's min ISR. As Kafka does, it takes partition 0's replicas for the replication factor."""
        configured = self.min_isr.of(topic)
        first = self.partitions.get(TopicPartition(topic, 0))
        return configured if first is None else effective_min_isr(configured, len(first.replicas))

    def rules_for(self, topic: str) -> ControllerRules:
        return with_strategy(self.rules, self.strategies.of(topic))

    def election_for(self, topic: str) -> ElectionKind:
        """The kind of election that the controller runs on its own for a partition of ``topic``."""
        return ElectionKind.UNCLEAN if self.rules_for(topic).elects_uncleanly else ElectionKind.ONLINE

    def with_isr_member(self, broker: int) -> Iterator[TopicPartition]:
        return (tp for tp, partition in self.partitions.items() if broker in partition.isr)

    def with_elr_member(self, broker: int) -> Iterator[TopicPartition]:
        return (tp for tp, partition in self.partitions.items() if broker in partition.elr)

    def leaderless(self) -> Iterator[TopicPartition]:
        return (tp for tp, partition in self.partitions.items() if not partition.has_leader)


class SharingTable(Mapping[TopicPartition, Registration]):
    """A mapping of partitions that creates its own changed copy."""

    @abstractmethod
    def updated(self, changes: Mapping[TopicPartition, Registration]) -> SharingTable:
        """The table with ``changes`` to partitions that it holds."""


class Effect(NamedTuple):
    """What an operation wrote, and the metadata after it."""

    image: ClusterImage
    changes: Mapping[TopicPartition, PartitionChange]


class ControllerOutcome(NamedTuple):
    """``refusal`` is None where the request stands, even where it changes nothing."""

    refusal: ControllerRefusal | None
    effect: Effect


def refused(image: ClusterImage, error: ControllerError, reason: str) -> ControllerOutcome:
    """The request is refused, and nothing changes."""
    return ControllerOutcome(ControllerRefusal(error, reason), Effect(image, {}))


def acceptable_leaders(
    partition: Registration,
    brokers: Mapping[int, BrokerRegistration],
) -> frozenset[int]:
    """Which replicas may lead: their broker is active, and the replica's directory online."""
    return frozenset(
        replica
        for replica in partition.replicas
        if replica in brokers
        and brokers[replica].active
        and brokers[replica].online(partition.directory(replica))
    )


def offline_replicas(partition: Registration, brokers: Mapping[int, BrokerRegistration]) -> tuple[int, ...]:
    """The replicas that a broker's metadata calls offline, in assignment order (KRaftMetadataCache).

    Not registered, fenced, or in a log directory that is offline. A broker in controlled shutdown cannot be
    elected, and is not among them.
    """
    return tuple(
        replica
        for replica in partition.replicas
        if replica not in brokers
        or brokers[replica].fenced
        or not brokers[replica].online(partition.directory(replica))
    )


def apply(image: ClusterImage, changes: Mapping[TopicPartition, PartitionChange]) -> Effect:
    """``image`` with ``changes`` merged into its partitions."""
    if not changes:
        return Effect(image, {})
    merged: dict[TopicPartition, Registration] = {}
    known: dict[tuple[int, int], Registration] = {}
    for tp, change in changes.items():
        # Partitions that shared one value, and change in the same way, share one value again.
        partition = image.partitions[tp]
        after = known.get((id(partition), id(change)))
        if after is None:
            after = known[id(partition), id(change)] = merge(partition, change)
        merged[tp] = after
    return Effect(replace(image, partitions=_updated(image.partitions, merged)), changes)


def _updated(
    partitions: Mapping[TopicPartition, Registration], merged: Mapping[TopicPartition, Registration]
) -> Mapping[TopicPartition, Registration]:
    # The new table of 200,000 partitions shares unchanged entries with the old one.
    if isinstance(partitions, SharingTable):
        return partitions.updated(merged)
    return {**partitions, **merged}


def with_broker(image: ClusterImage, broker: int, registration: BrokerRegistration) -> ClusterImage:
    """``image`` with one broker registered as given."""
    return replace(image, brokers={**image.brokers, broker: registration})
