"""Surveys as columns: one row per partition with its replicas nested, in assignment order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa

from recovery.model import Lineage, ReplicaLog, Survey, Unknown

UNKNOWN = pa.struct([("why", pa.string()), ("detail", pa.string())])
"""Why the value next to it is null: :class:`recovery.model.Unknown`; null if the value is known."""

SPAN = pa.struct([("epoch", pa.int32()), ("start", pa.int64()), ("end", pa.int64())])

REPLICA = pa.struct(
    [
        ("broker", pa.int32()),
        ("standing", pa.string()),
        ("unknown", UNKNOWN),  # null: it answered
        ("leader_epoch", pa.int32()),
        ("log_end", pa.int64()),
        ("log_start", pa.int64()),
        ("high_watermark", pa.int64()),
        ("lineage_unknown", UNKNOWN),  # null: it answered, and last_epoch, spans and floor are known
        ("last_epoch", pa.int32()),
        ("floor", pa.int64()),
        ("spans", pa.list_(SPAN)),
        ("log_dir", pa.string()),
        ("size", pa.int64()),
    ]
)

BROKERS = pa.list_(pa.int32())

SURVEYS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("topic_id", pa.string()),
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("assignment", BROKERS),
        ("isr", BROKERS),
        ("elr", BROKERS),  # null: not offered by this cluster
        ("last_known_elr", BROKERS),
        ("offline_replicas", BROKERS),
        ("min_isr", pa.int32()),
        ("min_isr_unknown", UNKNOWN),
        ("reassigning", pa.bool_()),
        ("reassigning_unknown", UNKNOWN),
        ("acting_leaders", BROKERS),  # by their own state, though the controller has another; null: not asked
        ("replicas", pa.list_(REPLICA)),
    ]
)
"""A row per survey. Snapshots store it (:mod:`pipeline.tables.schemas`): no column is ever renamed."""


def survey_batch(surveys: Sequence[Survey]) -> pa.RecordBatch:
    """One row per survey, in the schema :data:`SURVEYS`. What is known of compacted logs, and when a disk was read,
    is not in it.
    """
    states = [survey.state for survey in surveys]
    min_isr = [survey.min_isr for survey in surveys]
    reassigning = [survey.reassigning for survey in surveys]
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
        "min_isr": _known(min_isr),
        "min_isr_unknown": _why(min_isr),
        "reassigning": _known(reassigning),
        "reassigning_unknown": _why(reassigning),
        "acting_leaders": [
            [r.broker for r in survey.replicas if isinstance(r.log, ReplicaLog) and r.log.leads]
            for survey in surveys
        ],
        "replicas": _lists([len(survey.replicas) for survey in surveys], _replicas(surveys)),
    }
    return pa.RecordBatch.from_arrays([_array(columns[f.name], f.type) for f in SURVEYS], schema=SURVEYS)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def _lists(lengths: Iterable[int], values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(list(accumulate(lengths, initial=0)), pa.int32()), values)


def _known(values: Sequence[Any]) -> list[Any]:
    return [None if isinstance(value, Unknown) else value for value in values]


def _why(values: Sequence[Any]) -> pa.Array:
    """Why each value is unknown; null where it is known."""
    unknown = [value if isinstance(value, Unknown) else None for value in values]
    if not any(unknown):
        return pa.nulls(len(unknown), UNKNOWN)
    columns = ([value and value[at] for value in unknown] for at in range(len(Unknown._fields)))
    arrays = [pa.array(column, pa.string()) for column in columns]
    return pa.StructArray.from_arrays(
        arrays, fields=list(UNKNOWN), mask=pa.array([value is None for value in unknown])
    )


def _replicas(surveys: Sequence[Survey]) -> pa.Array:
    """All replicas of the surveys, one after the other."""
    replicas = list(chain.from_iterable(survey.replicas for survey in surveys))
    logs = [replica.log if isinstance(replica.log, ReplicaLog) else None for replica in replicas]
    lineages = [log.lineage if log and isinstance(log.lineage, Lineage) else None for log in logs]
    columns: dict[str, Any] = {
        "broker": [replica.broker for replica in replicas],
        "standing": [replica.standing for replica in replicas],
        "unknown": _why([replica.log for replica in replicas]),
        "leader_epoch": [log and log.leader_epoch for log in logs],
        "log_end": [log and log.log_end_offset for log in logs],
        "log_start": [log and log.log_start_offset for log in logs],
        "high_watermark": [log and log.high_watermark for log in logs],
        "lineage_unknown": _why([log and log.lineage for log in logs]),
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
