"""Record batches as a client may send them (KIP-98): as they are, or encoded anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import pack_into

from backends.log_segments.batch_header import (
    CHECKED_FROM,
    HEADER,
    HEADER_SIZE,
    LENGTH_BEFORE,
    MAGIC,
    NO_EPOCH,
    BatchHeader,
    parse_header,
)
from backends.log_segments.checksum import crc32c
from console.rescue.compression import gzipped
from console.rescue.record_fields import Record

_COMPRESSION = 0x07
"""Only the compression stays: no transaction, no time of the broker, no delete horizon."""
_GZIP = 1
_RECORD_OVERHEAD = 40
"""Most bytes that the numbers of a record take, without its headers' lengths."""


def has_holes(header: BatchHeader) -> bool:
    """Whether compaction removed records: a broker takes such a batch from no client."""
    return header.record_count != header.last_offset_delta + 1


def producible(batch: bytes, producer_id: int, producer_epoch: int, sequence: int) -> bytes:
    """The batch, which has no holes, as this producer sends it: outside of a transaction, its records untouched."""
    data = bytearray(batch)
    pack_into(">q", data, 0, 0)
    pack_into(">i", data, LENGTH_BEFORE, NO_EPOCH)
    pack_into(">h", data, CHECKED_FROM, parse_header(batch).attributes & _COMPRESSION)
    pack_into(">qhi", data, 43, producer_id, producer_epoch, sequence)
    pack_into(">I", data, 17, crc32c(memoryview(data)[CHECKED_FROM:]))
    return bytes(data)


def in_parts(records: Iterable[Record], most: int) -> Iterator[list[Record]]:
    """The records in runs whose batches take at most ``most`` bytes; a record that is larger stands alone."""
    part: list[Record] = []
    size = HEADER_SIZE
    for record in records:
        more = _size(record)
        if part and size + more > most:
            yield part
            part, size = [], HEADER_SIZE
        part.append(record)
        size += more
    if part:
        yield part


def encoded(records: Sequence[Record], *, compressed: bool) -> bytes:
    """A batch of the records with their keys, values, headers and timestamps, its offsets from 0 on.

    Packed with gzip where ``compressed``. Its checksum is set by :func:`producible`.
    """
    base = records[0].timestamp
    body = bytearray()
    for number, record in enumerate(records):
        fields = b"\0" + _zig_zag(record.timestamp - base) + _zig_zag(number)
        fields += _sized(record.key) + _sized(record.value) + _zig_zag(len(record.headers))
        for name, value in record.headers:
            fields += _sized(name) + _sized(value)
        body += _zig_zag(len(fields)) + fields
    packed = gzipped(bytes(body)) if compressed else bytes(body)
    header = BatchHeader(
        base_offset=0,
        length=HEADER_SIZE - LENGTH_BEFORE + len(packed),
        leader_epoch=NO_EPOCH,
        magic=MAGIC,
        crc=0,
        attributes=_GZIP if compressed else 0,
        last_offset_delta=len(records) - 1,
        base_timestamp=base,
        max_timestamp=max(record.timestamp for record in records),
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=len(records),
    )
    return HEADER.pack(*header) + packed


def _size(record: Record) -> int:
    headers = sum(20 + len(name) + len(value or b"") for name, value in record.headers)
    return _RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"") + headers


def _sized(data: bytes | None) -> bytes:
    return _zig_zag(-1) if data is None else _zig_zag(len(data)) + data


def _zig_zag(value: int) -> bytes:
    left = (value << 1) ^ (value >> 63)
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)
