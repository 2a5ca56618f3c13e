"""Folds a metadata log that is read in parts into incidents, and keeps no more than the present state between them.

An incident of a partition is the time in which it has no leader, or an unclean election. Its times are those
of the log, so they are exact, with two exceptions: what a snapshot shows began before it, and what happened
in a gap of the log is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from recovery.controller.registration import PartitionChange, Registration
from recovery.metadata_log.change_reader import ChangeReader
from recovery.metadata_log.log_changes import (
    IN_SNAPSHOT,
    Change,
    DecodedRecord,
    HistoryRow,
    MetadataLogRecord,
    PartitionSubject,
    Subject,
    TopicSubject,
)
from recovery.metadata_log.min_isr_levels import MinIsrConfig, MinIsrLevel
from recovery.metadata_log.outages import Outage, OutageTracker
from recovery.metadata_log.partition_states import EpochState, EventKind, PartitionStates, PartitionStep
from recovery.metadata_log.records import ConfigRecord, RemoveTopicRecord
from recovery.metadata_log.timeline import CAUSES, PartitionMove, cause_of, kind_of_change
from recovery.model import TopicPartition


class IncidentKey(NamedTuple):
    """An incident by its partition and the offset of the record that began it."""

    subject: PartitionSubject
    offset: int


class OpenIncident(NamedTuple):
    """``exact``: the log shows when it began. ``leader_epoch``: the partition's while it has no leader."""

    key: IncidentKey
    outage: Outage
    exact: bool
    leader_epoch: int


class EndedIncident(NamedTuple):
    """``outage`` with its end; no end means that it ended in a gap of the log, at an unknown time.

    ``instant``: an unclean election without a time offline; ``since_ms`` is equal to ``until_ms``.
    """

    key: IncidentKey
    outage: Outage
    exact: bool
    instant: bool = False


class IncidentMoment(NamedTuple):
    """A change of a partition in an incident: its state from then on. ``min_isr`` None: no record sets one.

    The batch of ``row`` is IN_SNAPSHOT if a snapshot shows the partition offline.
    """

    key: IncidentKey
    row: HistoryRow
    move: PartitionMove
    cause: HistoryRow | None
    min_isr: int | None


class ClusterMoment(NamedTuple):
    """A change of a broker, or of min.insync.replicas."""

    kind: EventKind
    row: HistoryRow


class LogGap(NamedTuple):
    """The log was read from a new beginning: events were reported up to before ``reported_until``, and the log
    continues at ``goes_on``.

    If ``goes_on`` is later, changes are missing in between. If it is earlier, the log was rewritten: some of what
    was reported may never have been committed.
    """

    reported_until: int
    goes_on: int
    time_ms: int


@dataclass(slots=True)
class FoldState:
    """All that is kept between two parts of a log.

    ``reported_until``: changes before this offset have been reported. ``uncertain``: the log was begun again,
    and has not reached that offset yet. Records before ``goes_on`` are in the snapshot with which it was
    begun. ``transaction``: the records of a controller transaction that has not ended; None: there is none.
    """

    reported_until: int = 0
    uncertain: bool = True
    goes_on: int = 0
    topics: dict[str, str] = field(default_factory=dict)
    partitions: dict[PartitionSubject, EpochState] = field(default_factory=dict)
    min_isr: dict[MinIsrLevel, int] = field(default_factory=dict)
    incidents: dict[PartitionSubject, OpenIncident] = field(default_factory=dict)
    transaction: list[MetadataLogRecord] | None = None


class IncidentFold:
    """Takes parts of a log in their order; ``moments``, ``ended`` and ``gaps`` are what they reported.

    A part ends with a whole record batch, because one event of the controller is one batch.
    """

    def __init__(self, state: FoldState) -> None:
        self._incidents = state.incidents
        self._reported_until = state.reported_until
        self._uncertain = state.uncertain
        self._deleted: set[str] = set()
        self._begin(state)
        self.moments: list[IncidentMoment | ClusterMoment] = []
        self.gaps: list[LogGap] = []
        self.ended: list[EndedIncident] = []

    def _begin(self, state: FoldState) -> None:
        self._reader = ChangeReader(self._take)
        self._reader.resume(state.topics, state.partitions, state.transaction)
        self._states = PartitionStates(state.partitions)
        self._min_isr = MinIsrConfig(state.min_isr)
        self._tracker = OutageTracker(open_.outage for open_ in self._incidents.values())
        self._goes_on = state.goes_on
        self._batch = IN_SNAPSHOT
        self._changes: list[HistoryRow] = []
        self._steps: list[tuple[HistoryRow, PartitionStep]] = []
        self._newest_ms = self._newest_offset = -1

    def extend(self, records: Iterable[MetadataLogRecord]) -> None:
        """Folds whole batches, and reports them."""
        self._reader.extend(record for record in records if self._is_new(record))
        self._end_batch()
        self._reported_until = max(self._reported_until, self._newest_offset + 1)

    def restart(self, records: Iterable[MetadataLogRecord], goes_on: int) -> None:
        """Reads the log from a new beginning: a snapshot's records, or none. It continues at offset ``goes_on``.

        Incidents that are open stay open if the new state proves that nothing happened to them; others end at an
        unknown time.
        """
        self._begin(FoldState(goes_on=goes_on))
        self._deleted.clear()
        self._uncertain = True
        self.extend(records)
        if self._reported_until:
            self.gaps.append(LogGap(self._reported_until, goes_on, self._newest_ms))
        if goes_on >= self._reported_until:
            self._compare(goes_on)
            self._reported_until = goes_on

    @property
    def state(self) -> FoldState:
        topics = {name: text for name, text in self._reader.topics.items() if name not in self._deleted}
        return FoldState(
            self._reported_until,
            self._uncertain,
            self._goes_on,
            topics,
            self._states.now,
            self._min_isr.values,
            self._incidents,
            self._reader.pending,
        )

    # For those who fold the changes of partitions that are in no incident themselves

    @property
    def settled(self) -> bool:
        """Whether every change is reported as it comes: no gap is being closed, and no transaction is open."""
        return not self._uncertain and self._reader.pending is None

    @property
    def goes_on(self) -> int:
        """The first offset that counts."""
        return self._goes_on

    @property
    def states(self) -> PartitionStates:
        return self._states

    def registration(self, subject: PartitionSubject) -> Registration | None:
        """The present state of the partition; None: it is not known."""
        state = self._states.now.get(subject)
        return None if state is None else state.registration

    def in_incident(self, subject: PartitionSubject) -> bool:
        return subject in self._incidents

    def partition_subject(self, where: bytes) -> PartitionSubject:
        """The partition of a record, given its bytes from SUBJECT_AT to CHANGE_AT. Raises MalformedRecordError."""
        return self._reader.partition_subject(where)

    def partition_fields(self, rest: bytes) -> Registration | PartitionChange:
        """What a record about a partition says, given without those bytes. Raises MalformedRecordError."""
        return self._reader.partition_fields(rest)

    def passed(self, offset: int, time_ms: int) -> None:
        """What was not given to :meth:`extend` up to there is in the states, and begins no incident."""
        if offset > self._newest_offset:
            self._newest_offset, self._newest_ms = offset, time_ms

    # One change

    def _is_new(self, record: MetadataLogRecord) -> bool:
        return record.offset >= self._goes_on or record.batch == IN_SNAPSHOT

    def _take(self, record: MetadataLogRecord | DecodedRecord, subject: Subject, change: Change) -> None:
        offset, time_ms, batch, _ = record
        if batch != self._batch:
            self._end_batch()
            self._batch = batch
        if batch != IN_SNAPSHOT:
            if self._uncertain and offset >= self._reported_until:
                self._compare(offset)
            self._newest_offset = offset
        self._newest_ms = time_ms
        silent = batch == IN_SNAPSHOT or self._uncertain
        if isinstance(subject, PartitionSubject):
            taken = self._states.take(subject, change)
            if taken is None or silent:
                return
            if taken.kind in BEGINNINGS or subject in self._incidents:
                self._steps.append((HistoryRow(offset, time_ms, batch, subject, change), taken.step))
            return
        if isinstance(change, RemoveTopicRecord) and isinstance(subject, TopicSubject):
            self._deleted.add(subject.topic_id)
            self._min_isr.removed(self._reader.topics.get(subject.topic_id, ""))
        relevant = self._min_isr.take(change) if isinstance(change, ConfigRecord) else True
        if relevant and not silent:
            self._changes.append(HistoryRow(offset, time_ms, batch, subject, change))

    def _end_batch(self) -> None:
        """The changes of partitions come before the change of a broker that caused them, in the same batch."""
        if self._steps or self._changes:
            causes = [row for row in self._changes if isinstance(row.change, CAUSES)]
            for row, step in self._steps:
                self._report(row, step, cause_of(step, causes))
            for row in self._changes:
                kind = kind_of_change(row.change)
                if kind in _OF_CLUSTER:
                    self.moments.append(ClusterMoment(kind, row))
            self._steps, self._changes = [], []

    def _report(self, row: HistoryRow, step: PartitionStep, cause: HistoryRow | None) -> None:
        subject = row.subject
        assert isinstance(subject, PartitionSubject)
        move = PartitionMove(self._named(subject), *step)
        outage = self._tracker.take(move, row.time_ms)
        open_ = self._incidents.get(subject)
        key = IncidentKey(subject, row.offset) if open_ is None else open_.key
        if outage is None:
            if open_ is None and step.kind is not EventKind.UNCLEAN_ELECTION:
                return
            if open_ is None and step.before is not None and step.after is not None:
                leaders = (step.before.leader, step.after.leader)
                election = Outage(move.tp, row.time_ms, row.time_ms, *leaders, unclean=True)
                self.ended.append(EndedIncident(key, election, exact=True, instant=True))
            elif open_ is not None and step.after is not None:
                self._incidents[subject] = open_._replace(leader_epoch=step.after.leader_epoch)
        elif outage.until_ms is None:
            epoch = 0 if step.after is None else step.after.leader_epoch
            self._incidents[subject] = OpenIncident(key, outage, exact=True, leader_epoch=epoch)
        else:
            self.ended.append(EndedIncident(key, outage, exact=open_ is None or open_.exact))
            self._incidents.pop(subject, None)
        replicas = (step.after or step.before or _NOWHERE).replicas
        min_isr = self._min_isr.effective(move.tp.topic, replicas)
        self.moments.append(IncidentMoment(key, row, move, cause, min_isr))

    # After a gap

    def _compare(self, offset: int) -> None:
        """Once the log begun again has caught up: what became of the open incidents, and what is offline now."""
        self._uncertain = False
        now = self._states.now
        for subject, open_ in list(self._incidents.items()):
            present = now.get(subject)
            if present is None or present.shape.has_leader or present.leader_epoch != open_.leader_epoch:
                del self._incidents[subject]
                self._tracker.open.pop(open_.outage.tp, None)
                self.ended.append(EndedIncident(open_.key, open_.outage, open_.exact))
        for subject, present in now.items():
            if not present.shape.has_leader and subject not in self._incidents:
                self._begin_inexact(subject, present.registration, offset)

    def _begin_inexact(self, subject: PartitionSubject, present: Registration, offset: int) -> None:
        """An incident that began before the time of the snapshot."""
        key, tp = IncidentKey(subject, offset), self._named(subject)
        outage = self._tracker.open[tp] = Outage(tp, self._newest_ms)
        self._incidents[subject] = OpenIncident(key, outage, False, present.leader_epoch)
        row = HistoryRow(offset, self._newest_ms, IN_SNAPSHOT, subject, present)
        move = PartitionMove(tp, EventKind.OFFLINE, None, present)
        min_isr = self._min_isr.effective(tp.topic, present.replicas)
        self.moments.append(IncidentMoment(key, row, move, None, min_isr))

    def _named(self, subject: PartitionSubject) -> TopicPartition:
        return TopicPartition(
            self._reader.topics.get(subject.topic_id) or subject.topic_id, subject.partition
        )


BEGINNINGS = frozenset((EventKind.OFFLINE, EventKind.UNCLEAN_ELECTION))
"""The kinds of changes that begin an incident. The other changes of a partition are only reported in one."""

_NOWHERE = Registration((), (), -1)
_OF_CLUSTER = frozenset(
    (
        EventKind.BROKER_REGISTERED,
        EventKind.BROKER_UNREGISTERED,
        EventKind.BROKER_FENCED,
        EventKind.BROKER_UNFENCED,
        EventKind.CONTROLLED_SHUTDOWN,
        EventKind.LOG_DIRS_CHANGED,
        EventKind.CONFIG_CHANGED,
    )
)
