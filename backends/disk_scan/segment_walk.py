"""The segments of one partition, in order, as one log: epoch spans, ends and the first defect.

Batches need not be read where the segment's offset index vouches for them. A segment's ``.index`` has, about every
4 KiB (index.interval.bytes), an offset relative to the segment's, and the byte where a batch begins that ends at or
before this offset. A broker flushes it together with the segment, and trusts both up to the recovery point. The
leader epochs of a log never go down: where the batches at two entries have the same epoch, so do all
between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from backends.disk_scan.scan_values import LogDefect
from backends.log_segments.batch_header import HEADER_SIZE, MAGIC, NO_EPOCH, BatchHeader, parse_header
from backends.log_segments.segment_reader import AlikeBatches, DefectKind, OldMessages, SegmentReader
from backends.log_segments.segment_source import SegmentError, SegmentFile, SegmentSource

_ENTRY = Struct(">ii")


class IndexMismatch(Exception):
    """The index and the batches of its segment contradict each other."""


class SkippedBytes(NamedTuple):
    """Where batches are skipped: behind the batch that begins at byte ``start``, up to the batch at byte ``end``.
    Both have the same leader epoch.
    """

    start: int
    end: int


class _Indexed(NamedTuple):
    """An entry's ``number``, -1 for the segment's beginning, and the batch that begins at byte ``position``."""

    number: int
    position: int
    header: BatchHeader


class OffsetIndex:
    """The entries of ``index`` for the segment ``log``, which begins at ``base_offset`` and is flushed up to offset
    ``flushed_to``. Whoever skips has to read the batches at both ends of a skip.
    """

    def __init__(self, index: SegmentSource, log: SegmentSource, base_offset: int, flushed_to: int) -> None:
        self._index = index
        self._log = log
        self._base_offset = base_offset
        self._flushed_to = flushed_to

    def skips(self) -> list[SkippedBytes]:
        """What can be skipped of the flushed batches, ascending; none where the index has no entries for them.
        Raises IndexMismatch, and SegmentError where a file cannot be read.
        """
        last = self._flushed_entries() - 1
        if last < 0:
            return []
        pairs = self._of_one_epoch(self._at(-1, 0), self._at_entry(last))
        return [SkippedBytes(lower.position, upper.position) for lower, upper in pairs]

    def _of_one_epoch(self, lower: _Indexed, upper: _Indexed) -> Iterator[tuple[_Indexed, _Indexed]]:
        """Pairs with the same epoch, ascending: halves of ``lower`` to ``upper`` until they have one."""
        left = [(lower, upper)]
        while left:
            lower, upper = left.pop()
            if lower.header.leader_epoch == upper.header.leader_epoch:
                yield lower, upper
            elif upper.number - lower.number > 1:
                middle = self._at_entry((lower.number + upper.number) // 2)
                left += [(middle, upper), (lower, middle)]

    def _flushed_entries(self) -> int:
        """How many entries lead to flushed batches, by halving. A broker that was killed leaves zeros behind."""
        low, high = 0, self._index.size // _ENTRY.size
        while low < high:
            middle = (low + high) // 2
            relative, position = self._entry(middle)
            flushed = self._base_offset + relative < self._flushed_to
            if flushed and 0 < position <= self._log.size - HEADER_SIZE:
                low = middle + 1
            else:
                high = middle
        return low

    def _entry(self, number: int) -> tuple[int, int]:
        data = self._index.read(number * _ENTRY.size, _ENTRY.size)
        if len(data) < _ENTRY.size:
            raise IndexMismatch
        relative, position = _ENTRY.unpack(data)
        return relative, position

    def _at_entry(self, number: int) -> _Indexed:
        return self._at(number, self._entry(number)[1])

    def _at(self, number: int, position: int) -> _Indexed:
        data = self._log.read(position, HEADER_SIZE) if position >= 0 else b""
        if len(data) < HEADER_SIZE:
            raise IndexMismatch
        header = parse_header(data)
        if header.base_offset > self._flushed_to or header.magic != MAGIC:
            raise IndexMismatch
        return _Indexed(number, position, header)


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
    not read, in bytes: their records are not in ``records``, and their timestamps not in ``last_timestamp``; nor
    are those of ``old``, messages of formats 0 and 1, which have no epoch.
    """

    def __init__(self) -> None:
        self._begun: list[tuple[int, int, int]] = []
        self._batches_end = 0
        self.epoch = NO_EPOCH - 1
        self.log_end = 0
        self.last_timestamp = -1
        self.records = 0
        self.skipped = 0
        self.old = OldMessages()

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

    def add_old(self, old: OldMessages) -> None:
        """Adds what was passed over in one segment."""
        if old.messages:
            self.old = OldMessages(self.old.messages + old.messages, self.old.size + old.size, old.end)
            self.log_end = max(self.log_end, old.end)

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
            after = segments[number + 1 :]
            end = self.tally.log_end
            if number and segment.base_offset < end:
                text = f"{segment.name} begins before offset {end}, where the segment before it ends"
                self._ends(DefectKind.OUT_OF_ORDER, segment, 0, after, text)
            else:
                self.tally.log_end = segment.base_offset
                with SegmentFile(self._folder / segment.name) as source:
                    self._read(source, segment, after)
            if self.defect is not None:
                return

    def _read(self, source: SegmentFile, segment: SegmentName, after: list[SegmentName]) -> None:
        try:
            skips = self._skips(source, segment)
            if skips and self._read_skipping(source, segment, skips):
                return
        except IndexMismatch:
            skips = None
        reader = SegmentReader(source, check_from=self._check_from, passes_old=True)
        misplaced = _read_batches(reader, segment, self.tally, [])
        self.tally.add_old(reader.old)
        if misplaced is not None:
            position, text = misplaced
            self._ends(DefectKind.OUT_OF_ORDER, segment, position, after, text)
        elif reader.defect is not None:
            kind, position, text = reader.defect
            self._ends(kind, segment, position, after, text)
        elif skips != [] and not reader.old.messages:
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

    def _ends(
        self, kind: DefectKind, segment: SegmentName, position: int, after: list[SegmentName], text: str
    ) -> None:
        left = segment.size - position + sum(one.size for one in after)
        end = self.tally.log_end
        self.defect = LogDefect(kind.value, segment.name, position, end, len(after), text, left)


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
