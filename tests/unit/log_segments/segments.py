"""Segments of record batches, built for tests."""

from __future__ import annotations

from struct import Struct, pack, pack_into
from zlib import crc32

from crc32c import crc32c

HEADER = Struct(">qiiBIhiqqqhii")


def batch(
    base: int = 0,
    records: int = 1,
    *,
    epoch: int = 0,
    payload: bytes = b"",
    attributes: int = 0,
    delta: int | None = None,
    times: tuple[int, int] = (1_000, 2_000),
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    """A batch with a right checksum. The payload stands for the records."""
    delta = records - 1 if delta is None else delta
    length = HEADER.size - 12 + len(payload)
    head = (base, length, epoch, 2, 0, attributes, delta, *times, *producer, records)
    data = bytearray(HEADER.pack(*head) + payload)
    pack_into(">I", data, 17, crc32c(data[21:]))
    return bytes(data)


def old_message(magic: int, offset: int, value: bytes) -> bytes:
    """A message of the formats before 0.11 with a right checksum, as it lies in a segment, without a key."""
    time = pack(">q", 1_000) if magic == 1 else b""
    body = pack(">BB", magic, 0) + time + pack(">ii", -1, len(value)) + value
    return pack(">qiI", offset, len(body) + 4, crc32(body)) + body
