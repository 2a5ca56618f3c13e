"""The batches of a segment by their headers, from its beginning to where it ends or is damaged.

Memory is bounded whatever the bytes say: a window of the file, and never a batch as a whole unless it is asked for.
"""

from __future__ import annotations

import enum
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from backends.log_segments.batch_header import (
    CHECKED_FROM,
    CONTROL,
    HEADER_SIZE,
    LAST_OFFSET,
    LENGTH_BEFORE,
    MAGIC_AT,
    OLD_MAGICS,
    SHORTEST_LENGTH,
    BatchHeader,
    alike_key,
    header_defect,
    parse_header,
    unpack_counts,
)
from backends.log_segments.checksum import crc32c
from backends.log_segments.segment_source import SegmentError, SegmentSource

_WINDOW = 1 << 18
"""Bytes read at once where batches follow each other closely, and of a checksum."""
_CLOSE = 1 << 16
"""Behind a batch of this size only the next header is read, not what lies between."""
_HEADER_WINDOW = 1 << 12


class DefectKind(enum.Enum):
    """Why the reading of a segment ended before its last byte."""

    CUT_SHORT = "cut short"
    ZEROS = "zeros"
    WRONG_CHECKSUM = "wrong checksum"
    NOT_A_BATCH = "not a batch"
    OLD_FORMAT = "old format"
    OUT_OF_ORDER = "out of order"
    UNREADABLE = "unreadable"


class SegmentDefect(NamedTuple):
    """``position`` is the byte where the whole batches end; ``text`` one line about what stands there."""

    kind: DefectKind
    position: int
    text: str


class OldMessages(NamedTuple):
    """Messages of formats 0 and 1: how many (a compressed set counts as one), their bytes, and one beyond the last
    offset.
    """

    messages: int = 0
    size: int = 0
    end: int = 0


class Batch(NamedTuple):
    """A whole batch: its header, and its position in bytes."""

    header: BatchHeader
    position: int


class AlikeBatches(NamedTuple):
    """Batches that were read at once: the records of those that are no control batches, and the newest timestamp
    (milliseconds, -1 for none).
    """

    records: int
    newest: int


_NONE_ALIKE = AlikeBatches(0, -1)


class SegmentReader:
    """Iterates over the whole batches of ``source``, once.

    After it: ``end_position`` is one beyond the last whole batch, ``next_offset`` one beyond its last offset (None
    where there was no batch). ``defect`` is why the reading ended before the end of the data, None where it did
    not.

    Checksums are checked for batches that hold an offset from ``check_from`` on; None: for no batch. Offsets that
    go back end the reading. So do messages of formats 0 and 1, unless ``passes_old``: then ``old`` counts those
    that were passed over.
    """

    def __init__(
        self, source: SegmentSource, *, check_from: int | None = 0, passes_old: bool = False
    ) -> None:
        self._source = source
        self._passes_old = passes_old
        self.old = OldMessages()
        self._check_from = check_from
        self._window: bytes | memoryview = b""
        self._window_at = 0
        self._reads_ahead = True
        self.end_position = 0
        self.next_offset: int | None = None
        self.defect: SegmentDefect | None = None

    def __iter__(self) -> Iterator[Batch]:
        while self.defect is None and self.end_position < self._source.size:
            found = self._next()
            if isinstance(found, SegmentDefect) and found.kind is DefectKind.OLD_FORMAT and self._passes_old:
                found = self._pass_old() or found
                if found.kind is DefectKind.OLD_FORMAT:
                    continue
            if isinstance(found, SegmentDefect):
                self.defect = found
                return
            batch = Batch(found, self.end_position)
            self.end_position += found.size
            self.next_offset = found.next_offset
            self._reads_ahead = found.size < _CLOSE
            yield batch

    def read_alike(self, epoch: int, until: int) -> AlikeBatches:
        """Goes on at once over whole batches of that leader epoch that need no second look and begin before byte
        ``until``, as far as they were read already. The iteration continues behind them, and finds the same
        defects as without this call; it is what makes millions of small batches quick.
        """
        window, checked = self._window, self._check_from
        if self.defect is not None or self.next_offset is None:
            return _NONE_ALIKE
        check_from = LAST_OFFSET + 1 if checked is None else checked
        bytes_of = memoryview(window)
        shift, key, unpack = self._window_at, alike_key(epoch), unpack_counts
        at, end, next_offset = self.end_position - shift, self._source.size - shift, self.next_offset
        limit = min(len(window) - HEADER_SIZE, until - shift - 1)
        records, newest = 0, -1
        while 0 <= at <= limit:
            base, length, found, crc, attributes, delta, timestamp, count = unpack(window, at)
            beyond = at + LENGTH_BEFORE + length
            if (
                found != key
                or length < SHORTEST_LENGTH
                or beyond > end
                or base < next_offset
                or not count - 1 <= delta >= 0 <= count
            ):
                break
            following = base + delta + 1
            if following > check_from and crc32c(bytes_of[at + CHECKED_FROM : beyond]) != crc:
                break  # or the batch reaches beyond the window
            if following > LAST_OFFSET:
                break
            next_offset, at = following, beyond
            if timestamp > newest:  # noqa: PLR1730  # max() takes three times as long
                newest = timestamp
            if not attributes & CONTROL:
                records += count
        self.end_position, self.next_offset = at + shift, next_offset
        return AlikeBatches(records, newest)

    def skip_to(self, position: int) -> None:
        """Goes on at byte ``position``, where the caller knows that a later batch begins."""
        self.end_position = max(self.end_position, position)

    def raw(self, batch: Batch) -> bytes:
        """The whole batch as it lies in the segment: ``batch.header.size`` bytes, which the caller has to bound.
        Raises SegmentError where the file became shorter meanwhile.
        """
        data = bytes(self._bytes_at(batch.position, batch.header.size))
        if len(data) < batch.header.size:
            raise SegmentError(f"the batch at offset {batch.header.base_offset} was cut off meanwhile")
        return data

    def _next(self) -> BatchHeader | SegmentDefect:
        """The header of the whole batch that stands at ``end_position``, or what stands there instead."""
        at = self.end_position
        try:
            start = at - self._window_at
            if not 0 <= start <= len(self._window) - HEADER_SIZE:
                data = bytes(self._bytes_at(at, HEADER_SIZE))
                if len(data) < HEADER_SIZE:
                    return self._without_header(data)
                start = 0
            header = parse_header(self._window, start)
            left = self._source.size - at
            behind = self.next_offset is not None and header.base_offset < self.next_offset
            if header_defect(header) is not None or header.length > left - LENGTH_BEFORE or behind:
                return self._implausible(header, left)
            return header if self._check_from is None else self._wrong_checksum(header) or header
        except SegmentError as error:
            return SegmentDefect(DefectKind.UNREADABLE, at, str(error))

    def _pass_old(self) -> SegmentDefect | None:
        """Goes on behind the message at ``end_position``; why it cannot."""
        at = self.end_position
        try:
            head = bytes(self._bytes_at(at, MAGIC_AT))
            base, length = int.from_bytes(head[:8], "big"), int.from_bytes(head[8:12], "big")
            left = self._source.size - at
            if length > left - LENGTH_BEFORE:
                text = f"the message at offset {base} is cut short ({left} of {LENGTH_BEFORE + length} bytes)"
                return SegmentDefect(DefectKind.CUT_SHORT, at, text)
            if self.next_offset is not None and base < self.next_offset:
                text = f"the message at offset {base} stands behind offset {self.next_offset - 1}"
                return SegmentDefect(DefectKind.OUT_OF_ORDER, at, text)
            if self._check_from is not None and base >= self._check_from:
                data = bytes(self._bytes_at(at + MAGIC_AT, length - (MAGIC_AT - LENGTH_BEFORE)))
                if zlib.crc32(data) != int.from_bytes(head[12:16], "big"):
                    text = f"the message at offset {base} is damaged: its checksum is wrong"
                    return SegmentDefect(DefectKind.WRONG_CHECKSUM, at, text)
        except SegmentError as error:
            return SegmentDefect(DefectKind.UNREADABLE, at, str(error))
        size = LENGTH_BEFORE + length
        self.end_position, self.next_offset = at + size, base + 1
        self.old = OldMessages(self.old.messages + 1, self.old.size + size, base + 1)
        return None

    def _without_header(self, data: bytes) -> SegmentDefect:
        at, left = self.end_position, self._source.size - self.end_position
        if not any(data):
            return SegmentDefect(DefectKind.ZEROS, at, f"the last {left} bytes are zero")
        if len(data) > MAGIC_AT:
            header = parse_header(data.ljust(HEADER_SIZE, b"\0"))
            if header.size <= left and _is_old_format(header):
                return _old_format(header, at)
        return SegmentDefect(DefectKind.CUT_SHORT, at, f"the last {left} bytes are no whole batch")

    def _implausible(self, header: BatchHeader, left: int) -> SegmentDefect:
        at, reason = self.end_position, header_defect(header)
        if reason is not None and not any(header):
            text = f"{left} bytes begin with zeros where a batch should stand"
            return SegmentDefect(DefectKind.ZEROS, at, text)
        if reason is not None and _is_old_format(header):
            return _old_format(header, at)
        if reason is not None:
            text = f"byte {at} is not the beginning of a batch: {reason}"
            return SegmentDefect(DefectKind.NOT_A_BATCH, at, text)
        base = header.base_offset
        if header.size > left:
            text = f"the batch at offset {base} is cut short ({left} of {header.size} bytes)"
            return SegmentDefect(DefectKind.CUT_SHORT, at, text)
        text = f"the batch at offset {base} stands behind offset {(self.next_offset or 0) - 1}"
        return SegmentDefect(DefectKind.OUT_OF_ORDER, at, text)

    def _wrong_checksum(self, header: BatchHeader) -> SegmentDefect | None:
        if self._check_from is None or header.next_offset <= self._check_from:
            return None
        at = self.end_position
        checksum = self._checksum(at, header.size)
        if checksum is None:
            return SegmentDefect(DefectKind.CUT_SHORT, at, "the file became shorter while it was read")
        if checksum == header.crc:
            return None
        text = f"the batch at offset {header.base_offset} is damaged: its checksum is wrong"
        return SegmentDefect(DefectKind.WRONG_CHECKSUM, at, text)

    def _checksum(self, at: int, size: int) -> int | None:
        """Of the batch at ``at``, window by window; None where the file became shorter meanwhile."""
        crc, position, end = 0, at + CHECKED_FROM, at + size
        while position < end:
            data = self._bytes_at(position, min(end - position, _WINDOW))
            if not data:
                return None
            crc = crc32c(data, crc)
            position += len(data)
        return crc

    def _bytes_at(self, at: int, count: int) -> bytes | memoryview:
        """``count`` bytes from ``at`` on, fewer where the file ends."""
        start = at - self._window_at
        if start < 0 or start + count > len(self._window):
            if count > _WINDOW:
                return self._source.read(at, count)
            ahead = _WINDOW if self._check_from is not None or self._reads_ahead else _HEADER_WINDOW
            self._window, self._window_at, start = self._source.read(at, max(count, ahead)), at, 0
        return self._window[start : start + count]


def is_torn(source: SegmentSource, defect: SegmentDefect) -> bool:
    """Whether this is what a process that was killed, or a host that lost power, leaves of the last batch."""
    if defect.kind is DefectKind.WRONG_CHECKSUM:
        last = parse_header(source.read(defect.position, HEADER_SIZE))
        return defect.position + last.size == source.size
    return defect.kind in (DefectKind.CUT_SHORT, DefectKind.ZEROS)


def _is_old_format(header: BatchHeader) -> bool:
    """Offset and length stand at the same place in a message of magic 0 or 1, which has 14 bytes or more."""
    return header.magic in OLD_MAGICS and header.base_offset >= 0 and header.length >= 14


def _old_format(header: BatchHeader, at: int) -> SegmentDefect:
    text = f"the message at offset {header.base_offset} has the old format {header.magic}, which is not read"
    return SegmentDefect(DefectKind.OLD_FORMAT, at, text)
