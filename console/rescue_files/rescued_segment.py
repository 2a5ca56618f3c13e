"""One segment file of a rescue: its sound batches, and the damaged parts between them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import NamedTuple

from backends.log_segments.batch_header import (
    HEADER_SIZE,
    MAGIC,
    MAGIC_AT,
    NO_EPOCH,
    BatchHeader,
    header_defect,
    parse_header,
)
from backends.log_segments.segment_reader import Batch, SegmentReader
from backends.log_segments.segment_source import SegmentError, SegmentFile
from console.rescue_files.manifest import SegmentEntry
from recovery.rescue_branches import RescueBranch
from recovery.wording.quantity_text import offset

LARGEST_BATCH = 1 << 28
"""Bytes of a batch that is read into memory at all."""
_WINDOW = 1 << 20
_MOST_CHECKED = 4
"""Behind damage, checksums are computed of at most so many times the bytes of the file: hostile bytes can look like
the beginnings of many large batches."""


class RescuedBatch(NamedTuple):
    """A batch as it lies in the file. ``data`` is the whole of it."""

    header: BatchHeader
    data: bytes


class DamagedPart(NamedTuple):
    """Bytes ``start`` to ``end`` (exclusive) of a file, in which no sound batch is. ``first_offset`` to
    ``next_offset`` (exclusive) are offsets of the branch that are lost with it; they are equal where none are.
    ``text`` is the file and what is wrong, in one line.
    """

    file: str
    start: int
    end: int
    first_offset: int
    next_offset: int
    text: str

    @property
    def offsets_text(self) -> str:
        """Which offsets cannot be used."""
        first, last = offset(self.first_offset), offset(self.next_offset - 1)
        if self.first_offset == self.next_offset:
            return "no offset is lost"
        return f"{f'offset {first}' if first == last else f'offsets {first} to {last}'} cannot be used"


def segment_parts(
    path: Path, segment: SegmentEntry, branch: RescueBranch
) -> Iterator[RescuedBatch | DamagedPart]:
    """The file from its beginning to its end. A batch is sound if its checksum is right; behind damage, only if its
    offsets and its leader epoch are also those of the branch at this place.
    """
    try:
        with SegmentFile(path) as source:
            yield from _SegmentParts(source, path, segment, branch).read()
    except SegmentError as error:
        yield DamagedPart(
            segment.name, 0, segment.size, segment.first_offset, segment.next_offset, str(error)
        )


class _SegmentParts:
    def __init__(self, source: SegmentFile, path: Path, segment: SegmentEntry, branch: RescueBranch) -> None:
        self._source = source
        self._path = path
        self._segment = segment
        self._branch = branch
        self._may_check = _MOST_CHECKED * source.size
        self._position = 0
        self._offset = segment.first_offset
        """The lowest offset that the next batch may have."""

    def read(self) -> Iterator[RescuedBatch | DamagedPart]:
        while True:
            why = yield from self._sound()
            if why is None:
                return
            found = self._next_sound(self._position)
            yield self._damaged(found, why)
            if found is None:
                return
            self._position, self._offset = found.position, found.header.base_offset

    def _sound(self) -> Generator[RescuedBatch, None, str | None]:
        """Up to the first damage; returns what it is, None at the end of a whole file."""
        reader = SegmentReader(self._source)
        reader.skip_to(self._position)
        for batch in reader:
            header = batch.header
            if header.size > LARGEST_BATCH:
                return f"a batch of {header.size:,} bytes is not read"
            if header.base_offset < self._offset or header.next_offset > self._segment.next_offset:
                return f"the batch at offset {header.base_offset} does not belong there"
            try:
                data = reader.raw(batch)
            except SegmentError as error:
                return str(error)
            yield RescuedBatch(header, data)
            self._position, self._offset = reader.end_position, header.next_offset
        if reader.defect is not None:
            return reader.defect.text
        return None if self._position == self._segment.size else self._other_size()

    def _other_size(self) -> str:
        return f"has {self._source.size:,} bytes, and {self._segment.size:,} were written"

    def _damaged(self, found: Batch | None, why: str) -> DamagedPart:
        if found is None and self._source.size != self._segment.size:
            why = self._other_size()
        text = why if why.startswith(str(self._path)) else f"{self._path}: {why}"
        end, after = self._source.size, self._segment.next_offset
        if found is not None:
            end, after = found.position, found.header.base_offset
        return DamagedPart(self._segment.name, self._position, end, self._offset, after, text)

    def _next_sound(self, start: int) -> Batch | None:
        """The first sound batch behind the damage at byte ``start``."""
        for position in self._candidates(start):
            header = self._header(position)
            if header is None or not self._fits(header, position):
                continue
            self._may_check -= header.size
            if self._may_check < 0:
                return None
            reader = SegmentReader(self._source)
            reader.skip_to(position)
            batch = next(iter(reader), None)
            if batch is not None:
                return batch
        return None

    def _candidates(self, start: int) -> Iterator[int]:
        """Bytes at which a batch may begin: behind the damaged one first, for within its records a whole batch may
        lie that is no batch of the branch.
        """
        header = self._header(start)
        if header is not None and header_defect(header) is None:
            yield start + header.size
        at = start + 1
        while at + HEADER_SIZE <= self._source.size:
            try:
                window = self._source.read(at, _WINDOW)
            except SegmentError:
                at += _WINDOW
                continue
            hit = window.find(MAGIC, MAGIC_AT)
            while 0 <= hit <= len(window) - HEADER_SIZE + MAGIC_AT:
                yield at + hit - MAGIC_AT
                hit = window.find(MAGIC, hit + 1)
            at += max(len(window) - HEADER_SIZE + 1, 1)

    def _header(self, position: int) -> BatchHeader | None:
        try:
            data = self._source.read(position, HEADER_SIZE)
        except SegmentError:
            return None
        return parse_header(data) if len(data) == HEADER_SIZE else None

    def _fits(self, header: BatchHeader, position: int) -> bool:
        return (
            header_defect(header) is None
            and self._offset <= header.base_offset
            and header.next_offset <= self._segment.next_offset
            and header.size <= min(self._source.size - position, LARGEST_BATCH)
            and self._branch.epoch_at(header.base_offset) in (NO_EPOCH, header.leader_epoch)
        )
