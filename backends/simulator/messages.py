"""The messages between nodes, named after Kafka's requests and answers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from recovery.controller.alter_partition import AlterPartition
from recovery.controller.cluster_image import ClusterImage
from recovery.controller.controller_errors import ControllerRefusal
from recovery.controller.registration import Registration
from recovery.controller.transition_targets import ElectionKind
from recovery.controller.unclean_recovery import LogInfo
from recovery.metadata_log.records import ConfigRecord
from recovery.model import EpochSpan, TopicPartition


class Error(StrEnum):
    """The errors of brokers, by Kafka's names. Those of the controller are ``ControllerError``."""

    NOT_LEADER_OR_FOLLOWER = "NOT_LEADER_OR_FOLLOWER"
    FENCED_LEADER_EPOCH = "FENCED_LEADER_EPOCH"
    UNKNOWN_LEADER_EPOCH = "UNKNOWN_LEADER_EPOCH"
    UNKNOWN_TOPIC_OR_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"
    UNKNOWN_TOPIC_ID = "UNKNOWN_TOPIC_ID"
    KAFKA_STORAGE_ERROR = "KAFKA_STORAGE_ERROR"
    NOT_ENOUGH_REPLICAS = "NOT_ENOUGH_REPLICAS"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
    OFFSET_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
    CLUSTER_AUTHORIZATION_FAILED = "CLUSTER_AUTHORIZATION_FAILED"
    TOPIC_AUTHORIZATION_FAILED = "TOPIC_AUTHORIZATION_FAILED"
    NOT_CONTROLLER = "NOT_CONTROLLER"
    REQUEST_TIMED_OUT = "REQUEST_TIMED_OUT"
    OUT_OF_ORDER_SEQUENCE_NUMBER = "OUT_OF_ORDER_SEQUENCE_NUMBER"
    CORRUPT_MESSAGE = "CORRUPT_MESSAGE"
    NOT_COORDINATOR = "NOT_COORDINATOR"
    GROUP_AUTHORIZATION_FAILED = "GROUP_AUTHORIZATION_FAILED"
    INVALID_PRODUCER_EPOCH = "INVALID_PRODUCER_EPOCH"
    TRANSACTION_COORDINATOR_FENCED = "TRANSACTION_COORDINATOR_FENCED"
    PRODUCER_FENCED = "PRODUCER_FENCED"
    INVALID_PRODUCER_ID_MAPPING = "INVALID_PRODUCER_ID_MAPPING"
    INVALID_TXN_STATE = "INVALID_TXN_STATE"
    CONCURRENT_TRANSACTIONS = "CONCURRENT_TRANSACTIONS"
    COORDINATOR_NOT_AVAILABLE = "COORDINATOR_NOT_AVAILABLE"
    UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID"
    MEMBER_ID_REQUIRED = "MEMBER_ID_REQUIRED"
    FENCED_INSTANCE_ID = "FENCED_INSTANCE_ID"
    ILLEGAL_GENERATION = "ILLEGAL_GENERATION"
    REBALANCE_IN_PROGRESS = "REBALANCE_IN_PROGRESS"
    INCONSISTENT_GROUP_PROTOCOL = "INCONSISTENT_GROUP_PROTOCOL"
    INVALID_SESSION_TIMEOUT = "INVALID_SESSION_TIMEOUT"
    GROUP_ID_NOT_FOUND = "GROUP_ID_NOT_FOUND"


class TopicRemoved(NamedTuple):
    """A RemoveTopicRecord, by the topic's name: no further record removes the topic's configurations."""

    topic: str


ConfigStep = ConfigRecord | TopicRemoved


class MetadataUpdate(NamedTuple):
    """An entry of the metadata log: the whole state after it, and what it changed.

    ``last_epoch`` is the highest broker epoch so far. ``placed`` are those of ``touched`` that are new or have
    other replicas now. ``written`` is the virtual time in µs at which the leader appended it. ``configs`` are what
    it holds about configurations, in order: each broker replays them for itself.
    """

    image: ClusterImage
    touched: tuple[TopicPartition, ...]
    brokers: tuple[int, ...]
    last_epoch: int
    why: str
    placed: frozenset[TopicPartition] = frozenset()
    written: int = 0
    configs: tuple[ConfigStep, ...] = ()


# From a broker to the active controller.


class RegisterBroker(NamedTuple):
    """``previous_epoch`` comes from the clean shutdown file, -1 without one (KIP-966). ``incarnation``
    identifies the process.
    """

    broker: int
    previous_epoch: int
    directories: tuple[str, ...]
    incarnation: int


class Registered(NamedTuple):
    epoch: int


class NotController(NamedTuple):
    """``leader`` is the node that the asked controller believes to lead."""

    leader: int | None


class Heartbeat(NamedTuple):
    """``caught_up``: the broker has read its own registration. ``offline_directories`` are ids of failed log
    dirs.
    """

    broker: int
    epoch: int
    caught_up: bool
    want_shut_down: bool
    offline_directories: tuple[str, ...]


class HeartbeatReply(NamedTuple):
    refusal: ControllerRefusal | None
    fenced: bool
    may_shut_down: bool


class MetadataFetch(NamedTuple):
    """``directory`` is the id of the broker's metadata log dir (KIP-853, "Fetch")."""

    broker: int
    offset: int
    directory: str = ""


class MetadataBatch(NamedTuple):
    """The state at ``offset``; ``image`` None means no news.

    ``touched`` are the partitions that changed since the requested offset; None means that any may have
    changed. ``placed`` is as in :class:`MetadataUpdate`. ``configs`` are those of all updates since
    the requested offset; ``from_snapshot`` is the state that they begin with where the log begins with a snapshot.
    ``complete``: it reaches the end of what is committed.
    """

    offset: int
    image: ClusterImage | None
    touched: tuple[TopicPartition, ...] | None
    brokers: tuple[int, ...]
    placed: frozenset[TopicPartition] = frozenset()
    configs: tuple[ConfigStep, ...] = ()
    from_snapshot: ClusterImage | None = None
    complete: bool = True


class AlterPartitions(NamedTuple):
    """One AlterPartition request of a broker. ``generations``: which topic of that name each partition belongs to,
    as the topic ids of Kafka's request tell (``PartitionTable.generation``).
    """

    broker: int
    epoch: int
    requests: tuple[tuple[TopicPartition, AlterPartition], ...]
    generations: tuple[int, ...]


class AlterPartitionsReply(NamedTuple):
    """``refusal`` of the whole request, or one answer for each partition."""

    refusal: ControllerRefusal | None
    answers: tuple[tuple[TopicPartition, ControllerRefusal | None, Registration | None], ...] = ()


class AssignDirectories(NamedTuple):
    """The directory ids of replicas that the broker has placed (KIP-858)."""

    broker: int
    epoch: int
    directories: tuple[tuple[TopicPartition, str], ...]


# Between brokers.


class Position(NamedTuple):
    """Where a follower wants to read. ``last_epoch`` is that of its last record, -1 for an empty log.
    ``generation``: of the topic of that name, as the topic id of Kafka's request tells.
    """

    tp: TopicPartition
    leader_epoch: int
    offset: int
    last_epoch: int
    generation: int = 0


class Fetch(NamedTuple):
    """``positions`` are those that changed since the last Fetch of the session; ``forgotten`` are no longer
    followed. ``session`` 0 asks for a new session.
    """

    replica: int
    replica_epoch: int
    session: int
    positions: tuple[Position, ...]
    forgotten: tuple[TopicPartition, ...] = ()


class FetchedPartition(NamedTuple):
    """Records, or in ``diverging`` where the logs part: (epoch, its end on the leader)."""

    tp: TopicPartition
    leader_epoch: int
    error: Error | None = None
    spans: tuple[EpochSpan, ...] = ()
    high_watermark: int = 0
    start: int = 0
    diverging: tuple[int, int] | None = None
    generation: int = 0


class Fetched(NamedTuple):
    """``session`` is -1 if the leader does not know the requested one."""

    session: int
    partitions: tuple[FetchedPartition, ...]


# From clients.


class TransactionalWrite(NamedTuple):
    """A batch belongs to ``transaction``; ``marker``: it is the control record that ends it in this partition."""

    transaction: int
    marker: bool = False


class Produce(NamedTuple):
    """``acks`` is 0, 1 or -1 (all). ``within`` is None for records outside of a transaction."""

    tp: TopicPartition
    records: int
    acks: int
    within: TransactionalWrite | None = None


class ProduceReply(NamedTuple):
    error: Error | None
    offset: int = -1
    epoch: int = -1


class Consume(NamedTuple):
    """A consumer's Fetch from ``offset`` on; -1 means from the high watermark."""

    tp: TopicPartition
    offset: int


class ConsumeReply(NamedTuple):
    """``spans`` are the records read, all below ``high_watermark``."""

    error: Error | None
    high_watermark: int = -1
    spans: tuple[EpochSpan, ...] = ()


class DeleteRecords(NamedTuple):
    """Delete the records below ``before``, at most up to the high watermark (KIP-107); -1 means all of these."""

    tp: TopicPartition
    before: int


class RecordsDeleted(NamedTuple):
    """``start`` is the leader's new log start; followers take it over with their next fetch."""

    error: Error | None
    start: int = -1


# From the operator.


class ElectLeaders(NamedTuple):
    """``partitions`` None means all. The values are the designated leaders (v3), -1 otherwise."""

    kind: ElectionKind
    partitions: tuple[tuple[TopicPartition, int], ...] | None


class ElectLeadersReply(NamedTuple):
    refusals: Mapping[TopicPartition, ControllerRefusal | None]


class Reassign(NamedTuple):
    """AlterPartitionReassignments; a target of None cancels a reassignment."""

    targets: tuple[tuple[TopicPartition, tuple[int, ...] | None], ...]
    allow_replication_factor_change: bool


class ReassignReply(NamedTuple):
    refusals: Mapping[TopicPartition, ControllerRefusal | None]


class SetConfig(NamedTuple):
    """A topic's configuration; with an empty ``topic`` that of one ``broker``, or the cluster-wide default. A value
    of None removes it.
    """

    topic: str
    name: str
    value: str | None
    broker: int | None = None


class UpdateFeature(NamedTuple):
    """``dry_run``: only check whether it would be accepted (kraft.version)."""

    feature: str
    level: int
    dry_run: bool = False


class CreateTopic(NamedTuple):
    topic: str
    assignments: tuple[tuple[int, ...], ...]
    min_isr: int | None


class DeleteTopic(NamedTuple):
    topic: str


class Done(NamedTuple):
    """The answer to a request without a richer one: None, or the refusal."""

    refusal: ControllerRefusal | None


class LogInfoRequest(NamedTuple):
    """The controller's GetReplicaLogInfo (KIP-966, "Unclean recovery")."""

    partitions: tuple[TopicPartition, ...]


class LogInfoReply(NamedTuple):
    """One answer for each partition that the broker hosts."""

    infos: tuple[LogInfo, ...]
