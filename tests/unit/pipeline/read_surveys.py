"""Rows of a snapshot read back into the surveys that they were written from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recovery.model import (
    EpochSpan,
    Lineage,
    PartitionState,
    Replica,
    ReplicaLog,
    Standing,
    Survey,
    Unknown,
    Why,
)


def survey_of(row: Mapping[str, Any]) -> Survey:
    """The survey that a row (as a mapping of Python's values) was written from."""
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
        tuple(row["offline_replicas"]),
    )
    min_isr = row["min_isr"] if row["min_isr_unknown"] is None else _unknown(row["min_isr_unknown"])
    reassigning = (
        row["reassigning"] if row["reassigning_unknown"] is None else _unknown(row["reassigning_unknown"])
    )
    return Survey(state, tuple(_replica(replica) for replica in row["replicas"]), min_isr, reassigning)


def _optional(values: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)


def _unknown(fields: Mapping[str, str]) -> Unknown:
    return Unknown(Why(fields["why"]), fields["detail"])


def _replica(row: Mapping[str, Any]) -> Replica:
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
            row["log_dir"],
            row["size"],
        )
    return Replica(row["broker"], Standing(row["standing"]), log)


def _lineage(row: Mapping[str, Any]) -> Lineage | Unknown:
    if row["lineage_unknown"] is not None:
        return _unknown(row["lineage_unknown"])
    spans = tuple(EpochSpan(span["epoch"], span["start"], span["end"]) for span in row["spans"])
    return Lineage(row["last_epoch"], spans, row["floor"])
