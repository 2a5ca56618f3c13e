"""Where a cluster stands after ``quorum rebuild``: which of the steps that follow are done, as far as is seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from recovery.membership.controllers_asked import ControllersAsked, QuorumProblem
from recovery.membership.lost_quorum import EPOCH_MARGIN
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_health import MemberRole, MemberState, QuorumHealth
from recovery.membership.rewritten_partitions import RewrittenPartition
from recovery.metadata_log.log_changes import PartitionSubject
from recovery.metadata_log.rebuilt_log import RebuiltLog
from recovery.model import Broker, PartitionState, TopicPartition

if TYPE_CHECKING:
    # Only a cluster whose quorum was rebuilt needs it; the words are loaded for each first frame.
    from recovery.metadata_log.history import MetadataHistory

WANTED_VOTERS = 3


class AfterRebuildStep(StrEnum):
    """The steps, in their order."""

    SETTINGS = "settings"
    STOP = "stop"
    START = "start"
    BROKERS = "brokers"
    SURVEY = "survey"
    ELECT = "elect"
    RESTORED = "restored topics"
    GROW = "grow"
    CHECK = "check"
    WIPE = "wipe"


class AfterRebuildProgress(StrEnum):
    """``NOT_SEEN``: whether it is done cannot be seen from here."""

    DONE = "done"
    NOW = "now"
    LATER = "later"
    NOT_SEEN = "not seen"


@dataclass(frozen=True, slots=True)
class AfterRebuild:
    """``partitions`` are those that the rebuild wrote, ``states`` what they are now, ``away`` the brokers that are
    fenced, or have replicas and are not registered. ``unsurveyed``: how many of the ``offline`` partitions nobody
    has asked the replicas of. ``asked`` None: the controllers were not asked one by one.
    """

    log: RebuiltLog
    partitions: tuple[RewrittenPartition, ...]
    states: dict[TopicPartition, PartitionState]
    health: QuorumHealth
    away: tuple[int, ...]
    offline: int
    unsurveyed: int
    asked: ControllersAsked | None

    @property
    def quorum(self) -> Quorum:
        return self.health.quorum

    @property
    def joining(self) -> tuple[int, ...]:
        """The controllers that fetch and have no vote yet."""
        up = (MemberState.CAUGHT_UP, MemberState.BEHIND)
        members = self.health.members
        return tuple(m.key.id for m in members if m.role is MemberRole.CONTROLLER and m.state in up)

    @property
    def restored_topics(self) -> tuple[str, ...]:
        """Those that only brokers' disks knew."""
        return tuple(sorted({one.topic for one in self.partitions if one.is_new}))

    @property
    def findings(self) -> tuple[str, ...]:
        """What the controllers' own answers show to be wrong."""
        return () if self.asked is None else tuple(f.text for f in self.asked.findings(self.health))

    @property
    def wrong_settings(self) -> tuple[str, ...]:
        """Who would not find the quorum, in sentences."""
        if self.asked is None:
            return ()
        found = self.asked.findings(self.health)
        return tuple(one.text for one in found if one.problem is QuorumProblem.LEADER_NOT_NAMED)

    @property
    def steps(self) -> dict[AfterRebuildStep, AfterRebuildProgress]:
        """Each step that applies, in its order. The first that is seen to be open is done now."""
        grown = len(self.quorum.voters.keys) >= WANTED_VOTERS
        progress: dict[AfterRebuildStep, bool | None] = {
            AfterRebuildStep.SETTINGS: False if self.wrong_settings else None if self.away else True
        }
        if self.partitions:
            progress[AfterRebuildStep.STOP] = None if self.away else True
        progress |= {
            AfterRebuildStep.START: True,
            AfterRebuildStep.BROKERS: not self.away,
            AfterRebuildStep.SURVEY: not self.unsurveyed,
            AfterRebuildStep.ELECT: not self.offline,
            **({AfterRebuildStep.RESTORED: None} if self.restored_topics else {}),
            AfterRebuildStep.GROW: grown,
            AfterRebuildStep.CHECK: grown and self.asked is not None and not self.findings,
            AfterRebuildStep.WIPE: None,
        }
        open_step = next((step for step, done in progress.items() if done is False), None)
        return {
            step: AfterRebuildProgress.DONE
            if done
            else AfterRebuildProgress.NOT_SEEN
            if done is None
            else AfterRebuildProgress.NOW
            if step is open_step
            else AfterRebuildProgress.LATER
            for step, done in progress.items()
        }

    @property
    def now(self) -> AfterRebuildStep | None:
        """The step that comes next; None: nothing is seen to be open."""
        return next((step for step, at in self.steps.items() if at is AfterRebuildProgress.NOW), None)


def away_brokers(brokers: Iterable[Broker], states: Iterable[PartitionState]) -> tuple[int, ...]:
    """Those that are fenced, or have replicas and are not registered."""
    known = {broker.id: broker for broker in brokers}
    assigned = {replica for state in states for replica in state.replicas}
    return tuple(sorted({b.id for b in known.values() if b.fenced} | (assigned - set(known))))


def partitions_written(history: MetadataHistory, log: RebuiltLog) -> tuple[RewrittenPartition, ...]:
    """The partitions that a rebuild wrote, with what the log knew before."""
    subjects: Iterable[PartitionSubject] = dict.fromkeys(
        row.subject
        for row in history.rows()
        if log.offset <= row.offset < log.end and isinstance(row.subject, PartitionSubject)
    )
    found = []
    for subject in subjects:
        states = history.intervals(subject)
        at = next((n for n, one in enumerate(states) if log.offset <= one.offset < log.end), None)
        if at is None:
            continue
        after = states[at].registration
        known = -1 if at == 0 else states[at - 1].registration.leader_epoch
        name = history.topic_name(subject.topic_id) or subject.topic_id
        disk = after.leader_epoch - EPOCH_MARGIN
        found.append(RewrittenPartition(name, *subject, known, disk, after))
    return tuple(sorted(found, key=lambda one: one[:3]))
