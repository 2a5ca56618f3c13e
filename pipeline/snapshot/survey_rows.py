"""Surveys as rows of a snapshot and back, in batches, so that memory use does not grow with the cluster; and which
of the rows differ from the previous snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from pipeline.tables.schemas import PARTITIONS
from recovery.arrays.survey_batch import survey_batch
from recovery.compacted_logs import NOT_READ
from recovery.model import (
    EpochSpan,
    Lineage,
    PartitionState,
    Replica,
    ReplicaLog,
    Standing,
    Survey,
    TopicPartition,
    Unknown,
    Why,
)
from recovery.plan.topic_marks import MAY_BE_COMPACTED, Mark

Marks = Mapping[str, tuple[Mark, ...]]
UncleanElections = Mapping[str, bool | None]


def batch_of(
    surveys: Sequence[Survey], marks: Marks, unclean_elections: UncleanElections = MappingProxyType({})
) -> pa.RecordBatch:
    """One row per survey, in the schema :data:`pipeline.tables.schemas.PARTITIONS`; ``marks`` and
    ``unclean.leader.election.enable`` (None: not known) by topic.
    """
    batch = survey_batch(surveys)
    topics = [survey.state.topic for survey in surveys]
    more = {
        "marks": [[mark.value for mark in marks.get(topic, ())] for topic in topics],
        "unclean_elections": [unclean_elections.get(topic) for topic in topics],
        "deleted": [False] * len(surveys),
    }
    arrays = [
        pa.array(more[field.name], field.type) if field.name in more else batch[field.name]
        for field in PARTITIONS
    ]
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


_MOVING = ("leader_epoch", "log_end", "log_start", "high_watermark", "size", "spans", "last_epoch", "floor")
"""What of a replica's log moves on while its partition is written to."""


def compared(row: Mapping[str, Any]) -> Any:
    """What makes a row of a snapshot another than before. While a partition has a leader, it is no change that its
    log moves on: what the choice of a leader needs is written when the partition has none.
    """
    if row["leader"] is None or row["leader"] < 0:
        return row
    replicas = [
        {name: value for name, value in replica.items() if name not in _MOVING}
        for replica in row["replicas"] or ()
    ]
    return {**row, "replicas": replicas}


class Fingerprints:
    """Sixteen bytes for each partition: all that is kept of the previous snapshot."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], bytes] = {}
        self._current: dict[tuple[str, int], bytes] = {}

    def changed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are new or changed."""
        prints = [blake2b(repr(compared(row)).encode(), digest_size=16).digest() for row in batch.to_pylist()]
        names = keys(batch)
        self._current.update(zip(names, prints, strict=True))
        other = [self._known.get(name) != print_ for name, print_ in zip(names, prints, strict=True)]
        return batch.filter(pa.array(other, pa.bool_()))

    def gone(self) -> pa.RecordBatch:
        """Tombstones for the partitions of the previous snapshot that are not in this one."""
        missing = sorted(self._known.keys() - self._current.keys())
        return tombstones([TopicPartition(*name) for name in missing])

    def commit(self) -> None:
        """Makes this snapshot the base of the next comparison."""
        self._known, self._current = self._current, {}


NOT_RECORDED = {"why": Why.NOT_ANSWERED.value, "detail": "not in the snapshot"}


def survey_of(row: Mapping[str, Any]) -> Survey:
    """The survey that a row of a snapshot (as a mapping of Python's values) was written from."""
    state = PartitionState(
        row["topic"],
        row["partition"],
        row["topic_id"],
        row["leader"],
        row["leader_epoch"],
        tuple(row["assignment"]),
        tuple(row["isr"]),
        _optional(row["elr"]),
        _optional(row["last_known_elr"]),
        tuple(row["offline_replicas"] or ()),
    )
    min_isr = row["min_isr"]
    if min_isr is None or row["min_isr_unknown"] is not None:
        min_isr = _unknown(row["min_isr_unknown"] or NOT_RECORDED)
    reassigning = row["reassigning"]
    if row["reassigning_unknown"] is not None:
        reassigning = _unknown(row["reassigning_unknown"])
    acting = row["acting_leaders"] or ()
    replicas = tuple(_replica(one, leads=one["broker"] in acting or None) for one in row["replicas"])
    compacted = None if marks_of(row).isdisjoint(MAY_BE_COMPACTED) else NOT_READ
    return Survey(state, replicas, min_isr, reassigning, compacted)


def marks_of(row: Mapping[str, Any]) -> frozenset[Mark]:
    """What the snapshot says of the topic's configuration."""
    return frozenset(Mark(mark) for mark in row["marks"] or ())


def _optional(values: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)


def _unknown(fields: Mapping[str, str]) -> Unknown:
    return Unknown(Why(fields["why"]), fields["detail"])


def _replica(row: Mapping[str, Any], *, leads: bool | None) -> Replica:
    log: ReplicaLog | Unknown
    if row["unknown"] is not None:
        log = _unknown(row["unknown"])
    else:
        log = ReplicaLog(
            row["leader_epoch"],
            row["log_end"],
            row["log_start"],
            row["high_watermark"],
            _lineage(row),
            row.get("log_dir") or "",
            row["size"],
            leads,
        )
    return Replica(row["broker"], Standing(row["standing"]), log)


def _lineage(row: Mapping[str, Any]) -> Lineage | Unknown:
    if row["lineage_unknown"] is not None:
        return _unknown(row["lineage_unknown"])
    spans = tuple(EpochSpan(span["epoch"], span["start"], span["end"]) for span in row["spans"])
    return Lineage(row["last_epoch"], spans, row["floor"])
