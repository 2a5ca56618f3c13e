"""The segments of one partition, in order, as one log: epoch spans, ends and the first defect."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from backends.disk_scan.offset_index import IndexMismatch, OffsetIndex, SkippedBytes
from backends.disk_scan.scan_values import LogDefect
from backends.log_segments.batch_header import NO_EPOCH, BatchHeader
from backends.log_segments.segment_reader import AlikeBatches, DefectKind, SegmentReader
from backends.log_segments.segment_source import SegmentError, SegmentFile

SMALLEST_SKIPPED = 1 << 18
"""Bytes; a smaller segment is read as quickly as its index."""


_TO_THE_END = SkippedBytes(1 << 63, 1 << 63)


class SegmentName(NamedTuple):
    """A ``.log`` file: its first offset, its name, its size in bytes."""

    base_offset: int
    name: str
    size: int


class LogTally:
    """What the batches of a log add up to, as far as they were read or skipped.

    ``extents`` are (leader epoch, first offset, offset after the last) of successive batches of an epoch; where
    compaction has removed batches, there are holes between them. ``skipped`` is the size of the batches that were
    not read, in bytes: their records are not in ``records``, and their timestamps not in ``last_timestamp``.
    """

    def __init__(self) -> None:
        self._begun: list[tuple[int, int, int]] = []
        self._batches_end = 0
        self.epoch = NO_EPOCH - 1
        self.log_end = 0
        self.last_timestamp = -1
        self.records = 0
        self.skipped = 0

    @property
    def extents(self) -> list[tuple[int, int, int]]:
        return [*self._begun[:-1], (*self._begun[-1][:2], self._batches_end)] if self._begun else []

    def copy(self) -> LogTally:
        other = LogTally()
        other.__dict__.update(self.__dict__)
        other._begun = list(self._begun)
        return other

    def add(self, header: BatchHeader, segment: SegmentName) -> str | None:
        """Adds the batch; returns why it cannot be at this place, None if it can."""
        base, epoch = header.base_offset, header.leader_epoch
        if epoch != self.epoch or base < segment.base_offset:
            text = self._misplaced(header, segment)
            if text is not None:
                return text
            if epoch != self.epoch:
                if self._begun:
                    self._begun[-1] = (*self._begun[-1][:2], self._batches_end)
                self._begun.append((epoch, base, base))
                self.epoch = epoch
        records = 0 if header.is_control else header.record_count
        self.add_alike(AlikeBatches(records, header.max_timestamp), header.next_offset)
        return None

    def add_alike(self, batches: AlikeBatches, next_offset: int) -> None:
        """Adds batches of the epoch of the last one, which end before ``next_offset``."""
        self.log_end = self._batches_end = next_offset
        self.last_timestamp = max(self.last_timestamp, batches.newest)
        self.records += batches.records

    def _misplaced(self, header: BatchHeader, segment: SegmentName) -> str | None:
        if header.base_offset < segment.base_offset:
            return f"the batch at offset {header.base_offset} stands in {segment.name}"
        if header.leader_epoch < self.epoch:
            epochs = f"from {self.epoch} to {header.leader_epoch}"
            return f"the leader epoch goes back {epochs} at offset {header.base_offset}"
        return None


class SegmentWalk:
    """Reads segments one after the other, up to the first defect, and adds up what they hold.

    Checksums are checked from offset ``check_from`` on (None: none is). Batches below ``flushed_to`` for which the
    segment's index vouches are skipped; 0: every batch is read. ``mismatches`` counts segments whose index is
    wrong: of these every batch was read.
    """

    def __init__(self, folder: Path, check_from: int | None, flushed_to: int) -> None:
        self._folder = folder
        self._check_from = check_from
        self._flushed_to = flushed_to
        self.tally = LogTally()
        self.mismatches = 0
        self.defect: LogDefect | None = None

    def walk(self, segments: list[SegmentName]) -> None:
        """All of ``segments``, ascending. Raises SegmentError where one cannot be opened."""
        for number, segment in enumerate(segments):
            after = len(segments) - number - 1
            end = self.tally.log_end
            if number and segment.base_offset < end:
                text = f"{segment.name} begins before offset {end}, where the segment before it ends"
                self.defect = LogDefect(DefectKind.OUT_OF_ORDER.value, segment.name, 0, end, after, text)
            else:
                self.tally.log_end = segment.base_offset
                with SegmentFile(self._folder / segment.name) as source:
                    self._read(source, segment, after)
            if self.defect is not None:
                return

    def _read(self, source: SegmentFile, segment: SegmentName, after: int) -> None:
        try:
            skips = self._skips(source, segment)
            if skips and self._read_skipping(source, segment, skips):
                return
        except IndexMismatch:
            skips = None
        reader = SegmentReader(source, check_from=self._check_from)
        misplaced = _read_batches(reader, segment, self.tally, [])
        if misplaced is not None:
            position, text = misplaced
            self._ends(DefectKind.OUT_OF_ORDER, segment, position, after, text)
        elif reader.defect is not None:
            kind, position, text = reader.defect
            self._ends(kind, segment, position, after, text)
        elif skips != []:
            self.mismatches += 1

    def _skips(self, source: SegmentFile, segment: SegmentName) -> list[SkippedBytes]:
        """None where nothing can be skipped, or there is no index. Raises IndexMismatch."""
        if self._flushed_to <= segment.base_offset or source.size < SMALLEST_SKIPPED:
            return []
        try:
            with SegmentFile(self._folder / f"{segment.name[: -len('.log')]}.index") as index:
                return OffsetIndex(index, source, segment.base_offset, self._flushed_to).skips()
        except SegmentError:
            return []

    def _read_skipping(self, source: SegmentFile, segment: SegmentName, skips: list[SkippedBytes]) -> bool:
        """Whether the segment could be read to its end that way. If not, nothing is taken from it."""
        tally = self.tally.copy()
        reader = SegmentReader(source, check_from=self._check_from)
        if _read_batches(reader, segment, tally, skips) is not None or reader.defect is not None:
            return False
        self.tally = tally
        return True

    def _ends(self, kind: DefectKind, segment: SegmentName, position: int, after: int, text: str) -> None:
        end = self.tally.log_end
        self.defect = LogDefect(kind.value, segment.name, position, end, after, text)


def _read_batches(
    reader: SegmentReader, segment: SegmentName, tally: LogTally, skips: list[SkippedBytes]
) -> tuple[int, str] | None:
    """Adds the batches up to the reader's end. Returns the byte of one that cannot be at its place, and why; or
    that of one that reaches into a later skip.
    """
    left = iter([*skips, _TO_THE_END])
    skip = next(left)
    for batch in reader:
        text = tally.add(batch.header, segment)
        if text is not None or batch.position > skip.start:
            return batch.position, text or "a batch reaches beyond an entry of the index"
        if batch.position == skip.start:
            if skip.end < reader.end_position:
                return batch.position, "an entry of the index stands in the middle of a batch"
            tally.skipped += skip.end - reader.end_position
            reader.skip_to(skip.end)
            skip = next(left)
        else:
            batches = reader.read_alike(tally.epoch, skip.start)
            tally.add_alike(batches, reader.next_offset or 0)
    return None
