"""The fields of single records within a batch of magic 2 (KIP-98)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from backends.log_segments.batch_header import HEADER_SIZE, BatchHeader, parse_header
from console.rescue.compression import DamagedCompression, knows, unpacked


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
