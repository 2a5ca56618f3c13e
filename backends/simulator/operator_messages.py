"""The operator's requests to brokers, by the names of Kafka's calls, and their answers."""

from __future__ import annotations

from typing import NamedTuple

from backends.base.answers import LogDir, LogPosition, RawBatches
from backends.base.transactions import Marker
from backends.simulator.classic_group import ClassicGroup, MemberClaim
from backends.simulator.messages import Error
from backends.simulator.transaction_logs import LedPartition
from recovery.groups.group_values import CommittedOffset
from recovery.model import Lineage, PartitionState, TopicPartition
from recovery.transactions.transaction_values import CoordinatedTransaction


class DescribeCluster(NamedTuple):
    """DescribeCluster v2: fenced brokers included."""


class ClusterDescribed(NamedTuple):
    """``brokers`` are (id, fenced). ``offset`` is how far this broker has read the metadata log."""

    brokers: tuple[tuple[int, bool], ...]
    offset: int
    elr_enabled: bool


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


class GetReplicaLogInfo(NamedTuple):
    """GetReplicaLogInfo v0 of the recovery tool's specification: answers at most 1000 partitions."""

    partitions: tuple[TopicPartition, ...]


class ReplicaLogInfo(NamedTuple):
    """``leader_epoch`` is that of the partition, as this broker knows it."""

    tp: TopicPartition
    leader_epoch: int
    log_end_offset: int
    error: Error | None


class ReplicaLogInfos(NamedTuple):
    """``has_more_data``: not all requested partitions are included."""

    error: Error | None
    broker_epoch: int = -1
    has_more_data: bool = False
    infos: tuple[ReplicaLogInfo, ...] = ()


class ReadLineage(NamedTuple):
    """Stands for the rounds of Fetch that find the epochs of a log. Needs READ on the topic."""

    partitions: tuple[TopicPartition, ...]


class LogDescription(NamedTuple):
    """``high_watermark`` is the one that this broker knows. Equal logs share one object."""

    lineage: Lineage
    log_start_offset: int
    high_watermark: int
    log_dir: str


class LineageRow(NamedTuple):
    """``log`` is None with an error. ``leads``: whether this broker leads the partition by its own state."""

    tp: TopicPartition
    error: Error | None
    log: LogDescription | None = None
    leads: bool = False


class LineageRead(NamedTuple):
    logs: tuple[LineageRow, ...]


class ReadTimes(NamedTuple):
    """Stands for a Fetch of each record's batch, as replica -3. Needs READ on the topic."""

    records: tuple[tuple[TopicPartition, int], ...]


class TimesRead(NamedTuple):
    """For each record the (first, newest) timestamp of its batch in ms, None if unknown."""

    times: tuple[tuple[int, int] | None, ...]


class FetchBatches(NamedTuple):
    """Fetch as replica -3: up to the log end. Needs READ on the topics."""

    positions: tuple[LogPosition, ...]
    max_bytes: int


class BatchesFetched(NamedTuple):
    """For each position its batches, or the error; None: the log does not hold that offset."""

    rows: tuple[RawBatches | Error | None, ...]


class AppendBatch(NamedTuple):
    """Produce of one batch with acks=all; answered with a ProduceReply. Needs WRITE on the topic."""

    tp: TopicPartition
    data: bytes


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


class DescribeConfigs(NamedTuple):
    topics: tuple[str, ...]


class ConfigsDescribed(NamedTuple):
    """For each topic its effective configuration, or the error."""

    topics: tuple[tuple[str, tuple[tuple[str, str], ...] | Error], ...]


class ListReassignments(NamedTuple):
    """``partitions`` None means all."""

    partitions: tuple[TopicPartition, ...] | None


class ReassignmentsListed(NamedTuple):
    """(partition, replicas, adding, removing)."""

    error: Error | None
    rows: tuple[tuple[TopicPartition, tuple[int, ...], tuple[int, ...], tuple[int, ...]], ...] = ()


class DescribeQuorum(NamedTuple):
    """A broker forwards it to the active controller."""
