"""The effect of each failure on a batch of partitions, counted by failure.

A failure is the loss of a broker, a rack or a log dir, or of two of the same kind that share a partition.
Failures are derived from each partition's own replicas, so their number grows with the partitions, not with
the square of the cluster.

The effect follows the controller's rules (KIP-966): a leader is elected from the rest of the ISR; if it is
empty, from the ELR; if that is empty too, only an unclean election helps. If the ELR is off, the controller
keeps the last ISR member in the ISR; if it is on, a member that leaves an ISR below min ISR goes to the ELR.
Either way the partition has no leader until one of them is back.

Acknowledged records are judged as if what fails never came back. A member of ISR or ELR that is left holds
them all. Without one, each of them is on a known log if fewer replicas than min ISR are lost or silent, because it
was on at least that many (FEW_SILENT in :mod:`recovery.acknowledged.verdict`); otherwise they are at risk.
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
    valid,
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
    """Partitions and their replicas. ``members``: for each replica whether it is in the ISR, in the ELR and
    alive, alive, alive outside the ISR, and silent (its log or its epochs are unknown), and a 1. ``left``: the sums
    of each row. ``least``: the effective min ISR, -1 if it is unknown. ``led``: whether it has a leader, also after
    the drain. ``no_elr``: the controller keeps the last member in the ISR.
    """

    cluster: Array
    clusters: Any
    owner: Array
    broker: Array
    members: Array
    left: Array
    least: Array
    led: Array
    no_elr: Array


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
    if what_if.drained:
        rows, _ = _rows(batch, what_if._replace(drained=()))
        drained = pc.if_else(pa.array(np.isin(rows.broker, what_if.drained)), what_if.drain_text, None)
        yield _by_failure(rows, WHAT_IF, _groups(rows, drained))
    rows, replicas = _rows(batch, what_if)
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


def _rows(batch: Any, what_if: WhatIf) -> tuple[_Rows, Items]:
    replicas = items(batch["replicas"])
    columns = fields(replicas.values)
    owner, broker = replicas.owner, numbers(columns["broker"], -1)
    stays = ~np.isin(broker, what_if.drained)
    alive = truths(pc.equal(columns["standing"], Standing.ELECTABLE.value)) & stays
    in_sync = within(owner, broker, items(batch["isr"])) & stays
    eligible = within(owner, broker, items(batch["elr"])) & alive & (what_if.elr is not False)
    silent = valid(columns["unknown"]) | valid(columns["lineage_unknown"])
    each = [in_sync, eligible, alive, alive & ~in_sync, silent, np.ones(len(owner), bool)]
    members = np.stack(each, axis=1).astype(np.int64)
    left = _sums(members, owner, batch.num_rows)
    least = numbers(batch["min_isr"], -1)
    if what_if.min_isr is not None:
        least = np.full(batch.num_rows, what_if.min_isr, np.int64)
    no_elr = ~valid(batch["elr"]) if what_if.elr is None else np.full(batch.num_rows, not what_if.elr)
    clusters = batch["cluster_id"].dictionary_encode()
    rows = _Rows(
        numbers(clusters.indices, -1),
        clusters.dictionary,
        owner,
        broker,
        members,
        left,
        np.where(least < 0, -1, np.minimum(least, replicas.sizes)),
        (left[:, 0] + left[:, 1] > 0) if what_if.drained else np.ones(batch.num_rows, bool),
        no_elr,
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
    isr, eligible, alive, behind, silent, _ = (rows.left[row] - lost).T
    least, before, led = rows.least[row], rows.left[row, 0], rows.led[row]
    offline = led & (isr == 0) & (eligible == 0)
    already = led & (least >= 0) & (before < least)
    under = led & (least >= 0) & ~already & (isr < least)
    # With fewer unknown logs than min ISR, one of the known logs has each acknowledged record.
    kept = (least >= 0) & (lost[:, -1] + silent < least)
    return (
        led,
        offline,
        # A replica is left that could be elected, but only uncleanly.
        offline & (alive > 0),
        under,
        already,
        led & (least < 0),
        # If one of the lagging replicas had been in sync, it would have been elected.
        offline & (behind > 0),
        under & ~offline & (isr >= least - 1) & (least > 1),
        offline & ~kept,
        offline & kept,
        # After a loss of power it may come back without its newest records, and is elected all the same.
        offline & rows.no_elr[row],
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
