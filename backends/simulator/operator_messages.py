"""The operator's requests to brokers, by the names of Kafka's calls, and their answers."""

from __future__ import annotations

from typing import NamedTuple

from backends.base.answers import LogDir
from backends.base.transactions import Marker
from backends.simulator.classic_group import ClassicGroup, MemberClaim
from backends.simulator.messages import Error
from backends.simulator.transaction_logs import LedPartition
from recovery.groups.group_values import CommittedOffset
from recovery.model import PartitionState, TopicPartition
from recovery.transactions.transaction_values import CoordinatedTransaction


class DescribeTopicPartitions(NamedTuple):
    """``topics`` None means all that the caller may see. ``cursor`` is the first partition of the page."""

    topics: tuple[str, ...] | None
    cursor: TopicPartition | None
    limit: int


class TopicPartitionsDescribed(NamedTuple):
    """One page. ``cursor`` is the start of the next page, None after the last.

    ``refused`` are topics that do not exist or may not be described.
    """

    states: tuple[PartitionState, ...]
    cursor: TopicPartition | None
    refused: tuple[tuple[str, Error], ...]


class ListGroupOffsets(NamedTuple):
    """ListGroups and OffsetFetch of every group that this broker coordinates. Needs DESCRIBE on the cluster."""


class ListedGroup(NamedTuple):
    """A group with what it has committed, in the order of the partitions."""

    group: ClassicGroup
    offsets: tuple[tuple[TopicPartition, CommittedOffset], ...]


class GroupOffsetsListed(NamedTuple):
    """By name."""

    error: Error | None
    groups: tuple[ListedGroup, ...] = ()


class DescribeGroups(NamedTuple):
    """DescribeGroups."""

    groups: tuple[str, ...]


class GroupsDescribed(NamedTuple):
    """In the order of the request."""

    groups: tuple[ClassicGroup | Error, ...]


class CommitGroupOffsets(NamedTuple):
    """OffsetCommit of a member, or of a client without membership. Needs READ on the group."""

    group: str
    offsets: tuple[tuple[TopicPartition, CommittedOffset], ...]
    claim: MemberClaim = MemberClaim()


class GroupOffsetsCommitted(NamedTuple):
    error: Error | None


class CheckGroupMember(NamedTuple):
    """Whether a transaction may commit offsets for the group; answered with (error or None,)."""

    group: str
    claim: MemberClaim


class DescribeProducers(NamedTuple):
    """DescribeProducers and ListOffsets of partitions that this broker hosts. Needs READ on the topics."""

    partitions: tuple[TopicPartition, ...]


class ProducersDescribed(NamedTuple):
    """In the order of the request."""

    partitions: tuple[LedPartition, ...]


class ListTransactions(NamedTuple):
    """ListTransactions and DescribeTransactions of all that this broker coordinates."""


class TransactionsListed(NamedTuple):
    transactions: tuple[CoordinatedTransaction, ...]


class WriteTxnMarkers(NamedTuple):
    """Of an operator it needs ALTER on the cluster."""

    markers: tuple[Marker, ...]


class TxnMarkersWritten(NamedTuple):
    """For each marker the error, None where it is written and replicated."""

    errors: tuple[Error | None, ...]


class DescribeLogDirs(NamedTuple):
    """Every log dir of the broker."""


class LogDirsDescribed(NamedTuple):
    error: Error | None
    log_dirs: tuple[LogDir, ...] = ()


class ListReassignments(NamedTuple):
    """``partitions`` None means all."""

    partitions: tuple[TopicPartition, ...] | None


class ReassignmentsListed(NamedTuple):
    """(partition, replicas, adding, removing)."""

    error: Error | None
    rows: tuple[tuple[TopicPartition, tuple[int, ...], tuple[int, ...], tuple[int, ...]], ...] = ()


class DescribeQuorum(NamedTuple):
    """A broker forwards it to the active controller."""
