"""The shard of each topic: a cluster's topics are folded in several parts, side by side."""

from __future__ import annotations

from functools import lru_cache

SHARDS = 8
"""Another number, or another rule, needs a new checkpoint: each shard has its own state."""

_SEED = 42
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_MASK = 2**64 - 1


@lru_cache(maxsize=1_000_000)
def shard_of(topic_id: str) -> int:
    """The shard of a topic, as Spark's ``pmod(xxhash64(topic_id), SHARDS)``."""
    return _xxhash64(topic_id.encode()) % SHARDS


def _xxhash64(data: bytes) -> int:
    """XXH64 of fewer than 32 bytes, with Spark's seed."""
    found, at = (_SEED + _P5 + len(data)) & _MASK, 0
    while at + 8 <= len(data):
        lane = int.from_bytes(data[at : at + 8], "little")
        found ^= (_rotated(lane * _P2 & _MASK, 31) * _P1) & _MASK
        found = (_rotated(found, 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= len(data):
        found ^= (int.from_bytes(data[at : at + 4], "little") * _P1) & _MASK
        found = (_rotated(found, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        found ^= (byte * _P5) & _MASK
        found = (_rotated(found, 11) * _P1) & _MASK
    found = ((found ^ found >> 33) * _P2) & _MASK
    found = ((found ^ found >> 29) * _P3) & _MASK
    return found ^ found >> 32


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK
