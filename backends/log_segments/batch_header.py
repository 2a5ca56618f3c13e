"""Header of a record batch of magic 2 (KIP-98; kafka.apache.org/documentation/#recordbatch)."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

HEADER = Struct(">qiiBIhiqqqhii")
HEADER_SIZE = 61
LENGTH_BEFORE = 12
"""Bytes of a batch that its length does not count."""
MAGIC_AT = 16
CHECKED_FROM = 21
"""Position in a batch from which on the checksum counts. The base offset and the leader epoch stand before it: a
broker sets them without a new checksum."""
MAGIC = 2
NO_EPOCH = -1
OLD_MAGICS = (0, 1)
"""Messages of Kafka before 0.11. Kafka 4.0 no longer writes them, and serves those that lie on its disks."""
SHORTEST_LENGTH = HEADER_SIZE - LENGTH_BEFORE
LAST_OFFSET = (1 << 63) - 1
_COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
_COMPRESSION = 0x07
_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
CONTROL = 0x20


class BatchHeader(NamedTuple):
    """The fields as they stand in the batch. Timestamps are milliseconds since 1970, -1 for none. Producer
    id, epoch and sequence are -1 for a producer that is not idempotent. The leader epoch is -1 where none was set.

    Base offset and leader epoch are not covered by the checksum.
    """

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return LENGTH_BEFORE + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """One beyond the last offset."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> str:
        """none, gzip, snappy, lz4 or zstd; ``unknown-N`` for a codec of a later release."""
        codec = self.attributes & _COMPRESSION
        return _COMPRESSIONS[codec] if codec < len(_COMPRESSIONS) else f"unknown-{codec}"

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """The batch holds a marker (commit, abort, leader change, …) and no records of a client."""
        return bool(self.attributes & CONTROL)

    @property
    def is_log_append_time(self) -> bool:
        """The broker set the timestamps (``max_timestamp`` counts for every record), not the producer."""
        return bool(self.attributes & _APPEND_TIME)


_unpack = HEADER.unpack_from
_made = tuple.__new__


def parse_header(data: bytes | memoryview, at: int = 0) -> BatchHeader:
    """The 61 bytes at ``at`` as a header, whatever they hold: see :func:`header_defect`."""
    return _made(BatchHeader, _unpack(data, at))  # as BatchHeader(...) does, without a call of Python's


_ALIKE = Struct(">iB")
unpack_counts = Struct(">qi5sIhi8xq14xi").unpack_from
"""Of a header: base offset, length, the bytes of leader epoch and magic (as :func:`alike_key`), checksum,
attributes, last offset delta, newest timestamp, records."""


def alike_key(epoch: int) -> bytes:
    """Leader epoch and magic as they stand in the header of a batch of that epoch."""
    return _ALIKE.pack(epoch, MAGIC)


def batch_headers(data: bytes) -> Iterator[tuple[int, BatchHeader]]:
    """The header of each batch with its position in ``data``, of a last batch that is cut too. Nothing is checked:
    behind a header with a defect (:func:`header_defect`) nothing is where it says.
    """
    at = 0
    while at + HEADER_SIZE <= len(data):
        header = parse_header(data, at)
        yield at, header
        at += header.size


def header_defect(header: BatchHeader) -> str | None:
    """Why no broker can have written this header, None where it is plausible. The checksum is not checked."""
    base, length, epoch, magic, _, _, delta, _, _, _, _, _, records = header
    offsets = delta + 1
    # For millions of headers: one test if all is well.
    if (
        magic == MAGIC
        and length >= SHORTEST_LENGTH
        and 0 <= base < LAST_OFFSET - delta
        and delta >= 0
        and 0 <= records <= offsets
        and epoch >= NO_EPOCH
    ):
        return None
    if magic != MAGIC:
        return f"its magic is {magic}"
    if length < SHORTEST_LENGTH:
        return f"its length is {length}"
    if epoch < NO_EPOCH:
        return f"its leader epoch is {epoch}"
    if base < 0 or delta < 0 or base + delta >= LAST_OFFSET:
        return "its offsets are not between 0 and 2^63"
    return f"it counts {records} records for {offsets} offsets"
