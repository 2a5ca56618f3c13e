"""The records of a compressed batch, unpacked: gzip, snappy, lz4 and zstd as Kafka's clients write them."""

from __future__ import annotations

import zlib
from collections.abc import Callable

LARGEST_RECORDS = 1 << 28
"""Bytes of a batch's records when they are unpacked."""
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16
"""Magic, version and compatible version of snappy-java's stream, which Java's client writes."""


class DamagedCompression(Exception):
    """The bytes cannot be unpacked. The message is one line for a person."""


def unpacked(codec: str, packed: bytes) -> bytes:
    """``codec`` as BatchHeader.compression names it. Raises DamagedCompression, and KeyError for another codec."""
    return _CODECS[codec](packed)


def knows(codec: str) -> bool:
    """Whether :func:`unpacked` takes it."""
    return codec in _CODECS


def gzipped(data: bytes) -> bytes:
    """The same bytes for the same data: without the time."""
    packing = zlib.compressobj(wbits=31)
    return packing.compress(data) + packing.flush()


def _gzip(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj(wbits=31)
    try:
        found = unpacking.decompress(packed, LARGEST_RECORDS)
    except zlib.error as error:
        raise DamagedCompression(f"its gzip data is damaged ({error})") from None
    if unpacking.unconsumed_tail:
        raise _too_large()
    return found


def _snappy(packed: bytes) -> bytes:
    """snappy-java's stream of blocks, or one block, as librdkafka may write it."""
    if not packed.startswith(_XERIAL):
        return _snappy_block(packed)
    found, at = bytearray(), _XERIAL_HEADER
    while at < len(packed):
        size = int.from_bytes(packed[at : at + 4], "big")
        block = packed[at + 4 : at + 4 + size]
        if not size or len(block) < size:
            raise DamagedCompression("its snappy data is cut short")
        found += _snappy_block(block)
        if len(found) > LARGEST_RECORDS:
            raise _too_large()
        at += 4 + size
    return bytes(found)


def _snappy_block(block: bytes) -> bytes:
    import pyarrow as pa  # noqa: PLC0415  # slow to import, and seldom needed

    size = _varint(block)
    if size > LARGEST_RECORDS:
        raise _too_large()
    try:
        return bytes(pa.decompress(block, decompressed_size=size, codec="snappy", asbytes=True))
    except (OSError, pa.ArrowException) as error:
        raise DamagedCompression(f"its snappy data is damaged ({error})") from None


def _varint(block: bytes) -> int:
    """The size before a block's data: 7 bits a byte, the lowest first."""
    value = 0
    for place, byte in enumerate(block[:5]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value
    raise DamagedCompression("its snappy data does not begin with a size")


def _streamed(codec: str) -> Callable[[bytes], bytes]:
    def unpack(packed: bytes) -> bytes:
        import pyarrow as pa  # noqa: PLC0415  # slow to import, and seldom needed

        try:
            with pa.CompressedInputStream(pa.BufferReader(packed), codec) as stream:
                found: bytes = stream.read(LARGEST_RECORDS + 1)
        except (OSError, pa.ArrowException) as error:
            raise DamagedCompression(f"its {codec} data is damaged ({error})") from None
        if len(found) > LARGEST_RECORDS:
            raise _too_large()
        return found

    return unpack


def _too_large() -> DamagedCompression:
    return DamagedCompression(f"more than {LARGEST_RECORDS:,} bytes of records")


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda packed: packed,
    "gzip": _gzip,
    "snappy": _snappy,
    "lz4": _streamed("lz4"),
    "zstd": _streamed("zstd"),
}
