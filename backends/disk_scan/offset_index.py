"""Which batches of a segment need not be read: its offset index vouches for them.

A segment's ``.index`` has, about every 4 KiB (index.interval.bytes), an offset relative to the segment's, and the
byte where a batch begins that ends at or before this offset. A broker flushes it together with the segment, and
trusts both up to the recovery point. The leader epochs of a log never go down: where the batches at two entries
have the same epoch, so have all between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from backends.log_segments.batch_header import HEADER_SIZE, BatchHeader, parse_header
from backends.log_segments.segment_source import SegmentSource

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
        if header.base_offset > self._flushed_to:
            raise IndexMismatch
        return _Indexed(number, position, header)
