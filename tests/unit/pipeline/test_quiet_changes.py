"""Folding most partitions as columns gives what folding every record gives."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from pipeline.watch import quiet_changes
from pipeline.watch.fold_records import fold_records
from pipeline.watch.fold_state import dump_state, load_state
from pipeline.watch.log_part import RECORDS
from recovery.controller.registration import LeaderRecoveryState, PartitionChange, Registration
from recovery.metadata_log.incident_fold import FoldState, IncidentFold
from recovery.metadata_log.log_changes import IN_SNAPSHOT, MetadataLogRecord
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RecordType,
    RemoveTopicRecord,
    ResourceType,
    TopicRecord,
    TransactionRecord,
)

BROKERS = range(1, 6)
TOPIC_IDS = tuple(f"AAAAAAAAAAAAAAAAAAAA{letter}g" for letter in "QRSTUV")
PARTITIONS = 6
DIRECTORIES = ("AAAAAAAAAAAAAAAAAAAAZw", "AAAAAAAAAAAAAAAAAAAAaw", "AAAAAAAAAAAAAAAAAAAAbw")
NO_OP = bytes((1, RecordType.NO_OP, 0, 0))
Batch = list[MetadataLogRecord]


class RandomLog:
    """Batches of records, most of them changes that are no incident."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.offset = 0
        self.older = float(self.rng.choice((0, 0, 1, 0.01)))
        """How many of the changes have the version before the newest."""

    def batch(self) -> Batch:
        kind = self.rng.choices(
            ("changes", "created", "deleted", "elr", "broker", "config", "transaction", "damaged", "nothing"),
            (40, 2, 1, 1, 4, 1, 0.3, 1, 2),
        )[0]
        return self.records(list(getattr(self, f"_{kind}")()))

    def records(self, values: list[MetadataRecord | bytes]) -> Batch:
        first = self.offset
        self.offset += len(values)
        return [
            MetadataLogRecord(
                first + at, first * 10, first, value if isinstance(value, bytes) else self._encoded(value)
            )
            for at, value in enumerate(values)
        ]

    def _encoded(self, record: MetadataRecord) -> bytes:
        value = bytearray(encode(record))
        if isinstance(record, PartitionChangeRecord) and self.rng.random() < self.older:
            value[2] -= 1
        return bytes(value)

    def created(self) -> Iterator[MetadataRecord]:
        for number, topic_id in enumerate(TOPIC_IDS):
            yield TopicRecord(f"t{number}", topic_id)
            for partition in range(PARTITIONS):
                yield PartitionRecord(topic_id, partition, self._registration())

    def _registration(self) -> Registration:
        replicas = tuple(self.rng.sample(BROKERS, 3))
        isr = tuple(self.rng.sample(replicas, self.rng.randint(1, 3)))
        if self.rng.random() < 0.05:
            return Registration(replicas, (), -1, elr=isr)
        return Registration(replicas, isr, isr[0])

    def _changes(self) -> Iterator[MetadataRecord]:
        for _ in range(self.rng.randint(1, 30)):
            yield self._changed(self._change())

    def _changed(self, change: PartitionChange) -> PartitionChangeRecord:
        # Of one topic in ten and of one partition nothing is known.
        topic_id = self.rng.choice((*TOPIC_IDS, "AAAAAAAAAAAAAAAAAAAAWg"))
        return PartitionChangeRecord(topic_id, self.rng.randrange(PARTITIONS + 1), change)

    def _change(self) -> PartitionChange:
        rng = self.rng
        some = [tuple(rng.sample(BROKERS, rng.randint(0, 3))) for _ in range(6)]
        return rng.choices(
            (
                PartitionChange(isr=some[0]),
                PartitionChange(leader=rng.choice(BROKERS), isr=some[0] or None),
                PartitionChange(elr=some[0], last_known_elr=some[1]),
                PartitionChange(isr=some[0], elr=some[1]),
                PartitionChange(leader=-1, isr=(), elr=some[0]),
                PartitionChange(
                    leader=rng.choice(BROKERS), leader_recovery_state=LeaderRecoveryState.RECOVERING
                ),
                PartitionChange(leader_recovery_state=LeaderRecoveryState.RECOVERED),
                PartitionChange(replicas=some[2] or None, adding=some[3], removing=some[4]),
                PartitionChange(directories=DIRECTORIES),
                PartitionChange(),
                PartitionChange(isr=tuple(range(1, rng.choice((13, 17, 41))))),
            ),
            (20, 6, 4, 4, 0.5, 0.3, 1, 2, 1, 1, 0.5),
        )[0]

    def _created(self) -> Iterator[MetadataRecord]:
        yield PartitionRecord(self.rng.choice(TOPIC_IDS), self.rng.randrange(9), self._registration())
        yield from self._changes()

    def _deleted(self) -> Iterator[MetadataRecord]:
        topic_id = self.rng.choice(TOPIC_IDS)
        yield from self._changes()
        yield RemoveTopicRecord(topic_id)
        yield from self._changes()
        if self.rng.random() < 0.8:
            yield TopicRecord("again", topic_id)
            for partition in range(PARTITIONS):
                yield PartitionRecord(topic_id, partition, self._registration())

    def _elr(self) -> Iterator[MetadataRecord]:
        yield from self._changes()
        yield ClearElrRecord(self.rng.choice(("", "t1")))
        yield from self._changes()

    def _broker(self) -> Iterator[MetadataRecord]:
        if self.rng.random() < 0.5:
            yield self._changed(PartitionChange(leader=-1, isr=(), elr=(1,)))
        yield from self._changes()
        yield BrokerRegistrationChangeRecord(self.rng.choice(BROKERS), 7, fenced=self.rng.random() < 0.5)

    def _config(self) -> Iterator[MetadataRecord]:
        yield ConfigRecord(ResourceType.TOPIC, "t0", "min.insync.replicas", str(self.rng.randint(1, 3)))

    def _transaction(self) -> Iterator[MetadataRecord]:
        yield TransactionRecord(RecordType.BEGIN_TRANSACTION)
        yield from self._changes()
        if self.rng.random() < 0.9:
            ends = (RecordType.END_TRANSACTION, RecordType.ABORT_TRANSACTION)
            yield TransactionRecord(self.rng.choice(ends))

    def _damaged(self) -> Iterator[MetadataRecord | bytes]:
        yield from self._changes()
        whole = encode(self._changed(self._change()))
        yield whole[: self.rng.randrange(1, len(whole))]
        yield whole + b"\0"

    def _nothing(self) -> Iterator[bytes]:
        yield NO_OP


def as_columns(records: list[Any]) -> pa.Table:
    return pa.table([list(column) for column in zip(*records, strict=True)], schema=RECORDS)


@pytest.fixture(params=[(1, 7), (1, 1000)], ids=str)
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    fewest, most = request.param
    monkeypatch.setattr(quiet_changes, "FEWEST", fewest)
    monkeypatch.setattr(quiet_changes, "MOST", most)


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("seed", range(6))
def test_a_log_as_columns_has_the_incidents_of_every_record(seed: int) -> None:
    log = RandomLog(seed)
    parts = [[*log.records(list(log.created()))]]
    while len(parts) < 8:
        parts.append([record for _ in range(log.rng.randint(1, 12)) for record in log.batch()])
    one_by_one = as_one = dump_state(FoldState())
    quiet = 0
    for part in parts:
        expected, found = IncidentFold(load_state(one_by_one)), IncidentFold(load_state(as_one))
        expected.extend(part)
        fold_records(found, as_columns(part))
        assert found.moments == expected.moments
        assert found.ended == expected.ended
        one_by_one, as_one = dump_state(expected.state), dump_state(found.state)
        assert load_state(as_one) == load_state(one_by_one)
        quiet += len(part) - len(expected.moments)
    assert quiet > 50


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("seed", range(2))
def test_a_log_that_begins_again_has_the_incidents_of_every_record(seed: int) -> None:
    log = RandomLog(seed)
    snapshot = [record._replace(batch=IN_SNAPSHOT) for record in log.records(list(log.created()))]
    expected, found = IncidentFold(FoldState()), IncidentFold(FoldState())
    for goes_on in (log.offset, log.offset + 40):
        log.offset = goes_on - 20
        part = [record for _ in range(10) for record in log.batch()]
        expected.restart(snapshot, goes_on)
        expected.extend(part)
        fold_records(found, as_columns([(goes_on, 5, IN_SNAPSHOT, None), *snapshot, *part]))
    assert found.gaps and found.moments
    assert (found.moments, found.ended, found.gaps) == (expected.moments, expected.ended, expected.gaps)
    assert load_state(dump_state(found.state)) == load_state(dump_state(expected.state))
