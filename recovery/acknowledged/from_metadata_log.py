"""Takes partitions' ISR histories out of a folded metadata log."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType

from recovery.acknowledged.broker_restarts import (
    BrokerRestart,
    broker_restarts,
    restart_after_copy,
    shut_down,
)
from recovery.acknowledged.in_sync_history import InSyncHistory
from recovery.acknowledged.min_isr_over_time import BEFORE_THE_LOG, min_isr_over_time
from recovery.acknowledged.partition_facts import has_epochs
from recovery.controller.registration import Registration
from recovery.metadata_log.history import MetadataHistory, PartitionInterval
from recovery.metadata_log.log_changes import IN_SNAPSHOT, ConfigSubject, PartitionSubject, TopicSubject
from recovery.metadata_log.records import ConfigRecord, ResourceType
from recovery.model import FileAnswer, MinIsrLevels, PartitionState, Survey, Unknown, Why

CLEANUP_POLICY = "cleanup.policy"


class InSyncHistories:
    """The ISR histories of the partitions in one folded metadata log, which must not grow meanwhile. Those that
    changed alike share one, and what it has computed. ``copied``: the log may have gone on since, without a change
    of the partition; every broker may have started again then. ``file_answers``: what brokers answered earlier
    about their own files.
    """

    def __init__(
        self,
        history: MetadataHistory,
        *,
        copied: bool = False,
        file_answers: Mapping[int, Sequence[FileAnswer]] = MappingProxyType({}),
    ) -> None:
        self._history = history
        self._file_answers = file_answers
        self._unseen = (restart_after_copy(history),) if copied else ()
        self._unread = history.counts.unread
        self._intervals: dict[int, tuple[PartitionInterval, ...]] = {}
        self._shared: dict[Hashable, InSyncHistory] = {}
        # A log of many recoveries has thousands of changes of each broker.
        self._restarts: dict[int, tuple[BrokerRestart, ...]] = {}
        self._shut_down: dict[int, bool] = {}

    def of(self, survey: Survey) -> InSyncHistory | Unknown:
        """The partition's history, or why it cannot be used: it must end in the state that the survey found, and
        every record of the log that may touch a partition must have been understood.
        """
        state, min_isr = survey.state, survey.min_isr
        if self._unread:
            return Unknown(Why.FAILED, f"the metadata log cannot be used: {self._unread}")
        subject = PartitionSubject(state.topic_id, state.partition)
        likeness = self._history.likeness(subject)
        intervals = self._intervals.get(likeness)
        if intervals is None:
            intervals = self._intervals[likeness] = self._history.intervals(subject)
        ends = "" if self._history.ends is None else f" (it is evidence up to there: {self._history.ends})"
        if not intervals or intervals[-1].until_ms is not None:
            return Unknown(Why.NOT_ANSWERED, f"the metadata log does not hold {state.tp}{ends}")
        if not _same(intervals[-1].registration, state):
            why = f"the metadata log and the cluster tell {state.tp} differently{ends}"
            return Unknown(Why.NOT_ANSWERED, why)
        if isinstance(min_isr, Unknown):
            return min_isr
        # What a verdict asks of a history depends on whose logs are known (InSyncHistory.rests_on_files).
        known = tuple(replica.broker for replica in survey.replicas if has_epochs(replica.log))
        key = (likeness, state.topic, min_isr, known, survey.min_isr_on)
        found = self._shared.get(key)
        if found is None:
            read = self._read(subject, intervals, min_isr, survey.min_isr_on)
            read.once_compacted = self._once_compacted(state.topic)
            read.ends = "" if self._history.ends is None else str(self._history.ends)
            found = self._shared[key] = read
        return found

    def _once_compacted(self, topic: str) -> bool:
        """Whether any topic of this name was compacted. Kafka writes no record that removes a deleted topic's
        configuration, and a broker that restarts goes by it again, also for a topic that was made again without it
        (tried on 4.3.1 and 4.4.0: its cleaner removed acknowledged records).
        """
        rows = self._history.of(ConfigSubject(ResourceType.TOPIC, topic, CLEANUP_POLICY))
        changes = (row.change for row in rows)
        return any(isinstance(one, ConfigRecord) and "compact" in (one.value or "") for one in changes)

    def _read(
        self,
        subject: PartitionSubject,
        intervals: tuple[PartitionInterval, ...],
        min_isr: int,
        answers: tuple[MinIsrLevels, ...],
    ) -> InSyncHistory:
        history = self._history
        intervals, rebuilt = self._since_rebuild(subject, intervals)
        begins_whole = not rebuilt and next(history.of(subject)).batch != IN_SNAPSHOT
        if not begins_whole:
            intervals = (intervals[0]._replace(offset=BEFORE_THE_LOG), *intervals[1:])
        brokers = sorted({broker for one in intervals for broker in one.registration.replicas})
        for broker in brokers:
            if broker not in self._restarts:
                self._restarts[broker] = (*broker_restarts(history, broker), *self._unseen)
                self._shut_down[broker] = shut_down(history, broker)
        restarts = {broker: self._restarts[broker] for broker in brokers}
        topic = TopicSubject(subject.topic_id)
        found = InSyncHistory(
            intervals,
            min_isr_over_time(
                history, topic, restarts, min_isr, answers=answers, file_answers=self._file_answers
            ),
            restarts,
            from_creation=begins_whole,
            shut_down=frozenset(broker for broker in brokers if self._shut_down[broker]),
        )
        if rebuilt:
            found.begins = f"the {rebuilt}"
        return found

    def _since_rebuild(
        self, subject: PartitionSubject, intervals: tuple[PartitionInterval, ...]
    ) -> tuple[tuple[PartitionInterval, ...], str]:
        """The states since the quorum was rebuilt last, from the one in force then on, and what that was, "" where
        there was no rebuild since the partition exists. What the lost quorum committed behind the copy is in no
        log: who was in the ISR then, and with which min ISR, nobody knows.
        """
        written, rebuilt = self._history.written_by_rebuild(subject), self._history.rebuilt
        if rebuilt is not None and (written is None or written < rebuilt.offset):
            made = next(self._history.of(subject))
            if made.batch == IN_SNAPSHOT or made.offset < rebuilt.offset:
                behind = sum(one.offset < rebuilt.offset for one in intervals[1:])
                return intervals[behind:], "rebuild of the quorum"
        if written is None:
            return intervals, ""
        since = tuple(one for one in intervals if one.offset >= written)
        return since, "rebuild of the quorum, which wrote the partition"


def _same(registration: Registration, state: PartitionState) -> bool:
    """Whether the controller's record is what the survey found. An ISR comes in any order."""
    return (
        registration.leader,
        registration.leader_epoch,
        set(registration.replicas),
        set(registration.isr),
    ) == (
        state.leader,
        state.leader_epoch,
        set(state.replicas),
        set(state.isr),
    )
