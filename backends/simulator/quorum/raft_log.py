"""One replica's metadata log with its newest snapshot: the controllers' payloads, and control records (KIP-595)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from recovery.membership.raft_votes import RaftLogEnd
from recovery.membership.voters import VoterSet


class LeaderChangeMessage(NamedTuple):
    """The first record of an epoch. When it is committed, everything before it is."""

    leader: int
    voters: tuple[int, ...]


class KRaftVersionRecord(NamedTuple):
    """The kraft.version from here on."""

    level: int


class VotersRecord(NamedTuple):
    """The voter set in force from here on, committed or not."""

    voters: VoterSet


class NoOpRecord(NamedTuple):
    """An idle leader writes one every ``metadata.max.idle.interval.ms``."""


class MetadataRecord(NamedTuple):
    """The payload of a controller; the quorum does not read it."""

    payload: Any


RecordBody = LeaderChangeMessage | KRaftVersionRecord | VotersRecord | NoOpRecord | MetadataRecord


class LogRecord(NamedTuple):
    """One record with the epoch of the leader that wrote it."""

    epoch: int
    body: RecordBody


class Snapshot(NamedTuple):
    """Everything below offset ``end``; the last record below it is of ``epoch``.

    ``payload_at`` is the offset of the newest payload in it; -1, and ``payload`` None, if there is none.
    ``voters`` is None without a VotersRecord below ``end``.
    """

    end: int
    epoch: int
    payload: Any
    payload_at: int
    voters: VoterSet | None
    kraft_version: int


EMPTY = Snapshot(0, 0, None, -1, None, 0)
"""The snapshot of a log that starts at offset 0."""


MAX_PAYLOADS = 64
"""The largest number of payloads in a log, because each is a whole state; the snapshot covers older ones."""


class VotersAt(NamedTuple):
    """A VotersRecord and its offset."""

    offset: int
    voters: VoterSet


class RaftLog:
    """Records from ``start`` to ``end``; ``snapshot`` covers everything below ``start``.

    ``voters`` is the set in force, empty if none is known. ``bootstrap`` are the voters of the node's format or
    configuration, None if it was formatted without; they count until a VotersRecord is read.
    """

    def __init__(self, bootstrap: VoterSet | None, bootstrap_version: int) -> None:
        self.snapshot = EMPTY
        self.entries: list[LogRecord] = []
        self.bootstrap = bootstrap
        self.bootstrap_version = bootstrap_version
        self._epochs: list[tuple[int, int]] = []
        self._voters: list[VotersAt] = []
        self._versions: list[tuple[int, int]] = []
        self._payloads: list[int] = []
        self.voters = self._in_force()

    @property
    def start(self) -> int:
        return self.snapshot.end

    @property
    def end(self) -> int:
        return self.snapshot.end + len(self.entries)

    @property
    def last_epoch(self) -> int:
        """The last record's epoch, 0 in an empty log."""
        return self.entries[-1].epoch if self.entries else self.snapshot.epoch

    @property
    def log_end(self) -> RaftLogEnd:
        return RaftLogEnd(self.last_epoch, self.end)

    def _in_force(self) -> VoterSet:
        if self._voters:
            return self._voters[-1].voters
        return self.snapshot.voters or self.bootstrap or VoterSet(())

    @property
    def voters_offset(self) -> int | None:
        """The offset of the newest VotersRecord, the snapshot included; None if there is none."""
        if self._voters:
            return self._voters[-1].offset
        return None if self.snapshot.voters is None else self.snapshot.end - 1

    def voters_before(self, offset: int) -> tuple[int | None, VoterSet]:
        """The set in force before the record at ``offset``, with its offset; None for a set that was not
        written.
        """
        for record in reversed(self._voters):
            if record.offset < offset:
                return record
        if self.snapshot.voters is not None:
            return self.snapshot.end - 1, self.snapshot.voters
        return None, self.bootstrap or VoterSet(())

    @property
    def kraft_version(self) -> int:
        if self._versions:
            return self._versions[-1][1]
        return max(self.snapshot.kraft_version, self.bootstrap_version)

    def at(self, offset: int) -> LogRecord:
        """The record at ``offset``. Raises IndexError if the log does not hold it."""
        if not self.start <= offset < self.end:
            raise IndexError(f"{offset} is not between {self.start} and {self.end}")
        return self.entries[offset - self.start]

    def read(self, offset: int, limit: int) -> tuple[LogRecord, ...]:
        """At most ``limit`` records from ``offset`` on. Raises IndexError for an offset in the snapshot."""
        at = offset - self.start
        if at < 0:
            raise IndexError(f"{offset} lies below {self.start}")
        return tuple(self.entries[at : at + limit])

    def epoch_of(self, offset: int) -> int | None:
        """The epoch of the record at ``offset``; None if unknown."""
        if self.start <= offset < self.end:
            return self.entries[offset - self.start].epoch
        return self.snapshot.epoch if offset == self.start - 1 else None

    def end_of_epoch(self, epoch: int) -> RaftLogEnd:
        """The largest epoch up to ``epoch`` with its end, as in OffsetForLeaderEpoch."""
        if epoch == self.last_epoch:
            return RaftLogEnd(epoch, self.end)
        found = RaftLogEnd(self.snapshot.epoch, self.snapshot.end)
        for index, (known, _) in enumerate(self._epochs):
            if known > epoch:
                break
            after = self._epochs[index + 1][1] if index + 1 < len(self._epochs) else self.end
            found = RaftLogEnd(known, after)
        return found

    def append(self, entries: Iterable[LogRecord]) -> None:
        for entry in entries:
            offset = self.end
            if not self._epochs or self._epochs[-1][0] != entry.epoch:
                self._epochs.append((entry.epoch, offset))
            if isinstance(entry.body, MetadataRecord):
                self._payloads.append(offset)
            elif isinstance(entry.body, VotersRecord):
                self._voters.append(VotersAt(offset, entry.body.voters))
                self.voters = entry.body.voters
            elif isinstance(entry.body, KRaftVersionRecord):
                self._versions.append((offset, entry.body.level))
            self.entries.append(entry)

    def truncate(self, offset: int) -> None:
        """Drop everything from ``offset`` on; dropped VotersRecords are undone."""
        del self.entries[max(offset - self.start, 0) :]
        self._epochs = [row for row in self._epochs if row[1] < offset]
        self._voters = [voters for voters in self._voters if voters.offset < offset]
        self._versions = [row for row in self._versions if row[0] < offset]
        self._payloads = [at for at in self._payloads if at < offset]
        self.voters = self._in_force()

    def payload_offsets(self, after: int, before: int) -> Sequence[int]:
        """The offsets of payloads after ``after`` and below ``before`` that the log still holds."""
        if not self._payloads or self._payloads[-1] <= after:
            return ()
        return [offset for offset in self._payloads if after < offset < before]

    def newest_payload(self, before: int) -> tuple[int, object]:
        """The newest payload below ``before`` with its offset; (-1, None) if there is none."""
        for offset in reversed(self._payloads):
            if offset < before:
                body = self.at(offset).body
                assert isinstance(body, MetadataRecord)
                return offset, body.payload
        return self.snapshot.payload_at, self.snapshot.payload

    def snapshot_at(self, end: int) -> Snapshot:
        """A snapshot of everything below ``end``, which must be in the log, above its start."""
        at, payload = self.newest_payload(end)
        voters, version = self.snapshot.voters, self.snapshot.kraft_version
        for record in self._voters:
            if record.offset < end:
                voters = record.voters
        for offset, level in self._versions:
            if offset < end:
                version = level
        epoch = self.epoch_of(end - 1)
        assert epoch is not None
        return Snapshot(end, epoch, payload, at, voters, version)

    def compact(self, committed: int, retained: int) -> None:
        """Take a snapshot if many records below ``committed`` are in the log; ``retained`` of them stay."""
        committed_here = min(committed, self.end) - self.start
        if committed_here < 2 * retained and len(self._payloads) < 2 * MAX_PAYLOADS:
            return
        end = min(committed, self.end) - min(committed_here, retained)
        below = [offset for offset in self._payloads if offset < committed]
        if len(below) > MAX_PAYLOADS:
            end = max(end, below[-MAX_PAYLOADS])
        if end > self.start:
            self._drop_below(self.snapshot_at(end))

    def install(self, snapshot: Snapshot) -> None:
        """Start over from a fetched snapshot."""
        self.entries.clear()
        self._epochs.clear()
        self._voters.clear()
        self._versions.clear()
        self._payloads.clear()
        self.snapshot = snapshot
        self.voters = self._in_force()

    def _drop_below(self, snapshot: Snapshot) -> None:
        entries = self.entries[snapshot.end - self.start :]
        self.install(snapshot)
        self.append(entries)
