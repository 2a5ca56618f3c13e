"""Partitions that a single failure would take, and what could be changed so that it does not.

A partition needs a change if the loss of one rack (or of one broker whose rack is unknown) leaves no replica in
sync, or fewer than min ISR. Only a partition with all replicas in sync can be changed: for any other, the replicas
that lag come first. There is a row for each such partition, and one for each topic, with what a change of its min
ISR has to respect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.exposure.replica_grid import Racks, checked, grid, names_of, racks_of, shaped
from recovery.arrays.nested_arrays import Array, fields, items, numbers, truths, within
from recovery.model import Standing
from recovery.replica_spread import failure_domain, spread_change


class Goal(StrEnum):
    """What a single failure has to leave. COPIES: a replica in sync. WRITES: min ISR of them, so that acks=all goes
    on.
    """

    COPIES = "copies"
    WRITES = "writes"


PARTITION, TOPIC = "partition", "topic"

CANDIDATES = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("replicas", pa.list_(pa.int32())),
        ("size", pa.int64()),
        ("min_isr", pa.int64()),
        ("left", pa.int64()),  # replicas in sync after the worst failure
        ("failures", pa.list_(pa.string())),  # the failures that leave fewer than are needed
        ("copies", pa.int64()),  # replicas that have to be copied
        ("why", pa.string()),  # why it cannot be changed; "": it can
        ("partitions", pa.int64()),
        ("least_replicas", pa.int64()),
        ("most_min_isr", pa.int64()),
        (
            "below_factor",
            pa.bool_(),
        ),  # somewhere min ISR is below the replication factor, so it is the setting
        ("in_sync", pa.bool_()),
    ]
)
"""Of the kind "partition" a partition that needs a change; of the kind "topic" the least and most of some of its
partitions; of the kind "quarantined" how many broken rows there are, with the reason in ``why``.
"""


def fix_candidates(batches: Iterable[Any], racks: Racks, goal: Goal) -> Iterator[Any]:
    """Turns batches of snapshot rows into batches of :data:`CANDIDATES`, given the racks of each cluster's brokers.
    Partitions that are offline are left out.
    """
    for batch in batches:
        rows = checked(batch)
        yield shaped({**rows.broken, "why": rows.broken["reason"]}, CANDIDATES)
        facts = _facts(rows.sound, racks)
        # Those without a leader count too: a change of min ISR is a change for them as well.
        yield _topics(rows.sound, facts)
        # An unknown min ISR: whether writes go on is unknown, and only the copies can be judged.
        need = np.maximum(facts.least, 1) if goal is Goal.WRITES else np.ones_like(facts.least)
        exposed = np.flatnonzero(rows.online & (facts.left < need))
        yield _partitions(rows.sound.take(pa.array(exposed)), facts.of(exposed), need[exposed], racks)


class _Facts(NamedTuple):
    """Of each row: the effective min ISR (-1: unknown), replicas in sync after the worst failure, whether all are
    in sync, the number of replicas, and the size of the largest known log (-1: unknown).
    """

    least: Array
    left: Array
    in_sync: Array
    factor: Array
    size: Array

    def of(self, rows: Array) -> _Facts:
        return _Facts(*(values[rows] for values in self))


def _facts(batch: Any, racks: Racks) -> _Facts:
    replicas = items(batch["replicas"])
    columns = fields(replicas.values)
    owner, broker = replicas.owner, numbers(columns["broker"], -1)
    in_sync = within(owner, broker, items(batch["isr"]))
    eligible = within(owner, broker, items(batch["elr"])) & truths(
        pc.equal(columns["standing"], Standing.ELECTABLE.value)
    )
    holding = grid(replicas, in_sync | eligible, False)
    rack = pc.binary_join_element_wise("rack", racks_of(batch, replicas, racks), " ")
    domain = names_of(replicas, pc.coalesce(rack, columns["broker"].cast(pa.string()))).code
    most = np.zeros(batch.num_rows, np.int64)
    for one in domain:
        most = np.maximum(most, np.sum(holding & (domain == one), axis=0))
    least = numbers(batch["min_isr"], -1)
    return _Facts(
        np.where(least < 0, -1, np.minimum(least, replicas.sizes)),
        np.sum(holding, axis=0) - most,
        np.sum(grid(replicas, in_sync, False), axis=0) == replicas.sizes,
        replicas.sizes,
        grid(replicas, numbers(columns["size"], -1), -1).max(axis=0, initial=-1),
    )


def _topics(batch: Any, facts: _Facts) -> Any:
    table = pa.table(
        {
            "cluster_id": batch["cluster_id"],
            "topic": batch["topic"],
            "least": facts.least,
            "left": facts.left,
            "factor": facts.factor,
            "below": (facts.least >= 0) & (facts.least < facts.factor),
            "in_sync": facts.in_sync,
        }
    )
    sums = {
        "min_isr": ("least", "min"),
        "most_min_isr": ("least", "max"),
        "left": ("left", "min"),
        "least_replicas": ("factor", "min"),
        "below_factor": ("below", "any"),
        "in_sync": ("in_sync", "all"),
        "partitions": ("topic", "count"),
    }
    found = table.group_by(["cluster_id", "topic"]).aggregate(list(sums.values())).combine_chunks()
    columns = {name: found[f"{column}_{how}"].combine_chunks() for name, (column, how) in sums.items()}
    columns |= {name: found[name].combine_chunks() for name in ("cluster_id", "topic")}
    return shaped(columns | {"kind": pa.repeat(TOPIC, found.num_rows)}, CANDIDATES)


def _partitions(batch: Any, facts: _Facts, need: Array, racks: Racks) -> Any:
    clusters = batch["cluster_id"].to_pylist()
    replicas = batch["assignment"].to_pylist()
    domains = {name: Counter(failure_domain(b, known) for b in known) for name, known in racks.items()}
    busy = pc.or_(pc.fill_null(batch["reassigning"], True), pc.is_null(batch["reassigning"]))
    moving = truths(busy)
    isr = batch["isr"].to_pylist()
    failures, copies, why = [], [], []
    for row, cluster in enumerate(clusters):
        known = racks.get(cluster, {})
        failures.append(_failures(replicas[row], isr[row], known, int(need[row])))
        refusal = _refusal(facts, row, moving=bool(moving[row]))
        change = None
        if not refusal:
            mine = Counter(failure_domain(broker, known) for broker in replicas[row] if broker in known)
            room = {name: count - mine[name] for name, count in domains.get(cluster, Counter()).items()}
            change = spread_change(replicas[row], known, int(need[row]), room)
        copies.append(None if change is None else change.copies)
        why.append(refusal or ("" if change else "there is no other rack or broker for a replica"))
    columns = {
        "cluster_id": batch["cluster_id"],
        "kind": pa.repeat(PARTITION, batch.num_rows),
        "topic": batch["topic"],
        "partition": batch["partition"],
        "replicas": batch["assignment"],
        "size": pa.array(facts.size),
        "min_isr": pa.array(facts.least),
        "left": pa.array(facts.left),
        "failures": pa.array(failures, pa.list_(pa.string())),
        "copies": pa.array(copies, pa.int64()),
        "why": pa.array(why, pa.string()),
        "partitions": pa.array(np.ones(batch.num_rows, np.int64)),
    }  # fmt: skip
    return shaped(columns, CANDIDATES)


def _failures(
    replicas: Sequence[int], isr: Sequence[int], racks: Mapping[int, str | None], need: int
) -> list[str]:
    """The failures that leave fewer than ``need`` in sync; members of the ELR do not count here, so a few more may
    be named than take it.
    """
    counts = Counter(failure_domain(broker, racks) for broker in replicas if broker in isr)
    return sorted(name for name, count in counts.items() if len(isr) - count < need)


def _refusal(facts: _Facts, row: int, *, moving: bool) -> str:
    if moving:
        return "it is being reassigned, or whether it is is not known"
    if not facts.in_sync[row]:
        return "a replica is not in sync: that one has to come back first"
    if facts.least[row] < 0:
        return "min ISR is not known, so more replicas could stop acks=all"
    if facts.size[row] < 0:
        return "its size is not known"
    return ""
