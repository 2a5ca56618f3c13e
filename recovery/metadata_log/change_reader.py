"""Reads the changes from metadata records: decoded, out of controller transactions, one for each subject."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from struct import Struct, error
from typing import Any

from recovery.controller.registration import PartitionChange, Registration
from recovery.metadata_log.field_reader import FieldReader, MalformedRecordError, uuid_text
from recovery.metadata_log.log_changes import (
    BrokerSubject,
    Change,
    ConfigSubject,
    ControllerSubject,
    DecodedRecord,
    FeatureSubject,
    MetadataLogRecord,
    PartitionSubject,
    Subject,
    TopicSubject,
)
from recovery.metadata_log.record_codec import FRAME_VERSION, NO_OP, decode, read_registration
from recovery.metadata_log.record_schemas import UNCHANGED_LEADER
from recovery.metadata_log.records import (
    HIGHEST_VERSIONS,
    TOUCH_NO_PARTITION,
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
    UnregisterControllerRecord,
)

# Decodes the most frequent record of a busy metadata log, a PartitionChangeRecord with few fields, in one
# step.

_BROKERS = {0: "isr", 2: "replicas", 3: "removing", 4: "adding", 6: "elr", 7: "last_known_elr"}
_LEADER = 1
_ELR_SINCE = 2
_ONE_BYTE = 128
"""A varint below it is one byte."""
_INT = Struct(">i")


def decode_small_change(data: bytes, at: int, version: int) -> PartitionChange | None:
    """The change in ``data`` from ``at`` on, where the tagged fields begin. None if :mod:`record_codec` has to read
    it: another field, a null, a long list, anything unexpected.
    """
    leader: int | None = None
    found: dict[str, Any] = {}
    last = -1
    try:
        count, at = data[at], at + 1
        for _ in range(count):
            tag, size = data[at], data[at + 1]
            at += 2
            if tag <= last or size >= _ONE_BYTE:
                return None
            if tag == _LEADER and size == _INT.size:
                (leader,) = _INT.unpack_from(data, at)
            else:
                brokers = data[at] - 1
                if brokers < 0 or size != 1 + brokers * _INT.size or (tag > 4 and version < _ELR_SINCE):
                    return None
                found[_BROKERS[tag]] = _ints(brokers).unpack_from(data, at + 1)
            at, last = at + size, tag
    except (IndexError, KeyError, error):
        return None
    if at != len(data) or leader == UNCHANGED_LEADER:
        return None
    return PartitionChange(leader=leader, **found)


@cache
def _ints(count: int) -> Struct:
    return Struct(f">{count}i")


TakeChange = Callable[[MetadataLogRecord | DecodedRecord, Subject, Change], None]
"""Takes one change of one subject; offset, time and batch are those of the record."""


@dataclass(frozen=True, slots=True)
class HistoryCounts:
    """How many data records were read, and how many of them could not be used completely.

    ``unknown`` counts records that are newer than this code, by (type, version). ``malformed``: damaged values.
    ``uncommitted``: records of a controller transaction that has not ended. ``aborted``: records of aborted ones.
    ``unread`` says which record, by its offset, may have said something of partitions, topics, brokers,
    configurations or features that is not known here; "" where there is none.
    """

    records: int
    unknown: Mapping[tuple[int, int], int]
    malformed: int
    aborted: int
    uncommitted: int
    unread: str


class ChangeReader:
    """Reads records in the order of the log, and hands every change to ``take``.

    A record about many partitions (a deleted topic, an emptied ELR) is one change of each of them. The records of
    a controller transaction are handed on when it ends.
    """

    def __init__(self, take: TakeChange) -> None:
        self._take_change = take
        self.topics: dict[str, str] = {}
        self._partitions: dict[str, dict[PartitionSubject, None]] = {}
        self._decoded: dict[bytes, Registration | PartitionChange] = {}
        self._subjects: dict[bytes, PartitionSubject] = {}
        self._transaction: list[tuple[MetadataLogRecord | DecodedRecord, MetadataRecord]] | None = None
        self._unknown: dict[tuple[int, int], int] = {}
        self._unread = ""
        self._read = self._malformed = self._aborted = 0

    def resume(
        self,
        topics: Mapping[str, str],
        partitions: Iterable[PartitionSubject],
        transaction: Iterable[MetadataLogRecord] | None,
    ) -> None:
        """Continues where another reader stopped; ``transaction`` is what it had :attr:`pending`."""
        self.topics.update(topics)
        for subject in partitions:
            self._partition(*subject)
        if transaction is not None:
            self._transaction = []
            self.extend(transaction)

    @property
    def pending(self) -> list[MetadataLogRecord] | None:
        """The records of a transaction that has not ended; None: there is none."""
        if self._transaction is None:
            return None
        return [record for record, _ in self._transaction if isinstance(record, MetadataLogRecord)]

    @property
    def counts(self) -> HistoryCounts:
        pending = len(self._transaction or ())
        return HistoryCounts(
            self._read, dict(self._unknown), self._malformed, self._aborted, pending, self._unread
        )

    def topic_ids(self, name: str) -> tuple[str, ...]:
        """Every topic that ever had the name, the oldest first."""
        return tuple(topic_id for topic_id, known in self.topics.items() if known == name)

    def partitions(self) -> Iterator[PartitionSubject]:
        """Every partition that ever existed."""
        for subjects in self._partitions.values():
            yield from subjects

    def extend(self, records: Iterable[MetadataLogRecord]) -> None:
        """Folds further data records, in the order of the log.

        A damaged record is counted and raises nothing: one bad record must not hide a million good ones.
        """
        take, decoded_before, subjects = self._take_change, self._decoded, self._subjects
        for record in records:
            self._read += 1
            value = record.value
            change = decoded_before.get(value[:SUBJECT_AT] + value[CHANGE_AT:])
            subject = subjects.get(value[SUBJECT_AT:CHANGE_AT])
            if change is not None and subject is not None and self._transaction is None:
                take(record, subject, change)
                continue
            if value == NO_OP:
                continue
            try:
                if self._transaction is None and value[:SUBJECT_AT] in _OF_PARTITION:
                    take(record, *self._decode_partition(value))
                    continue
                decoded = decode(value)
            except MalformedRecordError as damage:
                self._malformed += 1
                self._unread = self._unread or f"the record at offset {record.offset} is damaged ({damage})"
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
                    if decoded.type not in TOUCH_NO_PARTITION:
                        self._unread = self._unread or _not_known(record.offset, decoded)
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

    def _apply(self, record: MetadataLogRecord | DecodedRecord, decoded: MetadataRecord) -> None:
        match decoded:
            case PartitionChangeRecord(topic_id, partition, change):
                self._take_change(record, self._partition(topic_id, partition), change)
            case PartitionRecord(topic_id, partition, registration):
                self._take_change(record, self._partition(topic_id, partition), registration)
            case TopicRecord(name, topic_id):
                self.topics[topic_id] = name
                self._take_change(record, TopicSubject(topic_id), decoded)
            case RemoveTopicRecord(topic_id):
                self._take_change(record, TopicSubject(topic_id), decoded)
                for subject in self._partitions.get(topic_id, {}):
                    self._take_change(record, subject, decoded)
            case ClearElrRecord(topic):
                for topic_id in self.topic_ids(topic) if topic else tuple(self.topics):
                    for subject in self._partitions.get(topic_id, {}):
                        self._take_change(record, subject, decoded)
            case RegisterBrokerRecord() | UnregisterBrokerRecord() | BrokerRegistrationChangeRecord():
                self._take_change(record, BrokerSubject(decoded.broker), decoded)
            case RegisterControllerRecord(controller) | UnregisterControllerRecord(controller):
                self._take_change(record, ControllerSubject(controller), decoded)
            case ConfigRecord(resource_type, resource, key):
                self._take_change(record, ConfigSubject(resource_type, resource, key), decoded)
            case FeatureLevelRecord(feature):
                self._take_change(record, FeatureSubject(feature), decoded)

    def _partition(self, topic_id: str, partition: int) -> PartitionSubject:
        subject = PartitionSubject(topic_id, partition)
        self._partitions.setdefault(topic_id, {})[subject] = None
        return subject

    def _decode_partition(self, value: bytes) -> tuple[PartitionSubject, Registration | PartitionChange]:
        """The value of a PartitionRecord or a PartitionChangeRecord. Equal bytes are decoded once: most records of
        a busy log change many partitions in the same way. Raises MalformedRecordError.
        """
        where, rest = value[SUBJECT_AT:CHANGE_AT], value[:SUBJECT_AT] + value[CHANGE_AT:]
        return self.partition_subject(where), self.partition_fields(rest)

    def partition_subject(self, where: bytes) -> PartitionSubject:
        """The partition in a record's bytes from SUBJECT_AT to CHANGE_AT. Raises MalformedRecordError."""
        subject = self._subjects.get(where)
        if subject is None:
            try:
                partition, topic_id = _WHERE.unpack(where)
            except error:
                raise MalformedRecordError(f"{len(where)} bytes of partition and topic id") from None
            subject = self._subjects[where] = self._partition(_topic_id(topic_id), partition)
        return subject

    def partition_fields(self, rest: bytes) -> Registration | PartitionChange:
        """What the record says, given without those bytes. Raises MalformedRecordError."""
        change = self._decoded.get(rest)
        if change is None:
            kind, version = _OF_PARTITION[rest[:SUBJECT_AT]]
            if kind is RecordType.PARTITION_CHANGE:
                change = decode_small_change(rest, SUBJECT_AT, version)
            if change is None:
                reader = FieldReader(rest, SUBJECT_AT)
                change = read_registration(reader, kind, version)
                reader.end()
            self._decoded[rest] = change
        return change


def _not_known(offset: int, skipped: Skipped) -> str:
    if skipped.type in HIGHEST_VERSIONS:
        what = f"version {skipped.version} of type {skipped.type}"
    else:
        what = f"type {skipped.type}"
    return f"the record at offset {offset} has {what}, which this version of ktriage does not know"


_WHERE = Struct(">i16s")
"""The partition and the topic id of a record."""
_topic_id = lru_cache(maxsize=10_000)(uuid_text)
_OF_PARTITION = {
    bytes((FRAME_VERSION, kind, version)): (kind, version)
    for kind in (RecordType.PARTITION, RecordType.PARTITION_CHANGE)
    for version in range(HIGHEST_VERSIONS[kind] + 1)
}
SUBJECT_AT, CHANGE_AT = 3, 23
"""Where partition and topic id begin in a PartitionRecord or a PartitionChangeRecord, and where they end."""
