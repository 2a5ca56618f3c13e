"""What happened in a cluster: the events of its metadata log that somebody wants to see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from backends.metadata_log.directory import DIRECTORY, DirectoryReading, MetadataDirError, read_directory
from backends.metadata_log.topic_scan import TopicScan
from console.change.own_changes import OwnChanges
from console.errors import InputError
from recovery.metadata_log.history import MetadataHistory, fold
from recovery.metadata_log.log_changes import MetadataLogRecord
from recovery.metadata_log.partition_states import EventKind
from recovery.metadata_log.timeline import ClusterEvent, MetadataTimeline


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events to show; an empty field means any. Times in ms since the epoch, ``until_ms`` included. A
    ``partition`` needs exactly one topic.
    """

    topics: frozenset[str] = frozenset()
    partition: int | None = None
    brokers: frozenset[int] = frozenset()
    kinds: frozenset[EventKind] = frozenset()
    since_ms: int | None = None
    until_ms: int | None = None

    def wants(self, event: ClusterEvent) -> bool:
        return (
            (not self.kinds or event.kind in self.kinds)
            and (self.since_ms is None or event.time_ms >= self.since_ms)
            and (self.until_ms is None or event.time_ms <= self.until_ms)
            and (not self.topics or bool(event.topics & self.topics))
            and (self.partition is None or any(m.tp.partition == self.partition for m in event.moves))
            and (not self.brokers or bool(event.brokers & self.brokers))
        )


@dataclass(frozen=True, slots=True)
class TimelineSource:
    """Where a history came from, in a few words, and what it does not hold. ``notes`` are one line each. ``own``
    are the changes that runs of this host requested.
    """

    title: str
    timeline: MetadataTimeline
    notes: tuple[str, ...]
    own: OwnChanges = field(default_factory=OwnChanges)


RECORDS_BETWEEN_REPORTS = 50_000


def from_directory(
    path: Path, wanted: EventFilter, progress: Callable[[int], None] = lambda _read: None
) -> TimelineSource:
    """The history in a metadata dir, or in a log dir that has one. Raises InputError.

    If topics are given, batches without a record about them are skipped. ``progress`` gets the number of records
    read so far.
    """
    inside = path / DIRECTORY
    reading = DirectoryReading(inside if inside.is_dir() else path)
    try:
        scan = TopicScan(wanted.topics, wanted.partition) if wanted.topics else None
        history = fold(_reported(read_directory(reading, scan), progress))
    except MetadataDirError as error:
        raise InputError(str(error)) from None
    notes = ["the newest changes on a node's disk may not be committed"]
    if reading.problem is not None:
        notes.append(f"the reading ended at offset {reading.end_offset:,}: {reading.problem}")
    return TimelineSource(
        str(reading.path), MetadataTimeline(history), (*notes, *gaps(history, reading.start_offset))
    )


def _reported(
    records: Iterator[MetadataLogRecord], progress: Callable[[int], None]
) -> Iterator[MetadataLogRecord]:
    for count, record in enumerate(records, 1):
        if count % RECORDS_BETWEEN_REPORTS == 0:
            progress(count)
        yield record


def unknown_topics(history: MetadataHistory, wanted: EventFilter) -> tuple[str, ...]:
    """One line for each given topic that the log has never had. Without this line, "no events" would look like "no
    problems".
    """
    missing = sorted(name for name in wanted.topics if not history.topic_ids(name))
    return tuple(f"this metadata log knows no topic {name}" for name in missing)


VIRTUAL = "times are virtual: seconds since the simulation began"


def gaps(history: MetadataHistory, snapshot_offset: int) -> tuple[str, ...]:
    """What the history does not hold, one line each."""
    counts = history.counts
    notes = []
    if snapshot_offset:
        notes.append(
            f"what happened before offset {snapshot_offset:,} is not known: the log begins with a snapshot"
        )
    if counts.unknown:
        kinds = ", ".join(f"type {kind} version {version}" for kind, version in sorted(counts.unknown))
        notes.append(
            f"{sum(counts.unknown.values()):,} records of a later Kafka release are not shown ({kinds})"
        )
    if counts.malformed:
        notes.append(f"{counts.malformed:,} damaged records are not shown")
    if counts.uncommitted:
        notes.append(f"{counts.uncommitted:,} changes of a transaction that has not ended are not shown")
    return tuple(notes)
