"""One frozen view of the cluster: what all panes show, filled as answers arrive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from backends.base.answers import (
    Capabilities,
    ClusterInfo,
    Contact,
    LogDir,
    Partitions,
    Reassignment,
)
from recovery.acknowledged.disks_to_read import DisksToRead
from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.advice import FirstStep
from recovery.cluster_health import ClusterHealth
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_without_leader import QuorumWithoutLeader
from recovery.model import Broker, PartitionState, Survey, TopicPartition, Unknown
from recovery.plan.importance import NO_TIERS, Importance
from recovery.plan.topic_marks import Mark
from recovery.ranking import Ranking
from recovery.strategy import Strategy
from recovery.unread_disks import UnreadDisk, UnreadDiskState

if TYPE_CHECKING:
    from console.journal.run_records import ClusterMarks
    from console.reading.cluster_reading import ClusterReading
    from console.reading.unread_disks import OpenDisks
    from recovery.membership.after_rebuild import AfterRebuild


class Link(StrEnum):
    """How the console stands with the cluster."""

    CONNECTING = "connecting"
    UP = "up"
    LOST = "lost"


class LogRead(NamedTuple):
    """A metadata log of so many changes; None: none was read. ``copied``: it may have gone on since."""

    changes: int | None
    copied: bool


class JudgedSurvey(NamedTuple):
    """The verdicts of one survey, by the metadata log that ``log`` identifies, where the disks of the brokers
    ``failed`` had failed under it.
    """

    survey: Survey
    log: LogRead
    failed: frozenset[int]
    verdicts: PartitionVerdicts


class JudgedDisks(NamedTuple):
    """Whose disks are to be read before they start, by these partitions, configurations, metadata log and journal,
    and what that means for what is done first.
    """

    partitions: Partitions
    configs: Mapping[str, Mapping[str, str] | Unknown]
    log: LogRead
    journal: OpenDisks | None
    unread: DisksToRead
    steps: tuple[FirstStep, ...]


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

    ``at`` is when the look ended (seconds of the console's clock), None while the first is under way. A part that
    was not asked yet is None or empty, one that could not be had is Unknown; a quorum that has no leader is a
    QuorumWithoutLeader.
    ``first`` is when the partitions were first told, ``since`` when each was first seen in trouble,
    ``offline_since`` when it lost its leader, where the metadata log tells. ``surveyed`` is
    when the logs of a partition were asked; ``configs_at`` and ``dirs_at`` when those parts were,
    ``controllers_at`` when each controller was. ``health`` is
    that of the whole cluster, None before the partitions were told. ``answered`` is when each broker answered last,
    ``fenced_since`` when each fenced one was fenced, and whether that is exact or the first time it was seen so. A
    look that found a part as it was keeps the very same object. ``failed_before`` are log dirs that had failed, of
    brokers that list none now. ``disks`` are those of brokers that are down, of
    partitions with a leader. ``after_rebuild`` is where the cluster stands after its quorum was rebuilt; None: it
    was not, as far as the metadata log tells. ``unread_disks`` are those that the ``journal`` has as not read
    before an election, and what became of them.
    """

    generation: int = 0
    at: float | None = None
    cluster: ClusterInfo | None = None
    capabilities: Capabilities | Unknown | None = None
    partitions: Partitions | None = None
    troubled: tuple[PartitionState, ...] = ()
    configs: Mapping[str, Mapping[str, str] | Unknown] = field(default_factory=dict)
    surveys: Mapping[TopicPartition, Survey] = field(default_factory=dict)
    surveyed: Mapping[TopicPartition, float] = field(default_factory=dict)
    contacts: Mapping[int, Contact] = field(default_factory=dict)
    marks: Mapping[str, tuple[Mark, ...]] = field(default_factory=dict)
    quorum: Quorum | QuorumWithoutLeader | Unknown | None = None
    after_rebuild: AfterRebuild | None = None
    controllers_at: float | None = None
    log_dirs: Mapping[int, tuple[LogDir, ...] | Unknown] | None = None
    failed_before: tuple[LogDir, ...] = ()
    reassignments: tuple[Reassignment, ...] | Unknown | None = None
    first: float | None = None
    since: Mapping[TopicPartition, float] = field(default_factory=dict)
    offline_since: Mapping[TopicPartition, float] = field(default_factory=dict)
    verdicts: Mapping[TopicPartition, JudgedSurvey] = field(default_factory=dict)
    answered: Mapping[int, float] = field(default_factory=dict)
    fenced_since: Mapping[int, tuple[float, bool]] = field(default_factory=dict)
    configs_at: float | None = None
    dirs_at: float | None = None
    health: ClusterHealth | None = None
    disks: JudgedDisks | None = None
    journal: OpenDisks | None = None
    unread_disks: Mapping[UnreadDisk, UnreadDiskState] = field(default_factory=dict)

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
    def cluster_id(self) -> str:
        return "" if self.cluster is None else self.cluster.cluster_id

    @property
    def reading(self) -> ClusterReading | None:
        """As one reading, as far as it was read; None before the partitions were."""
        # Not before the first frame.
        from console.reading.cluster_reading import ClusterReading  # noqa: PLC0415

        if self.cluster is None or self.partitions is None:
            return None
        lost = self.quorum if isinstance(self.quorum, QuorumWithoutLeader) else None
        return ClusterReading(
            self.cluster,
            self.partitions,
            tuple(self.surveys.values()),
            tuple(self.contacts.values()),
            configs=self.configs,
            log_dirs=self.log_dirs or {},
            failed_before=self.failed_before,
            quorum=None if isinstance(self.quorum, QuorumWithoutLeader) else self.quorum,
            lost=lost,
            reassignments=self.reassignments,
            verdicts={tp: judged.verdicts for tp, judged in self.verdicts.items()},
            steps=() if self.disks is None else self.disks.steps,
            unread=DisksToRead() if self.disks is None else self.disks.unread,
            disks=self.unread_disks,
        )

    @property
    def cluster_marks(self) -> ClusterMarks:
        """What tells the cluster from another one with the same id, as far as it was read."""
        from console.journal.run_records import ClusterMarks  # noqa: PLC0415  # after the first frame

        return ClusterMarks.of(self.partitions, self.quorum)

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
