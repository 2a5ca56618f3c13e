"""The simulator's metadata log in bytes, as it lies on a controller's disk and as Fetch answers it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import NamedTuple

from backends.metadata_log.batch_writer import data_batch, format_snapshot, kraft_batch, leader_change_batch
from backends.metadata_log.directory import DIRECTORY
from backends.simulator.committed_records import CommittedRecords, OffsetCounter
from recovery.metadata_log.record_codec import encode

SEGMENT = "00000000000000000000.log"
FORMAT_SNAPSHOT = "00000000000000000000-0000000000.checkpoint"
DYNAMIC = 1
"""The kraft.version from which on the voters are records."""


class EpochEnd(NamedTuple):
    """The end of an epoch in the log, as a Fetch compares it with what its sender has."""

    epoch: int
    end_offset: int


class EncodedMetadataLog:
    """Grows by :meth:`catch_up`. ``began_ms`` is virtual time 0 in ms since 1970."""

    def __init__(self, records: CommittedRecords, began_ms: int = 0) -> None:
        self._records = records
        self._began_ms = began_ms
        self._encoded = 0
        self._offsets = OffsetCounter()
        self._starts: list[int] = []
        self._batches: list[bytes] = []
        self._epochs: list[tuple[int, int]] = []

    @property
    def end_offset(self) -> int:
        """One beyond the last record. Everything before it is committed."""
        return self._offsets.next_offset

    def catch_up(self) -> None:
        """Encodes what was committed since the last time."""
        for batch in self._records.batches(self._encoded):
            time_ms = self._began_ms + batch.time_ms
            first = self._offsets.next_offset
            base = self._offsets.place(batch)
            changed = batch.changed_voters
            if base - first not in (0, 2):
                self._epochs.append((batch.epoch, first))
                self._add(first, leader_change_batch(first, batch.epoch, time_ms, batch.leader, batch.voters))
            if changed is not None:
                self._add(base - 2, kraft_batch(base - 2, batch.epoch, time_ms, DYNAMIC, changed))
            self._add(base, data_batch(base, batch.epoch, time_ms, list(map(encode, batch.records))))
        self._encoded = len(self._records)

    def _add(self, base: int, data: bytes) -> None:
        self._starts.append(base)
        self._batches.append(data)

    def read(self, offset: int, most_bytes: int) -> bytes:
        """Whole batches from the one that holds ``offset``; at least one if there is any (KIP-74)."""
        if not 0 <= offset < self.end_offset:
            return b""
        found: list[bytes] = []
        size = 0
        for data in self._batches[bisect_right(self._starts, offset) - 1 :]:
            if found and size + len(data) > most_bytes:
                break
            found.append(data)
            size += len(data)
        return b"".join(found)

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """The largest epoch up to ``epoch`` with its end. An epoch beyond the newest ends where the log does."""
        known = [row for row in self._epochs if row[0] <= epoch]
        if len(known) == len(self._epochs):
            return EpochEnd(epoch, self.end_offset)
        return EpochEnd(known[-1][0] if known else 0, self._epochs[len(known)][1])

    def holds(self, offset: int, epoch: int) -> bool:
        """Whether a log whose record before ``offset`` has that epoch is the beginning of this one."""
        end = self.end_of_epoch(epoch)
        return offset == 0 or (end.epoch == epoch and end.end_offset >= offset)

    def write(self, directory: Path, end: int | None = None) -> Path:
        """Writes ``__cluster_metadata-0`` with one segment into ``directory``, and the snapshot of the format where
        the first voters are dynamic; returns the new folder.

        ``end``: only the batches that begin before this offset.

        Raises OSError, also where the folder is there already.
        """
        folder = directory / DIRECTORY
        directory.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        first = self._records.first_voters
        if all(key.directory_id for key in first.keys):
            (folder / FORMAT_SNAPSHOT).write_bytes(format_snapshot(DYNAMIC, first, self._began_ms))
        with (folder / SEGMENT).open("xb") as file:
            file.writelines(self._batches[: None if end is None else bisect_left(self._starts, end)])
        return folder
