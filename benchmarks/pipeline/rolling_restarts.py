"""A metadata log of broker restarts: leaders move, ISRs shrink and grow, topics without replication go offline."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from struct import Struct

from backends.metadata_log.batch_writer import data_batch
from backends.simulator.partition_table import topic_id
from recovery.controller.registration import PartitionChange, Registration
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)

TOPICS, PARTITIONS, BROKERS = 2_000, 10, 30
UNREPLICATED = 10
"""One topic of so many has one replica."""
_FENCING, _RETURNING = 500, 50
"""Records of a batch: the controller writes a fencing in large ones, brokers report an ISR in smaller ones."""
_SUBJECT = Struct(">i16s")
_SUBJECT_AT, _CHANGE_AT = 3, 23


class RestartedCluster:
    """The partitions of one cluster, and their changes as records."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)  # noqa: S311  # a benchmark
        self.topics = [(f"topic-{number}", topic_id(f"topic-{seed}-{number}")) for number in range(TOPICS)]
        self.replicas = {
            (number, partition): tuple(rng.sample(range(BROKERS), 3 if number % UNREPLICATED else 1))
            for number in range(TOPICS)
            for partition in range(PARTITIONS)
        }
        self._hosted: dict[int, list[tuple[int, int]]] = {broker: [] for broker in range(BROKERS)}
        for place, replicas in self.replicas.items():
            for broker in replicas:
                self._hosted[broker].append(place)
        self._leaders = {place: replicas[0] for place, replicas in self.replicas.items()}

    def created(self) -> Iterator[bytes]:
        for number, (name, identity) in enumerate(self.topics):
            yield encode(TopicRecord(name, identity))
            for partition in range(PARTITIONS):
                replicas = self.replicas[number, partition]
                yield encode(
                    PartitionRecord(identity, partition, Registration(replicas, replicas, replicas[0]))
                )

    def fenced(self, broker: int) -> Iterator[bytes]:
        for place in self._hosted[broker]:
            left = tuple(other for other in self.replicas[place] if other != broker)
            leader = None
            if self._leaders[place] == broker:
                leader = self._leaders[place] = left[0] if left else -1
            change = PartitionChange(leader=leader, isr=left, elr=() if left else (broker,))
            yield self._value(place, change)
        yield encode(BrokerRegistrationChangeRecord(broker, 1, fenced=True))

    def returned(self, broker: int) -> Iterator[bytes]:
        yield encode(BrokerRegistrationChangeRecord(broker, 1, fenced=False))
        for place in self._hosted[broker]:
            replicas, leader = self.replicas[place], None
            if self._leaders[place] == -1:
                leader = self._leaders[place] = broker
            yield self._value(
                place, PartitionChange(leader=leader, isr=replicas, elr=() if leader is not None else None)
            )

    def _value(self, place: tuple[int, int], change: PartitionChange) -> bytes:
        number, partition = place
        head, tail = _encoded(change)
        return head + _SUBJECT.pack(partition, _raw_id(self.topics[number][1])) + tail


@cache
def _encoded(change: PartitionChange) -> tuple[bytes, bytes]:
    value = encode(PartitionChangeRecord("AAAAAAAAAAAAAAAAAAAAAQ", 0, change))
    return value[:_SUBJECT_AT], value[_CHANGE_AT:]


@cache
def _raw_id(identity: str) -> bytes:
    return encode(TopicRecord("", identity))[4:20]


def write_restarts(folder: Path, records: int, seed: int) -> int:
    """One segment of at least so many records; returns its number of records. A second passes with each batch."""
    folder.mkdir(parents=True)
    cluster = RestartedCluster(seed)
    offset = 0

    def batches(values: Iterator[bytes], size: int) -> Iterator[bytes]:
        nonlocal offset
        batch: list[bytes] = []
        for value in values:
            batch.append(value)
            if len(batch) == size:
                yield data_batch(offset, 1, 1_795_000_000_000 + offset, batch)
                offset += len(batch)
                batch = []
        if batch:
            yield data_batch(offset, 1, 1_795_000_000_000 + offset, batch)
            offset += len(batch)

    with (folder / f"{0:020}.log").open("wb") as file:
        file.writelines(batches(cluster.created(), _FENCING))
        broker = 0
        while offset < records:
            file.writelines(batches(cluster.fenced(broker), _FENCING))
            file.writelines(batches(cluster.returned(broker), _RETURNING))
            broker = (broker + 1) % BROKERS
    return offset
