"""Values that a backend answers with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from time import gmtime, strftime
from typing import TYPE_CHECKING, NamedTuple

from recovery.model import Broker, PartitionState, Survey, TopicPartition, Unknown, Why

if TYPE_CHECKING:
    from recovery.plan.judgement import Reason

RIGHTS_UNKNOWN = Unknown(Why.NOT_ALLOWED, "unknown without DESCRIBE on the cluster")
"""The caller's permissions where brokers do not return authorized operations (KIP-430)."""


class Contact(NamedTuple):
    """Whether one broker answered: ``address`` is the address that was tried, ``problem`` is None if it
    answered.

    ``seconds`` since the survey began; ``call`` names the requests that carried the answer, and whether they
    were Kafka's native call or an emulation of it ("GetReplicaLogInfo (native)", "ListOffsets+Fetch
    (emulated)").
    """

    broker: int
    address: str
    problem: Unknown | None
    seconds: float
    call: str


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The cluster as one caught-up broker describes it.

    ``controllers`` is Unknown if the quorum cannot be described. ``elr_enabled`` is the finalised
    ``eligible.leader.replicas.version`` ≥ 1. ``may_alter``: whether the caller has ALTER on the cluster,
    which every change needs; None if that was not requested. ``disks_end_ms``: nothing was asked, and the metadata
    log that was read from a disk ends at that time (ms since 1970); None: it is what a broker answered.
    ``recorded_ms``: it answered so at that time, and nothing is asked now; None: it answers now.
    """

    cluster_id: str
    brokers: tuple[Broker, ...]
    asked: int
    elr_enabled: bool | Unknown
    release: str = ""
    may_alter: bool | Unknown | None = None
    disks_end_ms: int | None = None
    recorded_ms: int | None = None

    @property
    def from_disks(self) -> bool:
        """Nothing was asked: all is read from disks."""
        return self.disks_end_ms is not None

    def broker(self, broker_id: int) -> Broker | None:
        """The listed broker with that id. None: it is not registered, or it is fenced and this release does
        not list fenced brokers.
        """
        return next((b for b in self.brokers if b.id == broker_id), None)


@dataclass(frozen=True, slots=True)
class Partitions:
    """Partition states with what could not be seen: ``hidden`` topics exist but may not be described.

    ``visible_only``: the list comes from a request for all topics, and the broker silently leaves out topics
    that this caller may not see. ``not_compared`` says why it is unknown whether there are such topics; None:
    ``hidden`` is all of them. ``led_before``: who led which partition at the end of the log, of a cluster that is
    read from disks.
    """

    states: tuple[PartitionState, ...]
    unknown: Mapping[TopicPartition, Unknown] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    visible_only: bool = False
    asked: int = -1
    not_compared: Unknown | None = None
    led_before: Mapping[TopicPartition, int] = field(default_factory=dict)

    def of_topics(self, topics: Sequence[str], where: str) -> Partitions:
        """Those of the topics named; a topic without any is unknown: ``where`` has no such topic."""
        wanted = set(topics)
        states = tuple(state for state in self.states if state.topic in wanted)
        unknown = {tp: why for tp, why in self.unknown.items() if tp.topic in wanted}
        missing = wanted.difference((state.topic for state in states), (tp.topic for tp in unknown))
        gone = Unknown(Why.FAILED, f"UNKNOWN_TOPIC_OR_PARTITION: {where} has no such topic")
        unknown |= {TopicPartition(topic, -1): gone for topic in missing}
        return replace(self, states=states, unknown=unknown)

    @property
    def may_hide_topics(self) -> bool:
        """Whether there are, or may be, topics that this caller does not see."""
        return bool(self.hidden) or self.not_compared is not None

    @property
    def topic_ids(self) -> frozenset[str] | None:
        """The ids of all topics of the cluster, of a list of all; None where there are, or may be, others."""
        if self.may_hide_topics:
            return None
        return frozenset(state.topic_id for state in self.states)

    @property
    def unreachable_leaders(self) -> Mapping[TopicPartition, Unknown]:
        """Partitions that have a leader which the listener that was asked does not reach, and why that is so: they
        are not offline.
        """
        return {tp: why for tp, why in self.unknown.items() if tp.partition >= 0}


class Depth(StrEnum):
    """How far down the epoch lineage of each log is read.

    LAST: the last record's epoch only. DIVERGENCE: down to the highest epoch that each pair of replicas has
    in common, which settles what every choice truncates. FULL: to the log start.
    """

    LAST = "last"
    DIVERGENCE = "divergence"
    FULL = "full"


LikelyEpochs = Mapping[int, Mapping[TopicPartition, int]]
"""The epoch of the last record of each log, by broker, as it was read before."""


PICTURE_WAIT = 2.0
"""Seconds after which a picture of the cluster is drawn without a broker that fails to answer, though the
controller lists it as up. An election goes on asking until its deadline.
"""


@dataclass(frozen=True, slots=True)
class SurveyRequest:
    """Which partitions to survey, how deep, and until when (``duration`` in seconds from the call).

    ``leaders_only``: for a partition with a leader, only the leader is asked. ``likely_epochs``: the epochs of the
    last records when these logs were read before, by broker. They are asked for first, and change no answer.
    ``picture_wait``: a broker that has failed to answer for so many seconds is not asked again (PICTURE_WAIT), nor
    is a broker at whose address another node answers; None: both are asked until the end, as an election needs.
    """

    partitions: tuple[PartitionState, ...]
    duration: float
    depth: Depth = Depth.DIVERGENCE
    log_dirs: bool = True
    leaders_only: bool = False
    likely_epochs: LikelyEpochs = field(default_factory=dict)
    picture_wait: float | None = None


@dataclass(frozen=True, slots=True)
class SurveyResult:
    """Every partition's replicas as they answered, in the requested order, and which brokers answered.

    Where ``surveys`` are columns (``recovery.survey_columns``), a survey is created when it is read.
    """

    surveys: Sequence[Survey]
    contacts: tuple[Contact, ...]

    def contact(self, broker: int) -> Contact | None:
        """Whether that broker answered; None if it was not asked."""
        return next((c for c in self.contacts if c.broker == broker), None)


class Outcome(StrEnum):
    """How one partition's election ended."""

    ELECTED = "elected"
    ALREADY_ONLINE = "already online"
    OTHER_LEADER = "another leader"
    STALE = "stale"
    FAILED = "failed"
    NOT_ATTEMPTED = "not attempted"


class Election(NamedTuple):
    """The end of one partition's election. ``leader`` and ``leader_epoch`` as read back, -1 unknown.

    ``reverted`` is False if the assignment may still be in the order that we wrote, or if somebody else has
    changed the replica set meanwhile (we do not touch it then); ``detail`` says which. ``reason`` is the
    judgement's reason, if a judgement decided the outcome: before the election was sent, or from the leader
    that was found. ``in_doubt``: the election was not answered and may still be carried out.
    """

    tp: TopicPartition
    outcome: Outcome
    leader: int
    leader_epoch: int
    detail: str
    reverted: bool = True
    reason: Reason | None = None
    in_doubt: bool = False


class LogPosition(NamedTuple):
    """An offset of one partition's log on one broker."""

    tp: TopicPartition
    offset: int


class RawBatches(NamedTuple):
    """Record batches as they lie in a replica's log (magic 2, KIP-98), compression and leader epochs untouched.

    The first batch holds the offset that was asked for, and may begin before it; the last one may be cut, as
    brokers send them. Empty at the log's end, and where other partitions used up the answer's room. Offsets -1
    if not known.
    """

    data: bytes
    log_start: int = -1
    high_watermark: int = -1


class LogDirReplica(NamedTuple):
    """One replica in a log dir: ``size`` in bytes, ``offset_lag`` in records, ``future`` while it is moved."""

    tp: TopicPartition
    size: int
    offset_lag: int
    future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """A broker's log dir. ``error`` None: healthy; bytes are -1 where they are not known.

    ``replicas`` may be created lazily. ``cordoned``: the broker puts no new replica there (KIP-1066); None: its
    release does not tell (DescribeLogDirs before version 5). ``last_listed``: its broker lists no log dirs
    now, and this is when it last listed this one, as failed (seconds since 1970), with the replicas that are known
    to have been on it; None: it lists it now.
    """

    broker: int
    path: str
    error: str | None
    total_bytes: int
    usable_bytes: int
    replicas: Sequence[LogDirReplica]
    cordoned: bool | None = None
    last_listed: float | None = None

    @property
    def problem(self) -> str:
        """The error, and when it was told where it is not told now; "" for a healthy log dir."""
        if self.error is None or self.last_listed is None:
            return self.error or ""
        when = strftime("%Y-%m-%d %H:%M:%S UTC", gmtime(self.last_listed))
        return f"{self.error} when broker {self.broker} last listed it, {when}"


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A reassignment in progress (ListPartitionReassignments)."""

    tp: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class Offered(NamedTuple):
    """One API: the version range that every asked broker serves, or why it is not available."""

    call: str
    versions: tuple[int, int] | Unknown
    used_for: str


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The APIs that this cluster offers (from ApiVersions), and how replica logs and elections are done on
    it.
    """

    calls: tuple[Offered, ...]
    features: Mapping[str, int]
    replica_logs: str
    designated_elections: str | Unknown

    @property
    def native_elections(self) -> bool:
        """Whether the cluster has designated elections of its own, so that no assignment order has to be
        written.
        """
        return isinstance(self.designated_elections, str) and "(native)" in self.designated_elections
