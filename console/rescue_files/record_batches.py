"""Record batches: their fields, and batches as a client may send them (KIP-98): as they are, or encoded anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import pack_into
from typing import NamedTuple

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
from console.rescue_files.compression import DamagedCompression, gzipped, knows, unpacked
from recovery.wording.missing_extra import missing_extra


class MalformedRecord(Exception):
    """The bytes are no record. The message is one line for a person."""


class CannotUnpack(Exception):
    """The records are compressed with a codec that is not available here."""


class Record(NamedTuple):
    """One record: offset, timestamp in ms, key and value (None: none), headers (name, value) as bytes."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]


class RecordFieldReader:
    """Reads the fields of records from ``at`` on. Every read raises MalformedRecord beyond the end."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def varint(self) -> int:
        """A zig-zag varint of at most 64 bits."""
        value = shift = 0
        while True:
            if self.at >= len(self.data) or shift > 63:
                raise MalformedRecord(f"no number at byte {self.at}")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7

    def skip(self, count: int) -> None:
        self.take(count)

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise MalformedRecord(f"{count} bytes are not there at byte {self.at}")
        self.at += count
        return self.data[self.at - count : self.at]

    def sized(self) -> bytes | None:
        """Bytes with their length before them; None for length -1."""
        length = self.varint()
        return None if length == -1 else self.take(length)


def keys_and_headers(data: bytes) -> tuple[int, int]:
    """How many records of a whole batch have a key, and how many headers all of them have.

    Raises MalformedRecord, CannotUnpack.
    """
    header = parse_header(data)
    fields = RecordFieldReader(_unpacked(header, data))
    keys = headers = 0
    for _ in range(header.record_count):
        length = fields.varint()
        end = fields.at + length
        fields.at += 1
        fields.varint()
        fields.varint()
        for is_key in (True, False):
            size = fields.varint()
            keys += is_key and size >= 0
            fields.at += max(size, 0)
        count = fields.varint()
        if not 0 <= count <= length or not fields.at <= end <= len(fields.data):
            raise MalformedRecord(f"a record that ends at byte {end} does not hold what it says")
        headers += count
        fields.at = end
    return keys, headers


def records_of(data: bytes) -> Iterator[Record]:
    """The records of a whole batch. Raises MalformedRecord, CannotUnpack."""
    header = parse_header(data)
    fields = RecordFieldReader(_unpacked(header, data))
    for _ in range(header.record_count):
        length = fields.varint()
        end = fields.at + length
        fields.skip(1)
        time, delta = fields.varint(), fields.varint()
        key, value = fields.sized(), fields.sized()
        count = fields.varint()
        if count < 0 or count > length:
            raise MalformedRecord(f"{count} headers at byte {fields.at}")
        headers = tuple((fields.sized() or b"", fields.sized()) for _ in range(count))
        if fields.at != end:
            raise MalformedRecord(f"a record ends at byte {fields.at}, and its length says {end}")
        timestamp = header.max_timestamp if header.is_log_append_time else header.base_timestamp + time
        yield Record(header.base_offset + delta, timestamp, key, value, headers)


def _unpacked(header: BatchHeader, data: bytes) -> bytes:
    if not knows(header.compression):
        raise CannotUnpack(f"compressed with {header.compression}, which is not unpacked here")
    try:
        return unpacked(header.compression, data[HEADER_SIZE:])
    except DamagedCompression as error:
        raise MalformedRecord(str(error)) from None
    except ModuleNotFoundError as missing:
        what = f"records compressed with {header.compression} need"
        raise CannotUnpack(missing_extra(what, str(missing.name), "large")) from None


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
