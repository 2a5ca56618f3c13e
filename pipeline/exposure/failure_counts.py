"""The effect of each failure on a batch of partitions, counted by failure.

A failure is the loss of a broker, a rack or a log dir, or of two of the same kind that share a partition.
Failures are derived from each partition's own replicas, so their number grows with the partitions, not with
the square of the cluster.

The effect follows the controller's rules (KIP-966): a leader is elected from the rest of the ISR; if it is
empty, from the ELR; if that is empty too, only an unclean election helps. If the ELR is off, the controller
keeps the last ISR member in the ISR; if it is on, a member that leaves an ISR below min ISR goes to the ELR.
Either way the partition has no leader until one of them is back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.exposure.what_if import NOTHING_ASKED, WHAT_IF, WhatIf
from pipeline.nested_arrays import (
    Array,
    Items,
    bounds,
    expand,
    fields,
    items,
    joined,
    numbers,
    truths,
    within,
)
from pipeline.plan.row_checks import QUARANTINED, flaws
from pipeline.tables.schemas import EFFECTS
from recovery.model import Standing

TOPIC = "topic"
"""The kind of the counts by topic and broker."""

COUNTS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("failed", pa.list_(pa.string())),
        *((name, pa.int64()) for name in EFFECTS),
    ]
)
"""The counts of one failure in one batch. Of the kind "quarantined", ``failed`` is the reason."""

Racks = Mapping[str, Mapping[int, str]]
"""The racks of a cluster's brokers."""


class FailureCounts(NamedTuple):
    """Counts the effects of failures, given the racks of each cluster, and answers what-if questions."""

    racks: Racks
    what_if: WhatIf = NOTHING_ASKED

    def counted(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Turns batches of snapshot rows into batches of :data:`COUNTS`. Partitions that are offline are left
        out.
        """
        for batch in batches:
            flaw = flaws(batch)
            yield _broken_rows(batch, flaw)
            online = pc.and_(pc.is_null(flaw), pc.fill_null(pc.not_equal(batch["leader"], -1), False))
            yield from _counted(batch.filter(online), self.racks, self.what_if)


class _Rows(NamedTuple):
    """Partitions with a leader and their replicas. ``members``: for each replica whether it is in the ISR, in the
    ELR and alive, alive, and alive outside the ISR. ``left``: the sums of each row. ``least``: the effective min
    ISR, -1 if it is unknown.
    """

    cluster: Array
    clusters: Any
    owner: Array
    broker: Array
    members: Array
    left: Array
    least: Array


class _Groups(NamedTuple):
    """What can fail of one kind: in each row the replicas with the same name; in order of rows and names."""

    row: Array
    name: Array
    names: Any
    lost: Array


def _broken_rows(batch: Any, flaw: Any) -> Any:
    table = pa.table({"cluster_id": batch["cluster_id"], "reason": flaw})
    found = table.filter(pc.is_valid(flaw)).group_by(["cluster_id", "reason"]).aggregate([([], "count_all")])
    count = found.num_rows
    reasons = found["reason"].combine_chunks()
    columns = {
        "cluster_id": found["cluster_id"].combine_chunks(),
        "kind": pa.array([QUARANTINED] * count, pa.string()),
        "failed": pa.ListArray.from_arrays(pa.array(np.arange(count + 1), pa.int32()), reasons),
        "partitions": found["count_all"].combine_chunks(),
    }
    arrays = [columns.get(f.name, pa.nulls(count, f.type)) for f in COUNTS]
    return pa.RecordBatch.from_arrays(
        [a.cast(f.type) for a, f in zip(arrays, COUNTS, strict=True)], COUNTS.names
    )


def _counted(batch: Any, racks: Racks, what_if: WhatIf) -> Iterator[Any]:
    rows, replicas = _rows(batch, what_if.min_isr)
    names = fields(replicas.values)
    brokers = pc.cast(pa.array(rows.broker), pa.string())
    single = _groups(rows, brokers)
    directory = names["log_dir"]
    directory = pc.if_else(pc.equal(directory, ""), None, directory)
    kinds = {
        "broker": brokers,
        "rack": _racks_of(rows, racks),
        "log dir": joined(brokers, ":", directory),
    }
    for kind, names_of_kind in kinds.items():
        yield _by_failure(rows, kind, _groups(rows, names_of_kind))
    for loss in what_if.losses:
        failed = np.zeros(len(rows.broker), bool)
        for kind, name in loss.parts:
            failed |= truths(pc.equal(kinds[kind], name))
        together = pc.if_else(pa.array(failed), loss.text, None)
        yield _by_failure(rows, WHAT_IF, _groups(rows, together))
    yield _by_topic(rows, single, batch["topic"])


def _rows(batch: Any, min_isr: int | None) -> tuple[_Rows, Items]:
    replicas = items(batch["replicas"])
    columns = fields(replicas.values)
    owner, broker = replicas.owner, numbers(columns["broker"], -1)
    alive = truths(pc.equal(columns["standing"], Standing.ELECTABLE.value))
    in_sync = within(owner, broker, items(batch["isr"]))
    eligible = within(owner, broker, items(batch["elr"])) & alive
    members = np.stack([in_sync, eligible, alive, alive & ~in_sync], axis=1).astype(np.int64)
    least = numbers(batch["min_isr"], -1)
    if min_isr is not None:
        least = np.full(batch.num_rows, min_isr, np.int64)
    clusters = batch["cluster_id"].dictionary_encode()
    rows = _Rows(
        numbers(clusters.indices, -1),
        clusters.dictionary,
        owner,
        broker,
        members,
        _sums(members, owner, batch.num_rows),
        np.where(least < 0, -1, np.minimum(least, replicas.sizes)),
    )
    return rows, replicas


def _sums(values: Array, owner: Array, count: int) -> Array:
    total = np.zeros((count, values.shape[1]), np.int64)
    np.add.at(total, owner, values)
    return total


def _racks_of(rows: _Rows, racks: Racks) -> Any:
    """The rack of each replica; null if it is unknown."""
    pairs, place = np.unique((rows.cluster[rows.owner] << 32) | rows.broker, return_inverse=True)
    known = [racks.get(name, {}) for name in rows.clusters.to_pylist()]
    found = [known[pair >> 32].get(pair & 0xFFFFFFFF) for pair in pairs.tolist()]
    return pa.array(found, pa.string()).take(pa.array(place))


def _groups(rows: _Rows, names: Any) -> _Groups:
    """``names``: of each replica, null if it has none."""
    named = np.flatnonzero(names.is_valid().to_numpy(zero_copy_only=False))
    coded = names.take(pa.array(named)).dictionary_encode()
    order = pc.sort_indices(coded.dictionary)
    rank = np.empty(len(order), np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    size = max(len(order), 1)
    key = rows.owner[named] * size + rank[numbers(coded.indices, 0)]
    found, place = np.unique(key, return_inverse=True)
    lost = _sums(rows.members[named], place, len(found))
    return _Groups(found // size, found % size, coded.dictionary.take(order), lost)


def _by_failure(rows: _Rows, kind: str, groups: _Groups) -> Any:
    """The counts of each failure of that kind, and of each two that share a partition."""
    count = len(groups.row)
    ends = np.searchsorted(groups.row, groups.row, side="right")
    first, second = expand(np.arange(count) + 1, ends - np.arange(count) - 1)
    row = np.concatenate([groups.row, groups.row[first]])
    one = np.concatenate([groups.name, groups.name[first]])
    other = np.concatenate([np.full(count, -1), groups.name[second]])
    lost = np.concatenate([groups.lost, groups.lost[first] + groups.lost[second]])
    size = len(groups.names) + 1
    key = (rows.cluster[row] * size + one) * size + other + 1
    found, effects = _summed(key, _effects(rows, row, lost))
    other, one, cluster = found % size - 1, found // size % size, found // size // size
    both = np.stack([one, other], axis=1).reshape(-1)
    sizes = bounds(np.where(other < 0, 1, 2)).astype(np.int32)
    failed = pa.ListArray.from_arrays(pa.array(sizes), groups.names.take(pa.array(both[both >= 0])))
    names = rows.clusters.take(pa.array(cluster))
    return _batch(names, kind, pa.nulls(len(found), pa.string()), failed, effects)


def _by_topic(rows: _Rows, brokers: _Groups, topic: Any) -> Any:
    """The counts of each broker's loss by topic."""
    topics = topic.dictionary_encode()
    size, names = len(topics.dictionary) + 1, len(brokers.names) + 1
    key = (rows.cluster[brokers.row] * size + numbers(topics.indices, 0)[brokers.row]) * names + brokers.name
    found, effects = _summed(key, _effects(rows, brokers.row, brokers.lost))
    offsets = pa.array(np.arange(len(found) + 1), pa.int32())
    failed = pa.ListArray.from_arrays(offsets, brokers.names.take(pa.array(found % names)))
    named = topics.dictionary.take(pa.array(found // names % size))
    clusters = rows.clusters.take(pa.array(found // names // size))
    return _batch(clusters, TOPIC, named, failed, effects)


def _effects(rows: _Rows, row: Array, lost: Array) -> Sequence[Array]:
    """:data:`EFFECTS` of each loss of replicas of a row."""
    isr, eligible, alive, behind = (rows.left[row] - lost).T
    least, before = rows.least[row], rows.left[row, 0]
    offline = (isr == 0) & (eligible == 0)
    already = (least >= 0) & (before < least)
    under = (least >= 0) & ~already & (isr < least)
    return (
        np.ones(len(row), bool),
        offline,
        # A replica is left that could be elected, but only uncleanly.
        offline & (alive > 0),
        under,
        already,
        least < 0,
        # If one of the lagging replicas had been in sync, it would have been elected.
        offline & (behind > 0),
        under & ~offline & (isr >= least - 1) & (least > 1),
    )


def _summed(key: Array, effects: Sequence[Array]) -> tuple[Array, list[Array]]:
    found, place = np.unique(key, return_inverse=True)
    return found, [np.bincount(place[effect], minlength=len(found)) for effect in effects]


def _batch(cluster: Any, kind: str, topic: Any, failed: Any, effects: Sequence[Array]) -> Any:
    columns = [
        cluster,
        pa.array([kind] * len(cluster), pa.string()),
        topic,
        failed,
        *(pa.array(effect, pa.int64()) for effect in effects),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=COUNTS)
