"""One frozen view of the cluster: what all panes show, filled as answers arrive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from backends.base.answers import (
    Capabilities,
    ClusterInfo,
    Partitions,
)
from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.cluster_health import ClusterHealth
from recovery.cut_off_logs import CutOffLogs
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_without_leader import QuorumWithoutLeader
from recovery.model import Broker, PartitionState, Survey, TopicPartition, Unknown
from recovery.plan.importance import NO_TIERS, Importance
from recovery.plan.topic_marks import Mark
from recovery.ranking import Ranking
from recovery.strategy import Strategy

if TYPE_CHECKING:
    from backends.base.answers import LogDir
    from backends.base.failed_disks import LogDirs
    from console.journal.run_records import ClusterMarks
    from console.reading.cluster_reading import ClusterReading
    from console.reading.unread_disks import OpenDisks
    from recovery.membership.after_rebuild import AfterRebuild
    from recovery.metadata_log.history import MetadataHistory


NOT_ANSWERED_YET = "not known: the cluster has not answered yet"
NOT_REACHED_YET = "not known: nobody is reached at this address"
"""What a list says before the first answer, and where none came: an empty list must not read as good news."""


class Link(StrEnum):
    """How the console stands with the cluster."""

    CONNECTING = "connecting"
    UP = "up"
    LOST = "lost"


class LogRead(NamedTuple):
    """A metadata log of so many changes; None: none was read. ``copied``: it may have gone on since."""

    changes: int | None
    copied: bool

    @classmethod
    def of(cls, history: MetadataHistory | Unknown, copied: bool) -> LogRead:  # as or_copy() gives them
        return cls(None if isinstance(history, Unknown) else len(history), copied)


class JudgedSurvey(NamedTuple):
    """What the verdicts of a partition follow from: one survey, the metadata log that ``log`` identifies, and the
    brokers whose disks had ``failed`` under it. The verdicts are in the reading.
    """

    survey: Survey
    log: LogRead
    failed: frozenset[int]


class JudgedDisks(NamedTuple):
    """What the reading follows from in whose disks are to be read before they start, and what to do first."""

    cluster: ClusterInfo
    partitions: Partitions
    configs: Mapping[str, Mapping[str, str] | Unknown]
    log: LogRead
    journal: OpenDisks


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """What the screen needs beside what is in trouble: ``shown`` are partitions whose logs it shows, ``deep`` the
    one that is asked to the bottom, ``log_dirs`` whether it shows disks.
    """

    shown: frozenset[TopicPartition] = frozenset()
    deep: TopicPartition | None = None
    log_dirs: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """The cluster as it was seen by one look, or by as much of one as has come.

    ``reading`` is what is known of it, None before the partitions were told; until then ``opened`` is the
    cluster. A part that was not asked yet is None or empty in it, one that could not be had is Unknown. The
    rest is what only a screen needs. ``at`` is when the look ended (seconds of the console's clock), None while
    the first is under way. ``troubled`` are the partitions that are offline or may be under min ISR. ``first``
    is when the partitions were first told, ``since`` when each was first seen in trouble. ``surveyed`` is when
    the logs of a partition were asked; ``configs_at`` and ``dirs_at`` when those parts were, ``controllers_at``
    when each controller was. ``answered`` is when each broker answered last, ``fenced_since`` when each fenced
    one was fenced, and whether that is exact or the first time it was seen so. ``judged`` and ``disks_judged``
    tell what has to be judged again. ``after_rebuild`` is where the cluster stands after its quorum was
    rebuilt; None: it was not, as far as the metadata log tells. ``leaderless`` are the logs of partitions as they
    were read last while nobody led; ``cut_off`` is what their next leaders lacked of them. A look that found a part
    as it was keeps the very same object.
    """

    generation: int = 0
    at: float | None = None
    opened: ClusterInfo | None = None
    reading: ClusterReading | None = None
    capabilities: Capabilities | Unknown | None = None
    troubled: tuple[PartitionState, ...] = ()
    surveyed: Mapping[TopicPartition, float] = field(default_factory=dict)
    after_rebuild: AfterRebuild | None = None
    controllers_at: float | None = None
    first: float | None = None
    since: Mapping[TopicPartition, float] = field(default_factory=dict)
    judged: Mapping[TopicPartition, JudgedSurvey] = field(default_factory=dict)
    disks_judged: JudgedDisks | None = None
    answered: Mapping[int, float] = field(default_factory=dict)
    fenced_since: Mapping[int, tuple[float, bool]] = field(default_factory=dict)
    configs_at: float | None = None
    dirs_at: float | None = None
    leaderless: Mapping[TopicPartition, Survey] = field(default_factory=dict)
    cut_off: Mapping[TopicPartition, CutOffLogs] = field(default_factory=dict)

    def aged(self) -> View:
        """As it is, and nothing of it recent: the next look asks for what seldom changes too."""
        return replace(self, configs_at=None, dirs_at=None, controllers_at=None)

    @property
    def native_elections(self) -> bool:
        """Whether the cluster is known to elect the designated leader or nobody."""
        if not isinstance(self.capabilities, Capabilities):
            return False
        elections = self.capabilities.designated_elections
        return isinstance(elections, str) and "native" in elections

    @property
    def cluster(self) -> ClusterInfo | None:
        return self.opened if self.reading is None else self.reading.cluster

    @property
    def cluster_id(self) -> str:
        return "" if self.cluster is None else self.cluster.cluster_id

    @property
    def partitions(self) -> Partitions | None:
        return None if self.reading is None else self.reading.partitions

    @property
    def surveys(self) -> Mapping[TopicPartition, Survey]:
        return {} if self.reading is None else self.reading.by_partition

    @property
    def verdicts(self) -> Mapping[TopicPartition, PartitionVerdicts]:
        return {} if self.reading is None else self.reading.verdicts

    @property
    def topic_marks(self) -> Mapping[str, tuple[Mark, ...]]:
        return {} if self.reading is None else self.reading.topic_marks

    @property
    def quorum(self) -> Quorum | QuorumWithoutLeader | Unknown | None:
        return None if self.reading is None else self.reading.lost or self.reading.quorum

    @property
    def log_dirs(self) -> LogDirs | None:
        """None: not asked yet."""
        return None if self.reading is None else self.reading.log_dirs or None

    @property
    def failed_before(self) -> tuple[LogDir, ...]:
        """Log dirs that had failed, of brokers that list none now."""
        return () if self.reading is None else self.reading.failed_before

    @property
    def health(self) -> ClusterHealth | None:
        """That of the whole cluster; None before the partitions were told."""
        return None if self.reading is None else self.reading.health

    @property
    def cluster_marks(self) -> ClusterMarks:
        """What tells the cluster from another one with the same id, as far as it was read."""
        from console.journal.run_records import NO_MARKS  # noqa: PLC0415  # after the first frame

        return NO_MARKS if self.reading is None else self.reading.cluster_marks

    @property
    def brokers(self) -> Mapping[int, Broker]:
        return {} if self.cluster is None else {broker.id: broker for broker in self.cluster.brokers}

    @property
    def offline(self) -> int:
        return sum(1 for state in self.troubled if state.offline)


@dataclass(frozen=True, slots=True)
class Choosing:
    """By what a leader is chosen, as the command line's options have it."""

    ranking: Ranking = Ranking.LAST_RECORD
    strategy: Strategy = Strategy.BALANCED
    importance: Importance = NO_TIERS
