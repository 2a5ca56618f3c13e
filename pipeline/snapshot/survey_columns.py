"""Surveys as columns, in batches, so that memory use does not grow with the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from pipeline.tables.schemas import PARTITIONS, REPLICA, SPAN, UNKNOWN
from recovery.model import (
    Lineage,
    ReplicaLog,
    Survey,
    TopicPartition,
    Unknown,
)
from recovery.plan.topic_marks import Mark

Marks = Mapping[str, tuple[Mark, ...]]


def batch_of(surveys: Sequence[Survey], marks: Marks) -> pa.RecordBatch:
    """One row per survey, in the schema :data:`pipeline.tables.schemas.PARTITIONS`; ``marks`` by topic."""
    states = [survey.state for survey in surveys]
    replicas = _lists([len(survey.replicas) for survey in surveys], _replicas(surveys))
    columns = {
        "topic": [state.topic for state in states],
        "partition": [state.partition for state in states],
        "topic_id": [state.topic_id for state in states],
        "leader": [state.leader for state in states],
        "leader_epoch": [state.leader_epoch for state in states],
        "assignment": [state.replicas for state in states],
        "isr": [state.isr for state in states],
        "elr": [state.elr for state in states],
        "last_known_elr": [state.last_known_elr for state in states],
        "offline_replicas": [state.offline_replicas for state in states],
        "min_isr": [_known(survey.min_isr) for survey in surveys],
        "min_isr_unknown": [_why(survey.min_isr) for survey in surveys],
        "reassigning": [_known(survey.reassigning) for survey in surveys],
        "reassigning_unknown": [_why(survey.reassigning) for survey in surveys],
        "marks": [[mark.value for mark in marks.get(state.topic, ())] for state in states],
        "replicas": replicas,
        "deleted": [False] * len(states),
    }
    arrays = [_array(columns[field.name], field.type) for field in PARTITIONS]
    return pa.RecordBatch.from_arrays(arrays, schema=PARTITIONS)


def tombstones(gone: Sequence[TopicPartition]) -> pa.RecordBatch:
    """Rows for partitions that do not exist any more."""
    columns: dict[str, list[Any]] = {
        "topic": [tp.topic for tp in gone],
        "partition": [tp.partition for tp in gone],
        "deleted": [True] * len(gone),
    }
    arrays = [pa.array(columns.get(field.name, [None] * len(gone)), field.type) for field in PARTITIONS]
    return pa.RecordBatch.from_arrays(arrays, schema=PARTITIONS)


def keys(batch: pa.RecordBatch) -> list[tuple[str, int]]:
    """(topic, partition) of each row."""
    return list(zip(batch["topic"].to_pylist(), batch["partition"].to_pylist(), strict=True))


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def _lists(lengths: Iterable[int], values: pa.Array) -> pa.Array:
    offsets = [0]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def _known(value: Any) -> Any:
    return None if isinstance(value, Unknown) else value


def _why(value: Any) -> dict[str, str] | None:
    return {"why": value.why.value, "detail": value.detail} if isinstance(value, Unknown) else None


def _replicas(surveys: Sequence[Survey]) -> pa.Array:
    """All replicas of the surveys, one after the other."""
    replicas = list(chain.from_iterable(survey.replicas for survey in surveys))
    logs = [replica.log if isinstance(replica.log, ReplicaLog) else None for replica in replicas]
    lineages = [log.lineage if log and isinstance(log.lineage, Lineage) else None for log in logs]
    columns: dict[str, Any] = {
        "broker": [replica.broker for replica in replicas],
        "standing": [replica.standing.value for replica in replicas],
        "unknown": pa.array([_why(replica.log) for replica in replicas], UNKNOWN),
        "leader_epoch": [log and log.leader_epoch for log in logs],
        "log_end": [log and log.log_end_offset for log in logs],
        "log_start": [log and log.log_start_offset for log in logs],
        "high_watermark": [log and log.high_watermark for log in logs],
        "lineage_unknown": pa.array([log and _why(log.lineage) for log in logs], UNKNOWN),
        "last_epoch": [lineage and lineage.last_epoch for lineage in lineages],
        "floor": [lineage and lineage.floor for lineage in lineages],
        "spans": _spans(lineages),
        "log_dir": [log and log.log_dir for log in logs],
        "size": [log and log.size for log in logs],
    }
    arrays = [_array(columns[field.name], field.type) for field in REPLICA]
    return pa.StructArray.from_arrays(arrays, fields=list(REPLICA))


def _spans(lineages: Sequence[Lineage | None]) -> pa.Array:
    spans = [span for lineage in lineages if lineage for span in lineage.spans]
    values = pa.StructArray.from_arrays(
        [
            pa.array([span.epoch for span in spans], pa.int32()),
            pa.array([span.start for span in spans], pa.int64()),
            pa.array([span.end for span in spans], pa.int64()),
        ],
        fields=list(SPAN),
    )
    lists = _lists((len(lineage.spans) if lineage else 0 for lineage in lineages), values)
    return pa.ListArray.from_arrays(
        lists.offsets, lists.values, mask=pa.array([lineage is None for lineage in lineages], pa.bool_())
    )
