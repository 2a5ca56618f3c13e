"""Events of a run. Invariants check only what an event names, so a check costs no more than the change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from backends.simulator.quorum.metadata_disk import MetadataDisk
from backends.simulator.quorum.raft_log import LogRecord
from recovery.controller.cluster_image import ClusterImage
from recovery.controller.registration import PartitionChange
from recovery.membership.voters import ReplicaKey, VoterSet
from recovery.model import EpochSpan, TopicPartition


class MetadataWritten(NamedTuple):
    """The active controller wrote ``after`` over ``before``; it is not committed yet."""

    before: ClusterImage
    after: ClusterImage
    changes: Mapping[TopicPartition, PartitionChange]
    why: str


class MetadataCommitted(NamedTuple):
    """A commit of metadata, which brokers can read now.

    ``before`` is the image of the previous commit; ``touched`` and ``why`` are those of the update.
    """

    before: ClusterImage
    image: ClusterImage
    touched: tuple[TopicPartition, ...]
    why: str


class LogChanged(NamedTuple):
    broker: int
    tp: TopicPartition


class LeadershipTaken(NamedTuple):
    """A broker leads the partition from now on."""

    broker: int
    tp: TopicPartition
    epoch: int


class HighWatermarkMoved(NamedTuple):
    """A leader moved its high watermark. ``isr`` is the committed ISR that the leader knew."""

    broker: int
    tp: TopicPartition
    epoch: int
    offset: int
    isr: tuple[int, ...]
    min_isr: int


class Acknowledged(NamedTuple):
    """A leader acknowledged the span to a producer; ``acks`` is 0, 1 or -1. ``isr`` is the number of members of the
    ISR by which it did.
    """

    tp: TopicPartition
    span: EpochSpan
    acks: int
    broker: int
    isr: int


class TransactionWritten(NamedTuple):
    """A leader appended records of a transaction, or the marker that ends it."""

    tp: TopicPartition
    span: EpochSpan
    transaction: int
    marker: bool
    broker: int


class TransactionEnded(NamedTuple):
    """The coordinator has decided: the producer was told whether the transaction is committed."""

    transaction: int
    committed: bool


class TransactionMarked(NamedTuple):
    """The coordinator knows that a marker of the transaction is acknowledged there, and sends no other."""

    tp: TopicPartition
    transaction: int


class RecordsRead(NamedTuple):
    """A leader of ``epoch`` showed these records to a consumer."""

    tp: TopicPartition
    epoch: int
    spans: tuple[EpochSpan, ...]
    broker: int


class BrokerStopped(NamedTuple):
    """A broker's process ended. ``clean``: it wrote the clean shutdown file. ``power_lost``: pages were lost."""

    broker: int
    clean: bool
    power_lost: bool


class DiskLost(NamedTuple):
    """The content of a log dir is lost for good."""

    broker: int


class QuorumLed(NamedTuple):
    """A controller leads the metadata quorum in ``epoch`` from now on."""

    controller: int
    key: ReplicaKey
    epoch: int


class QuorumWritten(NamedTuple):
    """Records were appended to a controller's metadata log, from offset ``first`` on."""

    controller: int
    disk: MetadataDisk
    first: int


class QuorumTruncated(NamedTuple):
    """A controller's metadata log was truncated to offset ``to``; ``epoch`` is that of the record there."""

    controller: int
    to: int
    epoch: int | None


class QuorumCommitted(NamedTuple):
    """A leader of the quorum moved its high watermark from ``before`` to ``offset`` and so committed
    ``entries``.

    ``voters`` are the voters in force. The entries are included because a snapshot may remove them from the
    log.
    """

    controller: int
    disk: MetadataDisk
    epoch: int
    before: int
    offset: int
    voters: VoterSet
    entries: tuple[LogRecord, ...]


class MetadataDiskLost(NamedTuple):
    """A controller's metadata log dir is lost for good."""

    controller: int
    disk: MetadataDisk


Event = (
    MetadataWritten
    | MetadataCommitted
    | LogChanged
    | LeadershipTaken
    | HighWatermarkMoved
    | Acknowledged
    | TransactionWritten
    | TransactionEnded
    | TransactionMarked
    | RecordsRead
    | BrokerStopped
    | DiskLost
    | QuorumLed
    | QuorumWritten
    | QuorumTruncated
    | QuorumCommitted
    | MetadataDiskLost
)


OfALog = LogChanged | LeadershipTaken | HighWatermarkMoved | Acknowledged | RecordsRead | TransactionWritten
"""What a broker does with its log of one partition."""


Emit = Callable[[Event], None]


class EventBus:
    """Passes each event to every subscriber, in the order in which they subscribed."""

    def __init__(self) -> None:
        self.subscribers: list[Emit] = []

    def emit(self, event: Event) -> None:
        for subscriber in self.subscribers:
            subscriber(event)
