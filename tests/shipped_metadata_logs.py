"""Metadata logs as their files are shipped: written batch by batch, cut into segments, with snapshots."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

from backends.metadata_log.batch_writer import data_batch, leader_change_batch
from recovery.controller.registration import PartitionChange, Registration
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ResourceType,
    TopicRecord,
)

TOPIC_IDS = ("AAAAAAAAAAAAAAAAAAAAQQ", "AAAAAAAAAAAAAAAAAAAAQg")
BEGAN_MS = 1_795_381_000_000

LOSES_LEADER = PartitionChange(leader=-1, isr=(), elr=(1, 2), last_known_elr=(1,))
CLEAN_ELECTION = PartitionChange(leader=1, isr=(1,), elr=(), last_known_elr=())
UNCLEAN_ELECTION = PartitionChange(leader=3, isr=(3,), elr=(), last_known_elr=())
ISR_GROWS = PartitionChange(isr=(1, 2, 3))


class LogWriter:
    """Appends batches of one epoch, one second apart; ``directory`` gets its files by :meth:`write`."""

    def __init__(self, directory: Path, offset: int = 0) -> None:
        self.directory = directory
        self.offset = offset
        self._segment = offset
        self._bytes = b""
        self.written: list[tuple[int, list[MetadataRecord]]] = []
        directory.mkdir(parents=True, exist_ok=True)

    def append(self, *records: MetadataRecord) -> int:
        """One batch; returns the offset of its first record."""
        first = self.offset
        self._bytes += data_batch(first, 1, BEGAN_MS + first * 1000, [encode(record) for record in records])
        self.written.append((first, list(records)))
        self.offset += len(records)
        return first

    def roll(self) -> None:
        """The next batch begins a new segment."""
        self.write()
        self._segment, self._bytes = self.offset, b""

    def write(self, size: int | None = None) -> None:
        """The present segment, or only its first bytes."""
        data = self._bytes if size is None else self._bytes[:size]
        (self.directory / f"{self._segment:020}.log").write_bytes(data)

    @property
    def size(self) -> int:
        return len(self._bytes)

    def snapshot(self, records: Iterable[MetadataRecord], *, whole: bool = True) -> Path:
        """A snapshot of what comes before the present offset; it ends with a control batch (KIP-630)."""
        values = [encode(record) for record in records]
        at = BEGAN_MS + self.offset * 1000
        data = data_batch(0, 1, at, values)
        if whole:
            data += leader_change_batch(len(values), 1, at, 1, (1,))
        path = self.directory / f"{self.offset:020}-{1:010}.checkpoint"
        path.write_bytes(data)
        return path


def topics(*, min_isr: int = 2, partitions: int = 2) -> list[MetadataRecord]:
    """Two topics, and min.insync.replicas of the first."""
    found: list[MetadataRecord] = []
    for number, topic_id in enumerate(TOPIC_IDS):
        found.append(TopicRecord(f"t{number}", topic_id))
        for partition in range(partitions):
            found.append(PartitionRecord(topic_id, partition, Registration((1, 2, 3), (1, 2, 3), 1)))
    found.append(ConfigRecord(ResourceType.TOPIC, "t0", "min.insync.replicas", str(min_isr)))
    return found


def change(partition_change: PartitionChange, topic: int = 0, partition: int = 0) -> PartitionChangeRecord:
    return PartitionChangeRecord(TOPIC_IDS[topic], partition, partition_change)


def fenced(broker: int, *, fenced: bool = True) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(broker, 7, fenced)


def append_incidents(log: LogWriter, seed: int, batches: int) -> None:
    """Random elections, outages and fencings of the partitions of :func:`topics`."""
    rng = random.Random(seed)
    for _ in range(batches):
        kind = rng.choice((LOSES_LEADER, CLEAN_ELECTION, UNCLEAN_ELECTION, ISR_GROWS))
        which = {(rng.randrange(2), rng.randrange(2)) for _ in range(rng.randrange(1, 4))}
        records: list[MetadataRecord] = [change(kind, *place) for place in sorted(which)]
        if kind is LOSES_LEADER:
            records.append(fenced(1))
        log.append(*records)
