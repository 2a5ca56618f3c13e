"""Changes of the metadata log: what changed, when, and in which batch."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from recovery.controller.registration import PartitionChange, Registration, merge
from recovery.metadata_log.records import ClearElrRecord, MetadataRecord

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
