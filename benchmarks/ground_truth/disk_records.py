"""Every record of a replica on its disk, read without the product's code."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from aiokafka.record.memory_records import MemoryRecords

from testbed.kafka.errors import TestbedError
from testbed.kafka.log_files import read_log, replica_directory
from testbed.kafka.node import Node

_HEADER = struct.Struct(">qiibIhi")
_BEFORE_LENGTH_ENDS = 12

Place = tuple[int, int]
"""(leader epoch, offset): the same place on two disks is the same record."""

TOMBSTONE_ID = "id"
"""The header that tells one tombstone from another: it has no value."""


class DiskRecord(NamedTuple):
    """One record. ``value`` tells it from all others: its value, of a tombstone its header. ``key`` and ``value``
    are "" if there is none, as in the control records of transactions.
    """

    key: str
    value: str


@dataclass(frozen=True)
class DiskReplica:
    """``start`` is the log start offset; ``places`` has every offset from there on that a batch covers, ``records``
    those that compaction left.
    """

    start: int
    places: frozenset[Place]
    records: Mapping[Place, DiskRecord]

    @property
    def end(self) -> int:
        """The log end offset."""
        return max((offset for _, offset in self.places), default=self.start - 1) + 1

    @cached_property
    def values(self) -> frozenset[str]:
        return frozenset(record.value for record in self.records.values() if record.value)

    def newest_by_key(self) -> Mapping[str, int]:
        """The offset of the last record of every key."""
        return {record.key: offset for (_, offset), record in sorted(self.records.items(), key=_offset)}


def read_disk(node: Node, topic: str, partition: int = 0, start: int | None = None) -> DiskReplica | None:
    """The replica of one partition; None if the disk has none.

    ``start`` is the log start of a running broker, which writes it to disk later.
    """
    try:
        directory = replica_directory(node, topic, partition)
        first = read_log(node, topic, partition).start if start is None else start
        places: set[Place] = set()
        records: dict[Place, DiskRecord] = {}
        for epoch, base, end, batch in _batches(directory):
            places.update((epoch, offset) for offset in range(max(base, first), end))
            for offset, record in _records(batch):
                if offset >= first:
                    records[epoch, offset] = record
    except (TestbedError, OSError):
        return None  # there is none, or it is being moved or deleted
    return DiskReplica(first, frozenset(places), records)


def identity(value: bytes | None, headers: Iterable[tuple[str, bytes | None]]) -> str:
    """What tells a record from all others."""
    return (value if value is not None else dict(headers).get(TOMBSTONE_ID) or b"").decode()


def _batches(directory: Path) -> Iterator[tuple[int, int, int, bytes]]:
    """Epoch, first offset, the offset after the last, and the bytes of each batch."""
    for segment in sorted(directory.glob("[0-9]*.log")):
        data = segment.read_bytes()
        at = 0
        while at + _HEADER.size <= len(data):
            base, length, epoch, _magic, _crc, _attributes, last_delta = _HEADER.unpack_from(data, at)
            end = at + _BEFORE_LENGTH_ENDS + length
            if length <= 0 or end > len(data):
                break  # half a batch, which the broker drops when it starts
            yield epoch, base, base + last_delta + 1, data[at:end]
            at = end


def _records(data: bytes) -> Iterator[tuple[int, DiskRecord]]:
    batch = MemoryRecords(data).next_batch()
    if batch is None:
        return
    control = getattr(batch, "is_control_batch", False)
    for record in batch:
        if control:
            yield record.offset, DiskRecord("", "")
        else:
            key = (record.key or b"").decode()
            yield record.offset, DiskRecord(key, identity(record.value, record.headers))


def _offset(item: tuple[Place, DiskRecord]) -> int:
    return item[0][1]
