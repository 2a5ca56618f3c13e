"""A collector's snapshots over time, with all that may go wrong on the way."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from pipeline.snapshot.observation import Observation, SnapshotKind
from pipeline.snapshot.snapshot_writer import SnapshotWriter, append_snapshots, failed_snapshot, new_name
from pipeline.snapshot.survey_rows import batch_of, tombstones
from pipeline.storage import StoragePath
from recovery.model import Survey, TopicPartition, Unknown, Why
from tests.pipeline.partition_histories import broker_row, minute_of, partition, quorum_row


class RandomHistory:
    """A collector's snapshots of four partitions, with all that may go wrong on the way."""

    def __init__(self, lake: StoragePath, cluster_id: str, chance: random.Random) -> None:
        self._lake = lake
        self._cluster_id = cluster_id
        self._chance = chance
        self._series = chance.choice(["", "s"])
        # Some clusters have no permission to see min ISR: there it is unknown of many partitions.
        self._unknown_min_isr = chance.choice([0.0, 0.0, 0.4])
        # As if each partition were a topic of its own, which is sometimes deleted and made again.
        self._making = random.Random(cluster_id)
        self._topic_ids = [0] * 4

    def writings(self) -> list[Callable[[], Any]]:
        """In the order in which they reach the tables: some too late, some never."""
        minute = 0.0
        base = previous = ""
        found: list[Callable[[], Any]] = []
        late: list[Callable[[], Any]] = []
        for number in range(self._chance.randrange(3, 12)):
            minute += self._chance.choice([1, 1, 1, 1, 1, 10])
            if self._chance.random() < 0.1:
                name = new_name(self._cluster_id, minute_of(minute), "f")
                found.append(partial(self._fail, name, minute_of(minute)))
                continue
            name = new_name(self._cluster_id, minute_of(minute), "t")
            kind = SnapshotKind.FULL if number == 0 or self._chance.random() < 0.25 else SnapshotKind.CHANGES
            base, previous = (
                (name.snapshot, "") if kind is SnapshotKind.FULL else (base or name.snapshot, previous)
            )
            write = self._snapshot(minute, kind, base, previous)
            previous = name.snapshot
            what = self._chance.random()
            # The first one stays: a history needs a full snapshot.
            if number and what < 0.06:
                late.append(write)
            elif not number or what > 0.1:
                found.append(write)
        for write in late:
            found.insert(self._chance.randrange(len(found) // 2, len(found) + 1), write)
        return found

    def _fail(self, name: Any, at: datetime) -> None:
        append_snapshots(self._lake, [failed_snapshot(name, at, "no broker answers", series=self._series)])

    def _snapshot(
        self, minute: float, kind: SnapshotKind, base: str, previous: str
    ) -> Callable[[], Observation]:
        at = minute_of(minute)
        # A full snapshot may not show one, and changes show few.
        share = 0.9 if kind is SnapshotKind.FULL else 0.4
        shown = [n for n in range(4) if self._chance.random() < share]
        rows = [self._state(n) for n in shown]
        gone = []
        if kind is SnapshotKind.CHANGES:
            gone = [n for n in range(4) if n not in shown and self._chance.random() < 0.1]
        if rows and self._chance.random() < 0.08:
            rows.append(rows[0])
        brokers = [
            broker_row(n, fenced=self._chance.random() < 0.3) for n in (1, 2) if self._chance.random() < 0.8
        ]
        quorum = quorum_row(self._chance.choice([100, 101])) if self._chance.random() < 0.8 else None

        def write() -> Observation:
            with SnapshotWriter(self._lake, new_name(self._cluster_id, at, "t")) as writer:
                writer.partitions(batch_of(rows, {}))
                if gone:
                    writer.partitions(tombstones([TopicPartition("orders", n) for n in gone]))
                writer.brokers, writer.quorum = brokers, quorum
                return writer.commit(
                    at, "0.1.0", kind=kind, base=base, previous=previous, series=self._series
                )

        return write

    def _state(self, number: int) -> Survey:
        elr = self._chance.choice([(), (2,)])
        isr, leader = self._chance.choice([((1, 2, 3), 1), ((1, 2, 3), 1), ((1,), 1), ((), -1), ((2,), 2)])
        self._topic_ids[number] += self._making.random() < 0.15
        found = partition(number, leader=leader, isr=isr, elr=elr)
        found = found._replace(state=found.state._replace(topic_id=f"id{self._topic_ids[number]}"))
        if self._chance.random() < self._unknown_min_isr:
            found = found._replace(min_isr=Unknown(Why.NOT_ANSWERED, "refused"))
        return found
