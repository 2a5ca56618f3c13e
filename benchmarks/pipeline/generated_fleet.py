"""Generated snapshots of millions of partitions, made by numpy and Arrow one row group at a time."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from pipeline.snapshot.observation import Observation
from pipeline.snapshot.snapshot_writer import SnapshotWriter, new_name
from pipeline.storage import StoragePath
from pipeline.tables.schemas import BROKER, PARTITIONS, REPLICA, SPAN, UNKNOWN

ROWS = 100_000
"""The rows of a row group, which one task reads."""

BROKERS = 300
RACKS = 5
DIVERGED = 0.05
SILENT = 0.1
TOPIC = 1000

_NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
Array = np.ndarray


def rack_of(broker: int) -> str:
    """The racks take turns."""
    return f"rack-{broker % RACKS}"


def make(root: StoragePath, cluster_id: str, partitions: int, *, online: bool = False) -> Observation:
    """A cluster with every partition offline, or all ``online`` with every replica in sync: one in twenty has
    diverged logs, one in ten a replica that did not answer, the others have equal logs.
    """
    random = np.random.default_rng(partitions)
    with SnapshotWriter(root, new_name(cluster_id, _NOON, "bench")) as writer:
        for start in range(0, partitions, ROWS):
            writer.partitions(batch(random, start, min(ROWS, partitions - start), online=online))
        empty = dict.fromkeys(field.name for field in BROKER)
        writer.brokers = [empty | {"id": number, "rack": rack_of(number)} for number in range(BROKERS)]
        return writer.commit(_NOON, "0.1.0")


def batch(random: np.random.Generator, first: int, count: int, *, online: bool = False) -> pa.RecordBatch:
    """``count`` partitions from number ``first`` on, in topics of a thousand."""
    numbers = np.arange(first, first + count)
    leader = random.integers(0, BROKERS, count)
    brokers = np.stack([(leader + step) % BROKERS for step in range(3)], axis=1).astype(np.int32)
    empty = _lists(pa.array([], pa.int32()), np.zeros(count + 1, np.int32))
    assignment = _lists(pa.array(brokers.reshape(-1)), np.arange(count + 1, dtype=np.int32) * 3)
    nothing = np.ones(count, bool)
    columns = {
        "topic": pa.DictionaryArray.from_arrays(
            pa.array(numbers // TOPIC - numbers[0] // TOPIC, pa.int32()),
            pa.array([f"topic-{n:06d}" for n in range(numbers[0] // TOPIC, numbers[-1] // TOPIC + 1)]),
        ).cast(pa.string()),
        "partition": pa.array((numbers % TOPIC).astype(np.int32)),
        "topic_id": pa.array(["AAAAAAAAAAAAAAAAAAAAAA"] * count),
        "leader": pa.array(brokers[:, 0] if online else np.full(count, -1, np.int32)),
        "leader_epoch": pa.array(np.full(count, 7, np.int32)),
        "assignment": assignment,
        "isr": assignment if online else empty,
        "elr": empty,
        "last_known_elr": empty,
        "offline_replicas": empty,
        "min_isr": pa.array(np.full(count, 2, np.int32)),
        "min_isr_unknown": pa.nulls(count, UNKNOWN),
        "reassigning": pa.array(~nothing),
        "reassigning_unknown": pa.nulls(count, UNKNOWN),
        "marks": _lists(pa.array([], pa.string()), np.zeros(count + 1, np.int32)),
        "replicas": _lists(_replicas(random, brokers), np.arange(count + 1, dtype=np.int32) * 3),
        "deleted": pa.array(~nothing),
    }
    return pa.RecordBatch.from_arrays([columns[field.name] for field in PARTITIONS], schema=PARTITIONS)


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
