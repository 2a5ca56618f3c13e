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

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.exposure.replica_grid import Names, Racks, checked, grid, names_of, racks_of, shaped
from pipeline.exposure.what_if import NOTHING_ASKED, WHAT_IF, WhatIf
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

_LOSSES = pa.schema(
    [*((name, pa.int64()) for name in ("row", "one", "other")), *((name, pa.bool_()) for name in EFFECTS)]
)
"""The loss of one name or of two, as numbers (``other`` -1: of one), and which effects it has on the row."""

COUNT = np.int16
"""Replicas of a partition: Kafka's replication factor has 16 bits."""


def failure_counts(batches: Iterable[Any], racks: Racks, what_if: WhatIf = NOTHING_ASKED) -> Iterator[Any]:
    """Counts the effects of failures, given the racks of each cluster, and answers what-if questions: turns batches
    of snapshot rows into batches of :data:`COUNTS`. Partitions that are offline are left out.
    """
    for batch in batches:
        rows = checked(batch)
        reasons = rows.broken["reason"]
        offsets = pa.array(np.arange(len(reasons) + 1), pa.int32())
        yield shaped({**rows.broken, "failed": pa.ListArray.from_arrays(offsets, reasons)}, COUNTS)
        yield from _counted(rows.sound.filter(pa.array(rows.online)), racks, what_if)


class _Rows(NamedTuple):
    """Partitions, by the last index, and their replicas, by the first one: of each whether it is in the ISR, in the
    ELR and alive, alive, and silent (its log or its epochs are unknown). Behind a row's last replica all are false.
    ``least``: the effective min ISR, -1 if it is unknown. ``led``: whether it has a leader, also after the drain.
    ``no_elr``: the controller keeps the last member in the ISR. ``unclean``: the topic elects uncleanly by itself.
    """

    in_sync: Array
    eligible: Array
    alive: Array
    silent: Array
    least: Array
    led: Array
    no_elr: Array
    unclean: Array


def _counted(batch: Any, racks: Racks, what_if: WhatIf) -> Iterator[Any]:
    replicas = items(batch["replicas"])
    columns = fields(replicas.values)
    brokers, directory = columns["broker"].cast(pa.string()), columns["log_dir"]
    named = pc.if_else(pc.not_equal(directory, ""), directory, pa.scalar(None, pa.string()))
    names = {
        "broker": brokers,
        "rack": racks_of(batch, replicas, racks),
        "log dir": pc.binary_join_element_wise(brokers, named, ":"),
    }

    def together(question: str, failed: Array, rows: _Rows) -> Any:
        lost = Names(grid(replicas, np.where(failed, 0, -1), -1), pa.array([question]))
        return _counts(batch, WHAT_IF, _losses(rows, lost), lost.texts)

    if what_if.drained:
        drained = np.isin(numbers(columns["broker"], -1), what_if.drained)
        yield together(what_if.drain_text, drained, _rows(batch, replicas, what_if._replace(drained=())))
    rows = _rows(batch, replicas, what_if)
    for kind, texts in names.items():
        coded = names_of(replicas, texts)
        losses = _losses(rows, coded)
        yield _counts(batch, kind, losses, coded.texts)
        if kind == "broker":
            alone = losses.filter(pc.equal(losses["other"], -1))
            yield _counts(batch, TOPIC, alone, coded.texts, of_topic=True)
    for loss in what_if.losses:
        parts = [truths(pc.equal(names[kind], name)) for kind, name in loss.parts]
        yield together(loss.text, np.any(parts, axis=0), rows)


def _rows(batch: Any, replicas: Items, what_if: WhatIf) -> _Rows:
    columns = fields(replicas.values)
    owner, broker = replicas.owner, numbers(columns["broker"], -1)
    stays = ~np.isin(broker, what_if.drained)
    alive = truths(pc.equal(columns["standing"], Standing.ELECTABLE.value)) & stays
    in_sync = within(owner, broker, items(batch["isr"])) & stays
    eligible = within(owner, broker, items(batch["elr"])) & alive & (what_if.elr is not False)
    silent = valid(columns["unknown"]) | valid(columns["lineage_unknown"])
    in_sync, eligible, alive, silent = (
        grid(replicas, values, False) for values in (in_sync, eligible, alive, silent)
    )
    least = numbers(batch["min_isr"], -1)
    if what_if.min_isr is not None:
        least = np.full(batch.num_rows, what_if.min_isr)
    return _Rows(
        in_sync,
        eligible,
        alive,
        silent,
        np.where(least < 0, -1, np.minimum(least, replicas.sizes)).astype(COUNT),
        np.any(in_sync | eligible, axis=0) | (not what_if.drained),
        ~valid(batch["elr"]) if what_if.elr is None else np.full(batch.num_rows, not what_if.elr),
        truths(batch["unclean_elections"]),
    )


def _losses(rows: _Rows, names: Names) -> Any:
    """What the loss of each name, and of each two names of a row, does to the row: a table of :data:`_LOSSES`."""
    code = names.code
    # Several replicas of a row may have one name, which is lost once.
    fresh = [(one >= 0) & ~(code[:place] == one).any(axis=0) for place, one in enumerate(code)]
    found = [_LOSSES.empty_table()]
    for first, second in combinations_with_replacement(range(len(code)), 2):
        at = np.flatnonzero(fresh[first] & fresh[second])
        mine, *of_rows = (np.take(values, at, axis=-1) for values in (code, *rows))
        one, other = mine[first], mine[second]
        effects = _effects(_Rows(*of_rows), (mine == one) | (mine == other))
        if first == second:
            other = np.full(len(at), -1)
        else:
            one, other = np.minimum(one, other), np.maximum(one, other)
        found.append(pa.table([at, one, other, *effects], schema=_LOSSES))
    return pa.concat_tables(found).combine_chunks()


def _effects(rows: _Rows, lost: Array) -> Sequence[Array]:
    """Which rows have each of :data:`EFFECTS` after the loss of those replicas."""
    least, led = rows.least, rows.led
    isr, elr, alive, behind = (
        np.sum(which & ~lost, axis=0, dtype=COUNT)
        for which in (rows.in_sync, rows.eligible, rows.alive, rows.alive & ~rows.in_sync)
    )
    known = led & (least >= 0)
    already = known & (np.sum(rows.in_sync, axis=0, dtype=COUNT) < least)
    gone = led & (isr == 0) & (elr == 0)
    at_once = gone & rows.unclean & (alive > 0)
    offline = gone & ~at_once
    # After the election the replicas that are alive follow the new leader.
    isr = np.where(at_once, alive, isr)
    under = known & ~already & (isr < least)
    # With fewer unknown logs than min ISR, one of the known logs has each acknowledged record.
    certain = np.sum(lost | rows.silent, axis=0, dtype=COUNT) < least
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
        # Kafka does not look for the log that has the most.
        (offline & ~certain) | at_once,
        offline & certain,
        # After a loss of power it may come back without its newest records, and is elected all the same.
        offline & rows.no_elr,
        at_once,
    )


def _counts(batch: Any, kind: str, losses: Any, texts: Any, *, of_topic: bool = False) -> Any:
    """The losses of each failure, by cluster, added up; by topic too, if that is asked for."""
    keys = ["cluster_id", *(["topic"] if of_topic else []), "one", "other"]
    of_row = {name: batch[name].dictionary_encode() for name in keys[:-2]}
    for name, coded in of_row.items():
        losses = losses.append_column(name, coded.indices.take(losses["row"].combine_chunks()))
    found = losses.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in EFFECTS])
    found = found.combine_chunks()
    both = np.stack([found[name].to_numpy() for name in ("one", "other")], axis=1)
    sizes = bounds((both >= 0).sum(axis=1)).astype(np.int32)
    columns = {
        **{name: coded.dictionary.take(found[name].combine_chunks()) for name, coded in of_row.items()},
        "kind": pa.repeat(kind, len(found)),
        "failed": pa.ListArray.from_arrays(pa.array(sizes), texts.take(pa.array(both[both >= 0]))),
        **{name: found[f"{name}_sum"].combine_chunks() for name in EFFECTS},
    }
    return shaped(columns, COUNTS)
