"""Checks snapshot rows. A broken row gets a reason and is counted; it does not end the job.

Numbers are checked for their range here, before anything is calculated with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery.arrays.nested_arrays import (
    Array,
    Items,
    any_of,
    fields,
    items,
    keys,
    numbers,
    truths,
    valid,
    within,
)
from recovery.model import Standing

QUARANTINED = "quarantined"

LIMIT = 2**56
"""No real offset is as high, and the sum of 128 offsets below it still fits into 64 bits."""

COLUMNS = (
    "topic",
    "partition",
    "topic_id",
    "leader",
    "leader_epoch",
    "assignment",
    "isr",
    "elr",
    "last_known_elr",
    "reassigning",
    "reassigning_unknown",
    "replicas",
)
"""The columns that are checked."""

NAMELESS = "no topic or partition"
NO_LEADER = "no leader, epoch or id is given"
BROKEN_ISR = "ISR is missing or broken"
COPIES = "the partition stands in its snapshot {} times"
"""Reasons that other jobs have for a row too. The last only a history finds."""

_STANDINGS = pa.array([standing.value for standing in Standing])
_IMPOSSIBLE = -(2**62)


def flaws(batch: Any) -> Any:
    """The first reason that applies to each row; null for a sound row."""
    reasons, found = [], np.full(batch.num_rows, -1)
    for place, (reason, broken) in enumerate(_checked(batch)):
        reasons.append(reason)
        found[broken & (found < 0)] = place
    return pa.array(reasons).take(pa.array(found, mask=found < 0))


def _checked(batch: Any) -> Iterator[tuple[str, Array]]:
    """(reason, rows) in the order of the checks."""
    rows = batch.num_rows
    topic, column = pc.fill_null(batch["topic"], ""), batch.column
    yield (
        NAMELESS,
        (pc.binary_length(topic).to_numpy(zero_copy_only=False) == 0) | (numbers(batch["partition"], -1) < 0),
    )
    no_leader = (numbers(batch["leader"], -2) < -1) | (numbers(batch["leader_epoch"], -2) < -1)
    yield NO_LEADER, no_leader | ~valid(batch["topic_id"])
    assignment = items(batch["assignment"])
    brokers = numbers(assignment.values, -1)
    yield "no assignment, or a broker in it twice", _no_assignment(assignment, brokers)
    nobody, stranger = ~valid(batch["isr"]), _stranger(numbers(batch["leader"], -1), assignment, brokers)
    for name in ("isr", "elr", "last_known_elr"):
        members = items(column(name))
        nobody |= any_of(members.owner, ~valid(members.values), rows)
        if name != "last_known_elr":
            outside = ~within(members.owner, numbers(members.values, -1), assignment)
            stranger |= any_of(members.owner, outside, rows)
    yield BROKEN_ISR, nobody
    yield "a leader, or a member of ISR or ELR, outside the assignment", stranger
    doubt = valid(fields(batch["reassigning_unknown"])["why"])
    yield (
        "whether a reassignment is in progress is missing",
        ~valid(batch["reassigning"]) & ~doubt,
    )
    yield from _of_replicas(items(batch["replicas"]), assignment, brokers)


def _no_assignment(assignment: Items, brokers: Array) -> Array:
    # Rows already ascend, which makes a stable sort fast.
    ordered = np.sort(keys(assignment.owner, brokers), kind="stable")
    twice = ordered[1:][ordered[1:] == ordered[:-1]] >> 32
    broken: Array = (assignment.sizes == 0) | any_of(assignment.owner, brokers < 0, len(assignment.present))
    broken[twice] = True
    return broken


def _stranger(leader: Array, assignment: Items, brokers: Array) -> Array:
    """Which rows' leaders are not among their replicas."""
    mine = any_of(assignment.owner, brokers == leader[assignment.owner], len(leader))
    stranger: Array = (leader >= 0) & ~mine
    return stranger


def _of_replicas(replicas: Items, assignment: Items, brokers: Array) -> Iterator[tuple[str, Array]]:
    rows = len(replicas.present)
    columns = fields(replicas.values)
    named = valid(columns["broker"])
    yield "replicas are missing", ~replicas.present | any_of(replicas.owner, ~named, rows)
    yield from _other_replicas(replicas, numbers(columns["broker"], -1), assignment, brokers)
    known = truths(pc.is_in(columns["standing"], value_set=_STANDINGS))
    yield "a replica of unknown standing", any_of(replicas.owner, ~known, rows)
    answered = ~valid(columns["unknown"])
    bounded = numbers(columns["leader_epoch"], -2) >= -1
    for name in ("log_end", "log_start", "high_watermark"):
        bounded &= _in_bounds(columns[name])
    yield (
        "a log's offsets or epoch are missing or impossible",
        any_of(replicas.owner, answered & ~bounded, rows),
    )
    asked = answered & ~valid(columns["lineage_unknown"])
    yield (
        "a log's lineage is missing or impossible",
        any_of(replicas.owner, asked & ~_lineage(columns, asked), rows),
    )


def _other_replicas(
    replicas: Items, broker: Array, assignment: Items, brokers: Array
) -> Iterator[tuple[str, Array]]:
    """Which rows' replicas are not those of the assignment, in its order."""
    other = replicas.sizes != assignment.sizes
    same = np.flatnonzero(~other[replicas.owner])
    at = assignment.first[replicas.owner[same]] + replicas.at[same]
    other[replicas.owner[same[broker[same] != brokers[at]]]] = True
    # The reason is computed only for broken rows.
    left, right = other[replicas.owner], other[assignment.owner]
    own = keys(replicas.owner[left], broker[left])
    outside = ~np.isin(own, keys(assignment.owner[right], brokers[right]))
    yield "a replica outside the assignment", any_of(replicas.owner[left], outside, len(other))
    yield "the replicas are not those of the assignment", other


def _in_bounds(offsets: Any) -> Array:
    values = numbers(offsets, _IMPOSSIBLE)
    return (values >= -1) & (values < LIMIT)


def _lineage(columns: Any, asked: Array) -> Array:
    """Which replicas' lineages are possible: values in range, and ascending epochs."""
    spans = items(columns["spans"])
    parts = fields(spans.values)
    epoch, start, end = (numbers(parts[name], _IMPOSSIBLE) for name in ("epoch", "start", "end"))
    wrong = (epoch < -1) | (start < 0) | (end <= start) | (end >= LIMIT)
    wrong[1:] |= (spans.owner[1:] == spans.owner[:-1]) & (epoch[1:] <= epoch[:-1])
    sound: Array = (numbers(columns["last_epoch"], -2) >= -1) & _in_bounds(columns["floor"]) & spans.present
    sound[spans.owner[wrong & asked[spans.owner]]] = False
    return sound
