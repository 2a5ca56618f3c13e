"""The metadata log as a history: the states of each partition, broker and configuration, with start and end times.

It is stored as columns (offset, time, subject, change) and an index by subject. A partition's states are computed
when they are requested, so a million records do not take the memory of a million states.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, TypeAlias

from recovery.controller.registration import PartitionChange, Registration, merge
from recovery.metadata_log.field_reader import FieldReader, MalformedRecordError
from recovery.metadata_log.record_codec import FRAME_VERSION, decode, read_registration
from recovery.metadata_log.records import (
    HIGHEST_VERSIONS,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RecordType,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    Skipped,
    TopicRecord,
    TransactionRecord,
    UnregisterBrokerRecord,
)

IN_SNAPSHOT = -1
"""The batch number of a record from a snapshot, which contains a state, not the time of its change."""


class MetadataLogRecord(NamedTuple):
    """One data record. ``batch`` is the first offset of its batch: one event of the controller is one batch."""

    offset: int
    time_ms: int
    batch: int
    value: bytes


class DecodedRecord(NamedTuple):
    """Like :class:`MetadataLogRecord`, with the value decoded."""

    offset: int
    time_ms: int
    batch: int
    record: MetadataRecord


class PartitionSubject(NamedTuple):
    """A partition by topic id: a topic that is created again under the same name is a different one."""

    topic_id: str
    partition: int


class BrokerSubject(NamedTuple):
    broker: int


class ControllerSubject(NamedTuple):
    controller: int


class TopicSubject(NamedTuple):
    topic_id: str


class ConfigSubject(NamedTuple):
    resource_type: int
    resource: str
    key: str


class FeatureSubject(NamedTuple):
    feature: str


Subject: TypeAlias = (
    PartitionSubject | BrokerSubject | ControllerSubject | TopicSubject | ConfigSubject | FeatureSubject
)
Change: TypeAlias = MetadataRecord | Registration | PartitionChange


class HistoryRow(NamedTuple):
    """One change of one subject, in the order of the log."""

    offset: int
    time_ms: int
    batch: int
    subject: Subject
    change: Change


class PartitionInterval(NamedTuple):
    """The state of a partition in the controller's metadata from ``since_ms`` (``offset``) until
    ``until_ms``; None: it is the present state.
    """

    since_ms: int
    until_ms: int | None
    offset: int
    registration: Registration


@dataclass(frozen=True, slots=True)
class HistoryCounts:
    """How many data records were read, and how many of them could not be used completely.

    ``unknown`` counts records that are newer than this code, by (type, version). ``malformed``: damaged values.
    ``uncommitted``: records of a controller transaction that has not ended. ``aborted``: records of aborted ones.
    """

    records: int
    unknown: Mapping[tuple[int, int], int]
    malformed: int
    aborted: int
    uncommitted: int


class MetadataHistory:
    """The history of one metadata log. It only grows, by :meth:`extend`."""

    def __init__(self) -> None:
        self._offsets = array("q")
        self._times = array("q")
        self._batches = array("q")
        self._subjects: list[Subject] = []
        self._changes: list[Change] = []
        self._by_subject: dict[Subject, array[int]] = {}
        self._topics: dict[str, str] = {}
        self._partitions: dict[str, dict[PartitionSubject, None]] = {}
        self._partition_decoder = _PartitionDecoder()
        # The offsets of changes that affect partitions but belong to brokers and configurations.
        self._general_offsets = array("q")
        # For partitions whose likeness was requested: its number, and how many of the changes it includes.
        self._likeness: dict[PartitionSubject, tuple[int, int]] = {}
        self._steps: dict[tuple[int, int, int, bool, int], int] = {}
        self._transaction: list[tuple[MetadataLogRecord | DecodedRecord, MetadataRecord]] | None = None
        self._unknown: dict[tuple[int, int], int] = {}
        self._read = self._malformed = self._aborted = 0

    def __len__(self) -> int:
        return len(self._offsets)

    # What was folded

    @property
    def since_ms(self) -> int | None:
        """The time of the oldest change; None for an empty log."""
        return self._times[0] if self._times else None

    @property
    def end_ms(self) -> int | None:
        """The time of the newest change; None for an empty log."""
        return self._times[-1] if self._times else None

    @property
    def end_offset(self) -> int:
        """One beyond the newest change; 0 for an empty log."""
        return self._offsets[-1] + 1 if self._offsets else 0

    @property
    def counts(self) -> HistoryCounts:
        pending = len(self._transaction or ())
        return HistoryCounts(self._read, dict(self._unknown), self._malformed, self._aborted, pending)

    def topic_name(self, topic_id: str) -> str | None:
        return self._topics.get(topic_id)

    def topic_ids(self, name: str) -> tuple[str, ...]:
        """Every topic that ever had the name, the oldest first."""
        return tuple(topic_id for topic_id, known in self._topics.items() if known == name)

    def partitions(self) -> Iterator[PartitionSubject]:
        """Every partition that ever existed."""
        for subjects in self._partitions.values():
            yield from subjects

    def rows(self, start: int = 0) -> Iterator[HistoryRow]:
        """Every change after the first ``start``, in the order of the log."""
        columns = (self._offsets, self._times, self._batches, self._subjects, self._changes)
        for offset, time_ms, batch, subject, change in zip(
            *(islice(c, start, None) for c in columns), strict=True
        ):
            yield HistoryRow(offset, time_ms, batch, subject, change)

    def of(self, subject: Subject) -> Iterator[HistoryRow]:
        """The changes of one subject, the oldest first."""
        for at in self._by_subject.get(subject, ()):
            yield HistoryRow(
                self._offsets[at], self._times[at], self._batches[at], subject, self._changes[at]
            )

    def likeness(self, subject: PartitionSubject) -> int:
        """A number that two partitions share if they changed in the same way at the same times, with the same
        changes of brokers and configurations in between. Most partitions of a large topic did.
        """
        number, covered = self._likeness.get(subject, (0, 0))
        rows = self._by_subject.get(subject, ())
        if covered < len(rows):
            for at in islice(rows, covered, None):
                step = (
                    number,
                    id(self._changes[at]),
                    self._times[at],
                    self._batches[at] == IN_SNAPSHOT,
                    bisect_left(self._general_offsets, self._offsets[at]),
                )
                number = self._steps.setdefault(step, len(self._steps) + 1)
            self._likeness[subject] = number, len(rows)
        return number

    def intervals(self, subject: PartitionSubject) -> tuple[PartitionInterval, ...]:
        """The partition's states, the oldest first. Empty if its first record is not in the log.

        The last interval has no end, unless the topic was deleted.
        """
        found: list[PartitionInterval] = []
        now: Registration | None = None
        for row in self.of(subject):
            after = applied(now, row.change)
            if now is not None and found and found[-1].until_ms is None:
                if after == now:
                    continue
                found[-1] = found[-1]._replace(until_ms=row.time_ms)
            if after is not None:
                found.append(PartitionInterval(row.time_ms, None, row.offset, after))
            now = after
        return tuple(found)

    # Folding

    def extend(self, records: Iterable[MetadataLogRecord]) -> None:
        """Folds further data records, in the order of the log.

        A damaged record is counted and raises nothing: one bad record must not hide a million good ones.
        """
        for record in records:
            self._read += 1
            value = record.value
            if value == _NO_OP:
                continue
            try:
                if self._transaction is None and value[:_SUBJECT_AT] in _OF_PARTITION:
                    self._add(record, *self._partition_decoder.decode(value))
                    continue
                decoded = decode(value)
            except MalformedRecordError:
                self._malformed += 1
                continue
            self._take(record, decoded)

    def extend_decoded(self, records: Iterable[DecodedRecord]) -> None:
        """Like :meth:`extend`, for records that are already decoded."""
        for record in records:
            self._read += 1
            self._take(record, record.record)

    def _take(self, record: MetadataLogRecord | DecodedRecord, decoded: MetadataRecord) -> None:
        match decoded:
            case Skipped():
                if not decoded.known:
                    self._unknown[decoded] = self._unknown.get(decoded, 0) + 1
            case TransactionRecord(RecordType.BEGIN_TRANSACTION):
                self._transaction = []
            case TransactionRecord(RecordType.END_TRANSACTION):
                pending, self._transaction = self._transaction, None
                for earlier, change in pending or ():
                    self._apply(earlier, change)
            case TransactionRecord():
                self._aborted += len(self._transaction or ())
                self._transaction = None
            case _ if self._transaction is not None:
                self._transaction.append((record, decoded))
            case _:
                self._apply(record, decoded)

    def _add(self, record: MetadataLogRecord | DecodedRecord, subject: Subject, change: Change) -> None:
        at = len(self._offsets)
        self._offsets.append(record.offset)
        self._times.append(record.time_ms)
        self._batches.append(record.batch)
        self._subjects.append(subject)
        self._changes.append(change)
        rows = self._by_subject.get(subject)
        if rows is None:
            rows = self._by_subject[subject] = array("q")
            if isinstance(subject, PartitionSubject):
                self._partitions.setdefault(subject.topic_id, {})[subject] = None
        if isinstance(subject, (BrokerSubject, ConfigSubject)):
            self._general_offsets.append(record.offset)
        rows.append(at)

    def _apply(self, record: MetadataLogRecord | DecodedRecord, decoded: MetadataRecord) -> None:
        match decoded:
            case PartitionChangeRecord(topic_id, partition, change):
                self._add(record, PartitionSubject(topic_id, partition), change)
            case PartitionRecord(topic_id, partition, registration):
                self._add(record, PartitionSubject(topic_id, partition), registration)
            case TopicRecord(name, topic_id):
                self._topics[topic_id] = name
                self._add(record, TopicSubject(topic_id), decoded)
            case RemoveTopicRecord(topic_id):
                self._add(record, TopicSubject(topic_id), decoded)
                for subject in self._partitions.get(topic_id, {}):
                    self._add(record, subject, decoded)
            case ClearElrRecord(topic):
                for topic_id in self.topic_ids(topic) if topic else tuple(self._topics):
                    for subject in self._partitions.get(topic_id, {}):
                        self._add(record, subject, decoded)
            case RegisterBrokerRecord() | UnregisterBrokerRecord() | BrokerRegistrationChangeRecord():
                self._add(record, BrokerSubject(decoded.broker), decoded)
            case RegisterControllerRecord(controller):
                self._add(record, ControllerSubject(controller), decoded)
            case ConfigRecord(resource_type, resource, key):
                self._add(record, ConfigSubject(resource_type, resource, key), decoded)
            case FeatureLevelRecord(feature):
                self._add(record, FeatureSubject(feature), decoded)


def applied(now: Registration | None, change: Change) -> Registration | None:
    """A partition after one change; None if it does not exist, or if its first record is not in the log."""
    match change:
        case Registration():
            return change
        case PartitionChange():
            return None if now is None else merge(now, change)
        case ClearElrRecord():
            if now is None or not (now.elr or now.last_known_elr):
                return now
            return merge(now, PartitionChange(elr=(), last_known_elr=()))
        case _:
            return None


_NO_OP = bytes((FRAME_VERSION, RecordType.NO_OP, 0, 0))
_OF_PARTITION = {
    bytes((FRAME_VERSION, kind, version)): (kind, version)
    for kind in (RecordType.PARTITION, RecordType.PARTITION_CHANGE)
    for version in range(HIGHEST_VERSIONS[kind] + 1)
}
_SUBJECT_AT, _CHANGE_AT = 3, 23


class _PartitionDecoder:
    """Decodes equal bytes only once: most records of a busy log change many partitions in the same way."""

    def __init__(self) -> None:
        self._changes: dict[bytes, Registration | PartitionChange] = {}
        self._subjects: dict[bytes, PartitionSubject] = {}

    def decode(self, value: bytes) -> tuple[PartitionSubject, Registration | PartitionChange]:
        """The value of a PartitionRecord or a PartitionChangeRecord. Raises MalformedRecordError."""
        tail = value[1:_SUBJECT_AT] + value[_CHANGE_AT:]
        change = self._changes.get(tail)
        if change is None:
            reader = FieldReader(value, _CHANGE_AT)
            kind, version = _OF_PARTITION[value[:_SUBJECT_AT]]
            change = read_registration(reader, kind, version)
            reader.end()
            self._changes[tail] = change
        where = value[_SUBJECT_AT:_CHANGE_AT]
        subject = self._subjects.get(where)
        if subject is None:
            reader = FieldReader(where)
            partition = reader.int32()
            subject = self._subjects[where] = PartitionSubject(reader.uuid(), partition)
        return subject, change


def fold(records: Iterable[MetadataLogRecord]) -> MetadataHistory:
    """The history of data records in the order of the log. The records of a snapshot may come first."""
    history = MetadataHistory()
    history.extend(records)
    return history
