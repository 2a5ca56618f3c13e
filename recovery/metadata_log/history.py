"""The metadata log as a history: the states of each partition, broker and configuration, with start and end times.

It is stored as columns (offset, time, subject, change) and an index by subject. A partition's states are computed
when they are requested, so a million records do not take the memory of a million states.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from recovery.controller.registration import Registration
from recovery.metadata_log.change_reader import ChangeReader, HistoryCounts
from recovery.metadata_log.log_changes import (
    IN_SNAPSHOT,
    BrokerSubject,
    Change,
    ConfigSubject,
    DecodedRecord,
    HistoryRow,
    MetadataLogRecord,
    PartitionSubject,
    Subject,
    applied,
)
from recovery.metadata_log.rebuilt_log import RebuiltLog
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)

# Which records about brokers Kafka itself refuses, by the registrations before them.


class BrokerRegistrations:
    """The epoch of each broker's registration, as far as the log shows it; None: it was unregistered."""

    def __init__(self) -> None:
        self._epochs: dict[int, int | None] = {}

    def take(self, change: Change) -> str:
        """Follow that change. Returns why Kafka refuses it (``ClusterControlManager.replay``), "" where it does
        not, or where the log does not show the registration.
        """
        if isinstance(change, RegisterBrokerRecord):
            self._epochs[change.broker] = change.broker_epoch
            return ""
        if not isinstance(change, BrokerRegistrationChangeRecord | UnregisterBrokerRecord):
            return ""
        broker, epoch = change.broker, self._epochs.get(change.broker, change.broker_epoch)
        if epoch is None:
            return f"broker {broker} is not registered"
        if epoch != change.broker_epoch:
            return (
                f"it names broker epoch {change.broker_epoch}, and broker {broker} is registered with {epoch}"
            )
        if isinstance(change, UnregisterBrokerRecord):
            self._epochs[broker] = None
        return ""


class PartitionInterval(NamedTuple):
    """The state of a partition in the controller's metadata from ``since_ms`` (``offset``) until
    ``until_ms``; None: it is the present state.
    """

    since_ms: int
    until_ms: int | None
    offset: int
    registration: Registration


class RefusedRecord(NamedTuple):
    """A record that Kafka itself refuses: every node that replays it ends."""

    offset: int
    batch: int
    why: str

    def __str__(self) -> str:
        return f"Kafka refuses the record at offset {self.offset:,} ({self.why}), and ends there"


class MetadataHistory:
    """The history of one metadata log. It only grows, by :meth:`extend`.

    ``refused`` are the records that Kafka refuses, by offset. ``ends`` is the record before which :attr:`evidence`
    was cut; None: it was not. ``rebuilt`` is where a rebuild of the quorum wrote last; None: nowhere, as far as the
    log was read with its control records. ``quorum_epoch``: of the newest batch; None: not known.
    """

    def __init__(self) -> None:
        self.rebuilt: RebuiltLog | None = None
        self.quorum_epoch: int | None = None
        self.refused: dict[int, RefusedRecord] = {}
        self.ends: RefusedRecord | None = None
        self._registrations = BrokerRegistrations()
        self._offsets = array("q")
        self._times = array("q")
        self._batches = array("q")
        self._subjects: list[Subject] = []
        self._changes: list[Change] = []
        self._by_subject: dict[Subject, array[int]] = {}
        self._reader = ChangeReader(self._add)
        # How many changes of brokers and configurations, which affect partitions, came before each change.
        self._general = array("q")
        self._general_count = 0
        # For partitions whose likeness was requested: its number, and how many of the changes it includes.
        self._likeness: dict[PartitionSubject, tuple[int, int]] = {}
        self._steps: dict[tuple[int, int, int, bool, int], int] = {}
        # By the identities of a partition's state and of a change.
        self._states_after: dict[tuple[int, int], Registration] = {}

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
        return self._reader.counts

    @property
    def evidence(self) -> MetadataHistory:
        """The part that took effect: what stands before the batch of the first record that Kafka refuses."""
        if not self.refused:
            return self
        ends = next(iter(self.refused.values()))
        cut = MetadataHistory()
        cut.ends, cut._reader = ends, self._reader  # another of its kind
        cut.rebuilt, cut.quorum_epoch = self.rebuilt, self.quorum_epoch
        for row in self.rows():
            if row.batch == ends.batch:
                break
            record = MetadataLogRecord(row.offset, row.time_ms, row.batch, b"")
            cut._add(record, row.subject, row.change)
        return cut

    def topic_name(self, topic_id: str) -> str | None:
        return self._reader.topics.get(topic_id)

    def topic_ids(self, name: str) -> tuple[str, ...]:
        """Every topic that ever had the name, the oldest first."""
        return self._reader.topic_ids(name)

    def partitions(self) -> Iterator[PartitionSubject]:
        """Every partition that ever existed."""
        return self._reader.partitions()

    def present(self) -> Iterator[tuple[PartitionSubject, Registration]]:
        """Every partition that exists now, and its state."""
        for subject in self.partitions():
            intervals = self.intervals(subject)
            if intervals and intervals[-1].until_ms is None:
                yield subject, intervals[-1].registration

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

    def registered_brokers(self) -> tuple[int, ...]:
        """The brokers that the log has registered, and not unregistered since."""
        registered: dict[int, bool] = {}
        for row in self.rows():
            if isinstance(row.change, RegisterBrokerRecord | UnregisterBrokerRecord):
                registered[row.change.broker] = isinstance(row.change, RegisterBrokerRecord)
        return tuple(sorted(broker for broker, there in registered.items() if there))

    def online_dirs(self, broker: int, until: int | None = None) -> Iterator[tuple[str, ...]]:
        """The ids of the broker's online log dirs after each record that names them, the oldest first: up to the
        offset ``until``, without it.
        """
        for row in self.of(BrokerSubject(broker)):
            if until is not None and row.offset >= until:
                return
            if not isinstance(row.change, RegisterBrokerRecord | BrokerRegistrationChangeRecord):
                continue
            if row.change.directories is not None:
                yield row.change.directories

    def same_batch(self, row: HistoryRow) -> Iterator[HistoryRow]:
        """The changes in the record batch of ``row``, itself included. Not for a row of a snapshot."""
        first = last = bisect_left(self._offsets, row.offset)
        while first > 0 and self._batches[first - 1] == row.batch:
            first -= 1
        while last < len(self._batches) and self._batches[last] == row.batch:
            last += 1
        for at in range(first, last):
            yield HistoryRow(
                self._offsets[at], self._times[at], self._batches[at], self._subjects[at], self._changes[at]
            )

    def likeness(self, subject: PartitionSubject) -> int:
        """A number that two partitions share if they changed in the same way at the same times, with the same
        changes of brokers and configurations in between. Most partitions of a large topic did.
        """
        number, covered = self._likeness.get(subject, (0, 0))
        rows = self._by_subject.get(subject, ())
        if covered < len(rows):
            steps, changes, times = self._steps, self._changes, self._times
            batches, general = self._batches, self._general
            for at in islice(rows, covered, None):
                step = (number, id(changes[at]), times[at], batches[at] == IN_SNAPSHOT, general[at])
                number = steps.setdefault(step, len(steps) + 1)
            self._likeness[subject] = number, len(rows)
        return number

    def intervals(self, subject: PartitionSubject) -> tuple[PartitionInterval, ...]:
        """The partition's states, the oldest first. Empty if its first record is not in the log.

        The last interval has no end, unless the topic was deleted.
        """
        found: list[PartitionInterval] = []
        changes, times, offsets = self._changes, self._times, self._offsets
        now: Registration | None = None
        since_ms = offset = 0
        for at in self._by_subject.get(subject, ()):
            after = self._after(now, changes[at])
            if after == now:
                continue
            if now is not None:
                found.append(PartitionInterval(since_ms, times[at], offset, now))
            now, since_ms, offset = after, times[at], offsets[at]
        if now is not None:
            found.append(PartitionInterval(since_ms, None, offset, now))
        return tuple(found)

    def written_by_rebuild(self, subject: PartitionSubject) -> int | None:
        """The offset at which a rebuild of the quorum wrote the partition last; None: none did, or a snapshot has
        replaced it. The log before it may lack changes that the lost quorum had committed. Kafka writes a whole
        partition once, when it is made, with leader epoch 0.
        """
        rows = self._by_subject.get(subject, ())
        for number in range(len(rows) - 1, -1, -1):
            at = rows[number]
            change = self._changes[at]
            if not isinstance(change, Registration):
                continue
            if self._batches[at] == IN_SNAPSHOT:
                return None
            return self._offsets[at] if number or change.leader_epoch > 0 else None
        return None

    def _after(self, now: Registration | None, change: Change) -> Registration | None:
        """As :func:`applied`, once for all partitions that are in one state and change alike: both values live as
        long as the history.
        """
        key = id(now), id(change)
        after = self._states_after.get(key)
        if after is None:
            after = applied(now, change)
            if after is not None:
                self._states_after[key] = after
        return after

    # Folding

    def extend(self, records: Iterable[MetadataLogRecord]) -> None:
        """Folds further data records, in the order of the log; see :class:`ChangeReader`."""
        self._reader.extend(records)

    def extend_decoded(self, records: Iterable[DecodedRecord]) -> None:
        """Like :meth:`extend`, for records that are already decoded."""
        self._reader.extend_decoded(records)

    def _add(self, record: MetadataLogRecord | DecodedRecord, subject: Subject, change: Change) -> None:
        rows = self._by_subject.get(subject)
        if rows is None:
            rows = self._by_subject[subject] = array("q")
        rows.append(len(self._changes))
        offset, time_ms, batch, _ = record
        self._offsets.append(offset)
        self._times.append(time_ms)
        self._batches.append(batch)
        self._general.append(self._general_count)
        self._subjects.append(subject)
        self._changes.append(change)
        if type(subject) in _GENERAL:
            self._general_count += 1
            if why := self._registrations.take(change):
                self.refused[offset] = RefusedRecord(offset, batch, why)


_GENERAL = (BrokerSubject, ConfigSubject)


def fold(records: Iterable[MetadataLogRecord]) -> MetadataHistory:
    """The history of data records in the order of the log. The records of a snapshot may come first."""
    history = MetadataHistory()
    history.extend(records)
    return history
