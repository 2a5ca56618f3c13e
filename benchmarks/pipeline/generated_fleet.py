"""Generated snapshots of millions of partitions, made by numpy and Arrow one row group at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.snapshot.catalog import RecordedKeys
from pipeline.snapshot.observation import Observation, SnapshotKind, snapshot_name, table_of, to_row
from pipeline.snapshot.snapshot_writer import SnapshotWriter, append_snapshots, new_name
from pipeline.snapshot.upkeep import merge_recent
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import append
from pipeline.tables.schemas import BROKER, OBSERVATIONS, PARTITION_STATES, PARTITIONS
from recovery.arrays.survey_batch import REPLICA, SPAN, UNKNOWN

ROWS = 100_000
"""The rows of a row group, which one task reads."""

BROKERS = 300
RACKS = 5
CROWDED = 6
DIVERGED = 0.05
SILENT = 0.1
TOPIC = 1000

_NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)
_VERSION = "0.1.0"
Array = np.ndarray


def rack_of(broker: int) -> str:
    """The racks take turns."""
    return f"rack-{broker % RACKS}"


def crowded_rack_of(broker: int) -> str:
    """As :func:`rack_of`, but the first brokers are in one rack, so that it has two or three replicas of one
    partition in fifty.
    """
    return rack_of(0) if broker < CROWDED else rack_of(broker)


class GeneratedSeries:
    """The snapshots of one cluster, a minute apart. Of the partitions of a full one the share ``offline`` has no
    leader; the others have every replica in sync. One in twenty has diverged logs, one in ten a replica that did
    not answer, the others have equal logs.
    """

    def __init__(
        self,
        root: StoragePath,
        cluster_id: str,
        partitions: int,
        offline: float,
        rack: Callable[[int], str] = rack_of,
    ) -> None:
        self._root = root
        self._rack = rack
        self._cluster_id = cluster_id
        self._partitions = partitions
        self._offline = offline
        self._random = np.random.default_rng(partitions)
        self._taken = 0
        self._base = self._previous = ""

    def full(self) -> None:
        """A snapshot with every partition."""
        with self._writer() as writer:
            for start in range(0, self._partitions, ROWS):
                numbers = np.arange(start, min(start + ROWS, self._partitions))
                offline = self._random.random(len(numbers)) < self._offline
                writer.partitions(batch(self._random, numbers, np.where(offline, OFFLINE, ALL_IN_SYNC)))
            self._written(writer.commit(self._now, _VERSION, series="bench"))

    def changes(self, rows: int, states: tuple[int, ...]) -> None:
        """A snapshot in which so many partitions have changed, to one of the ``states``."""
        numbers = np.sort(self._random.choice(self._partitions, rows, replace=False))
        with self._writer() as writer:
            writer.partitions(batch(self._random, numbers, self._random.choice(states, rows)))
            taken = writer.commit(
                self._now,
                _VERSION,
                kind=SnapshotKind.CHANGES,
                base=self._base,
                partitions=self._partitions,
                offline=0,
                series="bench",
                previous=self._previous,
            )
            self._written(taken)

    @property
    def _now(self) -> datetime:
        return _NOON + self._taken * _MINUTE

    def _writer(self) -> SnapshotWriter:
        writer = SnapshotWriter(self._root, new_name(self._cluster_id, self._now, "bench"))
        empty = dict.fromkeys(field.name for field in BROKER)
        writer.brokers = [empty | {"id": number, "rack": self._rack(number)} for number in range(BROKERS)]
        return writer

    def _written(self, observation: Observation) -> None:
        self._base, self._previous = observation.base, observation.snapshot
        self._taken += 1


def make_small_clusters(root: StoragePath, clusters: int, partitions: int) -> None:
    """So many clusters, each with a full snapshot of so many partitions, of which the first is offline: in one
    commit, as one collector writes them.
    """
    random = np.random.default_rng(clusters)
    numbers = np.arange(partitions)
    states = np.where(numbers == 0, OFFLINE, ALL_IN_SYNC)
    name = snapshot_name(_NOON, "bench")

    def rows() -> Iterator[pa.RecordBatch]:
        for cluster in range(clusters):
            keys = (f"cluster-{cluster:05d}", _NOON.date(), name, name, SnapshotKind.FULL.value, _NOON)
            fields = list(PARTITION_STATES.schema)[: len(keys)]
            columns = [
                pa.repeat(pa.scalar(value, field.type), partitions)
                for value, field in zip(keys, fields, strict=True)
            ]
            states_of = batch(random, numbers, states)
            yield pa.RecordBatch.from_arrays([*columns, *states_of.columns], schema=PARTITION_STATES.schema)

    append(root, PARTITION_STATES, lambda: pa.RecordBatchReader.from_batches(PARTITION_STATES.schema, rows()))
    taken = (
        Observation(
            name,
            f"cluster-{n:05d}",
            SnapshotKind.FULL,
            _NOON,
            _NOON,
            name,
            partitions,
            1,
            partitions,
            _VERSION,
        )
        for n in range(clusters)
    )
    observations = table_of([to_row(one) for one in taken])
    append(root, OBSERVATIONS, lambda: observations)


class CollectorHour(NamedTuple):
    """What an hour of a collector cost: CPU ``seconds`` in all, files of the tables and their ``bytes`` when it
    ended (those that are merged stay for a day).
    """

    seconds: float
    files: int
    bytes: int


def collect(root: StoragePath, clusters: int, partitions: int, hours: int) -> list[CollectorHour]:
    """What a collector of so many clusters writes at 60 s, without asking any of them: each hour a full snapshot,
    then changes; each minute one cluster in fifty has two changed partitions, the others have none.
    """
    random = np.random.default_rng(clusters)
    rows = batch(random, np.arange(partitions), np.full(partitions, ALL_IN_SYNC))
    brokers = [dict.fromkeys(field.name for field in BROKER) | {"id": number} for number in range(6)]
    keys: RecordedKeys | None = None
    last: dict[str, tuple[Observation, Observation]] = {}
    found: list[CollectorHour] = []
    for hour in range(hours):
        began = time.process_time()
        for minute in range(60):
            keys, whole = RecordedKeys.listed(root, keys), minute == 0
            taken = []
            for number in range(clusters):
                name = f"cluster-{number:05d}"
                at = _NOON + (60 * hour + minute) * _MINUTE + timedelta(milliseconds=number)
                assert keys.newest_moment(name, at) is None and (whole or keys.has(last[name][0]))
                writer = SnapshotWriter(root, new_name(name, at, "bench"))
                writer.brokers = brokers
                if whole or random.random() < CHANGING:
                    writer.partitions(rows if whole else rows.slice(0, 2))
                links: dict[str, Any] = (
                    {} if whole else {"base": last[name][0].snapshot, "previous": last[name][1].snapshot}
                )
                kind = SnapshotKind.FULL if whole else SnapshotKind.CHANGES
                taken.append(
                    writer.finish(at, _VERSION, kind=kind, series="s", partitions=partitions, **links)
                )
                mine = taken[-1].observation
                last[name] = (mine if whole else last[name][0], mine)
            if whole and hour:
                merge_recent(root)
            append_snapshots(root, taken)
        spent = time.process_time() - began
        files = [size for place, size in root.walk_sizes() if place.name.endswith(".parquet")]
        found.append(CollectorHour(spent, len(files), sum(files)))
    return found


CHANGING = 0.02

ALL_IN_SYNC, OFFLINE, ONE_IN_SYNC, ONE_IN_SYNC_ONE_ELIGIBLE = range(4)
"""The states of a generated partition; min ISR is 2."""

_IN_ISR = np.array([[1, 1, 1], [0, 0, 0], [1, 0, 0], [1, 0, 0]], bool)
_IN_ELR = np.array([[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 1, 0]], bool)


def batch(random: np.random.Generator, numbers: Array, states: Array) -> pa.RecordBatch:
    """The partitions with these numbers, in topics of a thousand, each in its state."""
    count = len(numbers)
    leader = random.integers(0, BROKERS, count)
    brokers = np.stack([(leader + step) % BROKERS for step in range(3)], axis=1).astype(np.int32)
    empty = _lists(pa.array([], pa.int32()), np.zeros(count + 1, np.int32))
    assignment = _lists(pa.array(brokers.reshape(-1)), np.arange(count + 1, dtype=np.int32) * 3)
    nothing = np.ones(count, bool)
    topics, topic_of = np.unique(numbers // TOPIC, return_inverse=True)
    columns = {
        "topic": pa.DictionaryArray.from_arrays(
            pa.array(topic_of.astype(np.int32)), pa.array([f"topic-{n:06d}" for n in topics])
        ).cast(pa.string()),
        "partition": pa.array((numbers % TOPIC).astype(np.int32)),
        "topic_id": pa.array(["AAAAAAAAAAAAAAAAAAAAAA"] * count),
        "leader": pa.array(np.where(states == OFFLINE, np.int32(-1), brokers[:, 0])),
        "leader_epoch": pa.array(np.full(count, 7, np.int32)),
        "assignment": assignment,
        "isr": _chosen(brokers, _IN_ISR[states]),
        "elr": _chosen(brokers, _IN_ELR[states]),
        "last_known_elr": empty,
        "offline_replicas": empty,
        "min_isr": pa.array(np.full(count, 2, np.int32)),
        "min_isr_unknown": pa.nulls(count, UNKNOWN),
        "reassigning": pa.array(~nothing),
        "reassigning_unknown": pa.nulls(count, UNKNOWN),
        "acting_leaders": empty,
        "marks": _lists(pa.array([], pa.string()), np.zeros(count + 1, np.int32)),
        "unclean_elections": pa.array(~nothing),
        "replicas": _lists(_replicas(random, brokers), np.arange(count + 1, dtype=np.int32) * 3),
        "deleted": pa.array(~nothing),
    }
    return pa.RecordBatch.from_arrays([columns[field.name] for field in PARTITIONS], schema=PARTITIONS)


def _chosen(brokers: Array, members: Array) -> pa.Array:
    """Of each partition's brokers those that are members."""
    ends = np.concatenate([[0], np.cumsum(members.sum(axis=1))]).astype(np.int32)
    return _lists(pa.array(brokers[members]), ends)


def _replicas(random: np.random.Generator, brokers: Array) -> pa.Array:
    count = len(brokers)
    total = count * 3
    diverged = np.repeat(random.random(count) < DIVERGED, 3)
    silent = (np.repeat(random.random(count) < SILENT, 3)) & (np.tile(np.arange(3), count) == 2)
    shared = np.repeat(random.integers(1_000, 1_000_000, count), 3)
    tail = np.where(diverged, random.integers(1, 500, total), 0)
    # A diverged replica wrote its tail in its own epoch.
    epoch = np.where(diverged, 5 + np.tile(np.arange(3), count), 5)
    end = shared + tail
    lengths = np.where(silent, 0, 1 + (tail > 0))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    first = offsets[:-1][~silent]
    size = int(offsets[-1])
    spans = {name: np.zeros(size, np.int64) for name in ("epoch", "start", "end")}
    spans["epoch"][first], spans["end"][first] = 4, shared[~silent]
    long = (~silent) & (tail > 0)
    second = offsets[:-1][long] + 1
    spans["epoch"][second], spans["start"][second], spans["end"][second] = (
        epoch[long],
        shared[long],
        end[long],
    )
    span_array = pa.StructArray.from_arrays(
        [pa.array(spans["epoch"].astype(np.int32)), pa.array(spans["start"]), pa.array(spans["end"])],
        fields=list(SPAN),
    )
    why = pa.StructArray.from_arrays(
        [pa.array(np.full(total, "not answered")), pa.array(np.full(total, "connection refused"))],
        fields=list(UNKNOWN),
        mask=pa.array(~silent),
    )
    last = np.where(tail > 0, epoch, 4).astype(np.int32)
    standing = np.where(silent, "fenced", "electable")
    columns = {
        "broker": pa.array(brokers.reshape(-1)),
        "standing": pa.array(standing),
        "unknown": why,
        "leader_epoch": pa.array(np.full(total, 7, np.int32), mask=silent),
        "log_end": pa.array(end, mask=silent),
        "log_start": pa.array(np.zeros(total, np.int64), mask=silent),
        "high_watermark": pa.array(shared, mask=silent),
        "lineage_unknown": pa.nulls(total, UNKNOWN),
        "last_epoch": pa.array(last, mask=silent),
        "floor": pa.array(np.zeros(total, np.int64), mask=silent),
        "spans": pa.ListArray.from_arrays(pa.array(offsets), span_array, mask=pa.array(silent)),
        "log_dir": pa.array(np.full(total, "/kafka/0")),
        "size": pa.array(end * 100, mask=silent),
    }
    return pa.StructArray.from_arrays([columns[field.name] for field in REPLICA], fields=list(REPLICA))


def _lists(values: pa.Array, offsets: Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets), values)
