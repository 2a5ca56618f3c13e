"""The segments of one partition, in order, as one log: epoch spans, ends and the first defect."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from backends.disk_scan.scan_values import LogDefect
from backends.log_segments.batch_header import NO_EPOCH, BatchHeader
from backends.log_segments.segment_reader import DefectKind, SegmentReader
from backends.log_segments.segment_source import SegmentFile


class SegmentName(NamedTuple):
    """A ``.log`` file: its first offset, its name, its size in bytes."""

    base_offset: int
    name: str
    size: int


class SegmentWalk:
    """Reads segments one after the other, up to the first defect, and adds up what they hold."""

    def __init__(self, folder: Path, check_from: int | None) -> None:
        self._folder = folder
        self._check_from = check_from
        self._extents: list[tuple[int, int, int]] = []
        self._epoch = NO_EPOCH - 1
        self._batches_end = 0
        self.log_end = 0
        self.last_timestamp = -1
        self.records = 0
        self.defect: LogDefect | None = None

    @property
    def extents(self) -> list[tuple[int, int, int]]:
        """(leader epoch, first offset, offset after the last) of successive batches of an epoch; where compaction
        has removed batches, there are holes between them.
        """
        return [*self._extents[:-1], (*self._extents[-1][:2], self._batches_end)] if self._extents else []

    def walk(self, segments: list[SegmentName]) -> None:
        """All of ``segments``, ascending. Raises SegmentError where one cannot be opened."""
        for number, segment in enumerate(segments):
            after = len(segments) - number - 1
            if number and segment.base_offset < self.log_end:
                text = f"{segment.name} begins before offset {self.log_end}, where the segment before it ends"
                self.defect = LogDefect(
                    DefectKind.OUT_OF_ORDER.value, segment.name, 0, self.log_end, after, text
                )
            else:
                self.log_end = segment.base_offset
                self._read(segment, after)
            if self.defect is not None:
                return

    def _read(self, segment: SegmentName, after: int) -> None:
        with SegmentFile(self._folder / segment.name) as source:
            reader = SegmentReader(source, check_from=self._check_from)
            for batch in reader:
                text = self._add(batch.header, segment)
                if text is not None:
                    self._ends(DefectKind.OUT_OF_ORDER, segment, batch.position, after, text)
                    return
            if reader.defect is not None:
                kind, position, text = reader.defect
                self._ends(kind, segment, position, after, text)

    def _ends(self, kind: DefectKind, segment: SegmentName, position: int, after: int, text: str) -> None:
        self.defect = LogDefect(kind.value, segment.name, position, self.log_end, after, text)

    def _add(self, header: BatchHeader, segment: SegmentName) -> str | None:
        """Adds the batch to the counts; returns why it cannot be at this place, None if it can."""
        base, _, epoch, _, _, _, delta, _, max_timestamp, _, _, _, records = header
        if epoch != self._epoch or base < segment.base_offset:
            text = self._misplaced(header, segment)
            if text is not None:
                return text
            if epoch != self._epoch:
                self._extents = [*self.extents, (epoch, base, base)]
                self._epoch = epoch
        self.log_end = self._batches_end = base + delta + 1
        self.last_timestamp = max(self.last_timestamp, max_timestamp)
        if not header.is_control:
            self.records += records
        return None

    def _misplaced(self, header: BatchHeader, segment: SegmentName) -> str | None:
        if header.base_offset < segment.base_offset:
            return f"the batch at offset {header.base_offset} stands in {segment.name}"
        if header.leader_epoch < self._epoch:
            epochs = f"from {self._epoch} to {header.leader_epoch}"
            return f"the leader epoch goes back {epochs} at offset {header.base_offset}"
        return None
