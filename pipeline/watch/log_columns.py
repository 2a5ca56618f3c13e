"""The data records of a piece of a metadata log as columns: no object of Python's for each of a million records.

Only what a controller writes is read so: records without a key and headers, in batches that are not compressed. Any
other batch is left to :class:`BatchReader`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from backends.log_segments.batch_header import HEADER_SIZE
from backends.log_segments.segment_reader import Batch, SegmentReader
from backends.log_segments.segment_source import SegmentBytes
from backends.metadata_log.batches import BatchReader

_ONE_BYTE = 128
"""A varint below it is one byte."""
_MOST_VARINT_BYTES = 5
_NULL = -1
"""The length of a key that is null."""


class MetadataLogColumns(NamedTuple):
    """Records in the order of the log. ``value`` is an Arrow array of bytes, the others are arrays of numpy.
    ``batch`` is the number of the record batch, which is its first offset, and ``epoch`` its leader epoch.
    """

    offset: Any
    time_ms: Any
    batch: Any
    epoch: Any
    value: Any

    def between(self, start: int, end: int) -> MetadataLogColumns:
        """Those from offset ``start`` to before ``end``."""
        inside = (self.offset >= start) & (self.offset < end)
        if inside.all():
            return self
        values = self.value.filter(pa.array(inside))
        return MetadataLogColumns._make((*(column[inside] for column in self[:-1]), values))


def gathered(parts: Iterable[MetadataLogColumns], rows: int) -> Iterator[MetadataLogColumns]:
    """The same records, at least ``rows`` at once, and the rest."""
    waiting: list[MetadataLogColumns] = []
    for part in parts:
        waiting.append(part)
        if sum(len(one.offset) for one in waiting) >= rows:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(parts: Sequence[MetadataLogColumns]) -> MetadataLogColumns:
    if len(parts) == 1:
        return parts[0]
    *numbers, values = zip(*parts, strict=True)
    return MetadataLogColumns._make((*map(np.concatenate, numbers), pa.concat_arrays(values)))


class _NotPlain(Exception):
    """BatchReader has to read these batches."""


def columns_of(rows: Sequence[tuple[int, int, int, int, bytes | None]]) -> MetadataLogColumns:
    """Of rows with the same fields."""
    *numbers, values = zip(*rows, strict=True)
    columns = (np.array(column, np.int64) for column in numbers)
    return MetadataLogColumns._make((*columns, pa.array(values, pa.binary())))


def log_columns(data: bytes, rows: int) -> Iterator[MetadataLogColumns]:
    """Every data record, up to the first batch that is cut, damaged or compressed; at least ``rows`` at once, and
    the rest.
    """
    batches: list[Batch] = []
    count = 0
    for batch in SegmentReader(SegmentBytes(data)):
        if batch.header.compression != "none":
            break
        if batch.header.is_control:
            continue
        batches.append(batch)
        count += batch.header.record_count
        if count >= rows:
            found, whole = _columns(data, batches)
            yield from found
            if not whole:
                return
            batches, count = [], 0
    if batches:
        yield from _columns(data, batches)[0]


def _columns(data: bytes, batches: Sequence[Batch]) -> tuple[list[MetadataLogColumns], bool]:
    """The records of the batches, and whether all of these could be read."""
    try:
        return [_plain_columns(data, batches)], True
    except (_NotPlain, IndexError):
        pass
    reader = BatchReader(b"".join(data[at : at + header.size] for header, at in batches), picked=True)
    found = [
        (offset, time_ms, base, epoch, value)
        for base, epoch, records in reader.data_batches()
        for offset, time_ms, value in records
    ]
    return [columns_of(found)] if found else [], reader.problem is None


def _plain_columns(data: bytes, batches: Sequence[Batch]) -> MetadataLogColumns:
    """Raises _NotPlain and IndexError if a batch has anything else than such records."""
    headers = [batch.header for batch in batches]
    if any(header.is_log_append_time for header in headers):
        raise _NotPlain
    first = batches[0].position
    places = _record_places(data, batches)
    piece = np.frombuffer(data, np.uint8)
    length, body = _varints(piece, places)
    later_ms, at = _varints(piece, body + 1)
    later, at = _varints(piece, at)
    key_length, at = _varints(piece, at)
    size, at = _varints(piece, at)
    end = at + size
    if (
        (key_length != _NULL).any()
        or (size < 0).any()
        or (end + 1 != body + length).any()
        or piece[end].any()
    ):
        raise _NotPlain
    counts = [header.record_count for header in headers]
    of_batch = [(header.base_offset, header.base_timestamp, header.leader_epoch) for header in headers]
    base, base_ms, epoch = np.repeat(np.array(of_batch, np.int64), counts, axis=0).T
    return MetadataLogColumns(base + later, base_ms + later_ms, base, epoch, _values(data, first, at, end))


def _record_places(data: bytes, batches: Iterable[Batch]) -> Any:
    """Where the length of each record stands, which tells where the next one does."""
    places: list[int] = []
    found = places.append
    for header, position in batches:
        at = position + HEADER_SIZE
        for _ in range(header.record_count):
            found(at)
            size = data[at]
            if size >= _ONE_BYTE:
                at += 1
                size += (data[at] - 1) * _ONE_BYTE
                if data[at] >= _ONE_BYTE:
                    at += 1
                    if data[at] >= _ONE_BYTE:
                        raise _NotPlain
                    size += (data[at] - 1) * _ONE_BYTE * _ONE_BYTE
            at += 1 + (size >> 1)
        if at != position + header.size:
            raise _NotPlain
    return np.array(places, np.int64)


def _varints(piece: Any, at: Any) -> tuple[Any, Any]:
    """The signed varints at those places, and where they end. Raises _NotPlain if one is longer than 32 bits."""
    byte = piece[at]
    found, end = (byte & (_ONE_BYTE - 1)).astype(np.int64), at + 1
    longer = np.flatnonzero(byte >= _ONE_BYTE)
    for number in range(1, _MOST_VARINT_BYTES):
        if not len(longer):
            break
        byte = piece[end[longer]]
        found[longer] |= (byte & (_ONE_BYTE - 1)).astype(np.int64) << 7 * number
        end[longer] += 1
        longer = longer[byte >= _ONE_BYTE]
    if len(longer):
        raise _NotPlain
    return (found >> 1) ^ -(found & 1), end


def _values(data: bytes, first: int, start: Any, end: Any) -> Any:
    """The bytes from each ``start`` to its ``end``."""
    bounds = np.stack((start, end), axis=1).ravel() - first
    if bounds[-1] > _MOST_BYTES:
        raise _NotPlain
    buffers = [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(memoryview(data)[first:])]
    # Every other array element is what lies between two values.
    return pa.BinaryArray.from_buffers(pa.binary(), len(bounds) - 1, buffers).take(
        pa.array(np.arange(0, len(bounds), 2))
    )


_MOST_BYTES = 2**31 - 1
"""Of an array of Arrow."""
