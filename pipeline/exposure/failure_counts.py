"""The effect of each failure on a batch of partitions, counted by failure.

A failure is the loss of a broker, a rack or a log dir, or of two of the same kind that share a partition.
Failures are derived from each partition's own replicas, so their number grows with the partitions, not with
the square of the cluster.

The effect follows the controller's rules (KIP-966): a leader is elected from the rest of the ISR; if it is
empty, from the ELR; if that is empty too, only an unclean election helps. If the ELR is off, the controller
keeps the last ISR member in the ISR; if it is on, a member that leaves an ISR below min ISR goes to the ELR.
Either way the partition has no leader until one of them is back. A topic with unclean.leader.election.enable
does not wait: the first replica that is alive is elected at once, whatever its log has, and the others that are
alive follow it. So it is not offline, and what was acknowledged is at risk. An unknown setting counts as off.

Acknowledged records are judged as if what fails never came back. A member of ISR or ELR that is left holds
them all. Without one, each of them is on a known log if fewer replicas than min ISR are lost or silent, because it
was on at least that many (FEW_SILENT in :mod:`recovery.acknowledged.verdict`); otherwise they are at risk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.exposure.failure_groups import (
    Columns,
    Losses,
    Names,
    broker_names,
    by_name,
    distinct,
    each_replica,
    has_name,
    log_dir_names,
    one_name,
    sorted_names,
)
from pipeline.exposure.what_if import NOTHING_ASKED, WHAT_IF, WhatIf
from pipeline.plan.row_checks import QUARANTINED, flaws
from pipeline.tables.schemas import EFFECTS
from recovery.arrays.nested_arrays import Array, Items, bounds, fields, items, numbers, truths, valid, within
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

COUNT = np.int16
"""Replicas of a partition: Kafka's replication factor has 16 bits."""


def failure_counts(batches: Iterable[Any], racks: Racks, what_if: WhatIf = NOTHING_ASKED) -> Iterator[Any]:
    """Counts the effects of failures, given the racks of each cluster, and answers what-if questions: turns batches
    of snapshot rows into batches of :data:`COUNTS`. Partitions that are offline are left out.
    """
    for batch in batches:
        flaw = flaws(batch)
        yield _broken_rows(batch, flaw)
        online = pc.and_(pc.is_null(flaw), pc.fill_null(pc.not_equal(batch["leader"], -1), False))
        yield from _counted(batch.filter(online), racks, what_if)


class _Rows(NamedTuple):
    """Partitions and their replicas. ``members``: for each replica whether it is in the ISR, in the ELR and
    alive, alive, alive outside the ISR, and silent (its log or its epochs are unknown), and a 1. ``left``: the sums
    of each row.
    ``least``: the effective min ISR, -1 if it is unknown. ``led``: whether it has a leader, also after the drain.
    ``no_elr``: the controller keeps the last member in the ISR. ``unclean``: the topic elects uncleanly by itself.
    """

    cluster: Array
    clusters: Any
    owner: Array
    broker: Array
    members: Columns
    left: Columns
    least: Array
    led: Array
    no_elr: Array
    unclean: Array


class _Counted(NamedTuple):
    """Losses, and which of them have each of :data:`EFFECTS`, as indices."""

    losses: Losses
    effects: Columns


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
        drained = one_name(np.isin(rows.broker, what_if.drained), what_if.drain_text)
        yield _by_failure(rows, WHAT_IF, drained, _each_replica(rows))
    rows, replicas = _rows(batch, what_if)
    single = _each_replica(rows)
    brokers = broker_names(rows.broker)
    kinds = {
        "broker": brokers,
        "rack": _racks_of(rows, brokers, racks),
        "log dir": log_dir_names(brokers, fields(replicas.values)["log_dir"]),
    }
    for kind, names in kinds.items():
        yield _by_failure(rows, kind, names, single)
    for loss in what_if.losses:
        failed = np.zeros(len(rows.broker), bool)
        for kind, name in loss.parts:
            failed |= has_name(kinds[kind], name)
        yield _by_failure(rows, WHAT_IF, one_name(failed, loss.text), single)
    yield _by_topic(rows, brokers, single, batch["topic"])


def _rows(batch: Any, what_if: WhatIf) -> tuple[_Rows, Items]:
    replicas = items(batch["replicas"])
    columns = fields(replicas.values)
    owner, broker = replicas.owner, numbers(columns["broker"], -1)
    stays = ~np.isin(broker, what_if.drained) if what_if.drained else np.ones(len(owner), bool)
    alive = truths(pc.equal(columns["standing"], Standing.ELECTABLE.value)) & stays
    in_sync = within(owner, broker, items(batch["isr"])) & stays
    eligible = within(owner, broker, items(batch["elr"])) & alive & (what_if.elr is not False)
    silent = valid(columns["unknown"]) | valid(columns["lineage_unknown"])
    each = (in_sync, eligible, alive, alive & ~in_sync, silent, np.ones(len(owner), bool))
    members = [column.astype(COUNT) for column in each]
    left = [_sums(column, replicas.first) for column in members]
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
        np.where(least < 0, -1, np.minimum(least, replicas.sizes)).astype(COUNT),
        (left[0] + left[1] > 0) if what_if.drained else np.ones(batch.num_rows, bool),
        no_elr,
        truths(batch["unclean_elections"]),
    )
    return rows, replicas


def _sums(column: Array, first: Array) -> Array:
    """The sum of each row; ``first``: where each row begins, and the end."""
    total = np.concatenate([[0], np.cumsum(column, dtype=np.int64)])
    found: Array = np.diff(total[first]).astype(COUNT)
    return found


def _racks_of(rows: _Rows, brokers: Names, racks: Racks) -> Names:
    """The rack of each replica; none if it is unknown."""
    size = len(brokers.texts)
    pairs, place = distinct(rows.cluster[rows.owner] * size + brokers.code, len(rows.clusters) * size)
    known = [racks.get(name, {}) for name in rows.clusters.to_pylist()]
    ids = [int(text) for text in brokers.texts.to_pylist()]
    found = [known[pair // size].get(ids[pair % size]) for pair in pairs.tolist()]
    coded = pa.array(found, pa.string()).dictionary_encode()
    return sorted_names(numbers(coded.indices, -1)[place], coded.dictionary)


def _each_replica(rows: _Rows) -> _Counted:
    losses = each_replica(rows.owner, rows.members)
    return _Counted(losses, _effects(rows, losses))


def _by_failure(rows: _Rows, kind: str, names: Names, single: _Counted) -> Any:
    """The counts of each failure of that kind, and of each two that share a partition."""
    losses, name = by_name(rows.owner, rows.members, names, single.losses)
    effects = single.effects if losses is single.losses else _effects(rows, losses)
    first, second = name[losses.first], name[losses.second]
    one = np.concatenate([name, np.minimum(first, second)])
    other = np.concatenate([np.full(losses.groups, -1), np.maximum(first, second)])
    size = len(names.texts) + 1
    key = (rows.cluster[losses.row] * size + one) * size + other + 1
    found, sums = _summed(key, len(rows.clusters) * size * size, effects)
    other, one, cluster = found % size - 1, found // size % size, found // size // size
    both = np.stack([one, other], axis=1).reshape(-1)
    sizes = bounds(np.where(other < 0, 1, 2)).astype(np.int32)
    failed = pa.ListArray.from_arrays(pa.array(sizes), names.texts.take(pa.array(both[both >= 0])))
    clusters = rows.clusters.take(pa.array(cluster))
    return _batch(clusters, kind, pa.nulls(len(found), pa.string()), failed, sums)


def _by_topic(rows: _Rows, brokers: Names, single: _Counted, topic: Any) -> Any:
    """The counts of each broker's loss by topic."""
    topics = topic.dictionary_encode()
    size, names = len(topics.dictionary) + 1, len(brokers.texts) + 1
    key = (rows.cluster[rows.owner] * size + numbers(topics.indices, 0)[rows.owner]) * names + brokers.code
    effects = [effect[: np.searchsorted(effect, single.losses.groups)] for effect in single.effects]
    found, sums = _summed(key, len(rows.clusters) * size * names, effects)
    offsets = pa.array(np.arange(len(found) + 1), pa.int32())
    failed = pa.ListArray.from_arrays(offsets, brokers.texts.take(pa.array(found % names)))
    named = topics.dictionary.take(pa.array(found // names % size))
    clusters = rows.clusters.take(pa.array(found // names // size))
    return _batch(clusters, TOPIC, named, failed, sums)


def _effects(rows: _Rows, losses: Losses) -> Columns:
    """Which losses have each of :data:`EFFECTS`: their indices, ascending."""
    row, taken = losses.row, losses.taken
    known = rows.led & (rows.least >= 0)
    already = known & (rows.left[0] < rows.least)
    isr = rows.left[0][row] - taken[0]
    gone = np.flatnonzero((isr == 0) & rows.led[row])
    gone = gone[rows.left[1][row[gone]] == taken[1][gone]]
    alive = rows.left[2][row[gone]] - taken[2][gone]
    at_once = rows.unclean[row[gone]] & (alive > 0)
    elected, offline = gone[at_once], gone[~at_once]
    # After the election the replicas that are alive follow the new leader.
    isr[elected] = alive[at_once]
    under = np.flatnonzero(isr < np.where(known & ~already, rows.least, 0)[row])
    writable = under[~np.isin(under, offline, assume_unique=True)]
    least = rows.least[row[writable]]
    writable = writable[(isr[writable] >= least - 1) & (least > 1)]
    of, least = row[offline], rows.least[row[offline]]
    _, _, alive, behind, silent, _ = (
        left[of] - lost[offline] for left, lost in zip(rows.left, taken, strict=True)
    )
    # With fewer unknown logs than min ISR, one of the known logs has each acknowledged record.
    certain = (least >= 0) & (taken[-1][offline] + silent < least)
    return (
        np.flatnonzero(rows.led[row]),
        offline,
        # A replica is left that could be elected, but only uncleanly.
        offline[alive > 0],
        under,
        np.flatnonzero(already[row]),
        np.flatnonzero((rows.led & (rows.least < 0))[row]),
        # If one of the lagging replicas had been in sync, it would have been elected.
        offline[behind > 0],
        writable,
        # Kafka does not look for the log that has the most.
        np.sort(np.concatenate([offline[~certain], elected])),
        offline[certain],
        # After a loss of power it may come back without its newest records, and is elected all the same.
        offline[rows.no_elr[of]],
        elected,
    )


def _summed(key: Array, limit: int, effects: Columns) -> tuple[Array, list[Array]]:
    """The different keys, and how many of each have each effect; the keys are below ``limit``."""
    found, place = distinct(key, limit)
    return found, [np.bincount(place[effect], minlength=len(found)) for effect in effects]


def _batch(cluster: Any, kind: str, topic: Any, failed: Any, effects: Columns) -> Any:
    columns = [
        cluster,
        pa.array([kind] * len(cluster), pa.string()),
        topic,
        failed,
        *(pa.array(effect, pa.int64()) for effect in effects),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=COUNTS)
