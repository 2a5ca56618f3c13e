"""The brokers to wait for: :func:`recovery.strategy._must_wait` for many rows at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from recovery.arrays import reason_text
from recovery.arrays.nested_arrays import Array, Items, any_of, items, joined, keys, numbers, valid, within
from recovery.arrays.replica_columns import RankedReplicas, ReplicaColumns, brokers
from recovery.strategy import Strategy


class WaitColumns(NamedTuple):
    """The ``rows`` that wait; ``brokers`` to wait for and ``why``, one item for each of ``rows``."""

    rows: Array
    brokers: Any
    why: Any


class _Way(NamedTuple):
    """One reason to wait: the brokers, the row of each (ascending), and the text about them."""

    owner: Array
    broker: Array
    text: Callable[[Any, Array], Any]


def wait_for(batch: Any, replicas: ReplicaColumns, ranked: RankedReplicas, strategy: Strategy) -> WaitColumns:
    """For sound rows. The result for rows that are online or refused has no meaning."""
    rows = replicas.rows
    if strategy in (Strategy.AGGRESSIVE, Strategy.NONE):
        nothing = np.zeros(0, np.int64)
        return WaitColumns(nothing, brokers(nothing, nothing, 0), pa.array([], pa.string()))
    unheard = np.flatnonzero(~ranked.answered)
    missing = _Way(
        replicas.owner[unheard],
        replicas.broker[unheard],
        lambda waited_for, _: joined("replica ", reason_text.names(waited_for, "and"), " did not answer"),
    )
    fenced = _fenced(replicas, ranked)
    if strategy is Strategy.COMPLETE:
        return _first(rows, [(missing, np.ones(rows, bool)), (fenced, np.ones(rows, bool))])
    feature = valid(batch["elr"])
    clean, last = _clean(batch), items(batch["last_known_elr"])
    hopeful = feature & any_of(clean.owner, np.ones(len(clean.owner), bool), rows)
    left = feature & ~hopeful & (last.sizes > 0)
    return _first(
        rows,
        [
            (clean, feature),
            (_unready(last, replicas, ranked), left),
            (missing, ~hopeful & ~left),
            (fenced, ~hopeful),
        ],
    )


def _first(rows: int, ways: list[tuple[_Way, Array]]) -> WaitColumns:
    """For each row the first reason that applies and names a broker."""
    free, found = np.ones(rows, bool), []
    for way, applies in ways:
        some = np.zeros(rows, bool)
        some[way.owner] = True
        mine = some & applies & free
        free &= ~mine
        which, chosen = np.flatnonzero(mine), mine[way.owner]
        place = np.cumsum(mine) - 1
        waited_for = brokers(place[way.owner[chosen]], way.broker[chosen], len(which))
        found.append((which, waited_for, way.text(waited_for, which)))
    together = np.concatenate([which for which, _, _ in found])
    order = pa.array(np.argsort(together))
    return WaitColumns(
        np.sort(together),
        pa.concat_arrays([waited_for for _, waited_for, _ in found]).take(order),
        pa.concat_arrays([why for _, _, why in found]).take(order),
    )


def clean_electors(batch: Any) -> Any:
    """:func:`recovery.strategy.clean_electors` of each row."""
    clean = _clean(batch)
    return brokers(clean.owner, clean.broker, batch.num_rows)


def _clean(batch: Any) -> _Way:
    assignment = items(batch["assignment"])
    broker = numbers(assignment.values, -1)
    member = np.zeros(len(broker), bool)
    for name in ("isr", "elr"):
        member |= within(assignment.owner, broker, items(batch[name]))
    return _Way(
        assignment.owner[member],
        broker[member],
        lambda waited_for, _: joined(
            "bring back ",
            reason_text.names(waited_for, "or"),
            " (ISR or ELR): after a clean shutdown it is elected without loss",
        ),
    )


def _unready(last: Items, replicas: ReplicaColumns, ranked: RankedReplicas) -> _Way:
    """:func:`recovery.strategy._not_ready` of LastKnownELR."""
    broker = numbers(last.values, -1)
    ready = ranked.answered & replicas.electable
    missing = ~np.isin(keys(last.owner, broker), keys(replicas.owner[ready], replicas.broker[ready]))
    return _Way(
        last.owner[missing],
        broker[missing],
        lambda waited_for, _: joined(
            "LastKnownELR member ",
            reason_text.names(waited_for, "and"),
            " is not electable or did not answer",
        ),
    )


def _fenced(replicas: ReplicaColumns, ranked: RankedReplicas) -> _Way:
    """:func:`recovery.strategy._better_but_fenced`."""
    order = ranked.order
    best = ranked.best[replicas.owner[order]]
    epoch, end = ranked.epoch, replicas.log_end
    longer = (epoch[order] == epoch[best]) & (end[order] > end[best])
    better = order[(best >= 0) & ~replicas.electable[order] & ((epoch[order] > epoch[best]) | longer)]
    return _Way(
        replicas.owner[better],
        replicas.broker[better],
        lambda waited_for, rows: joined(
            reason_text.names(waited_for, "and"),
            " answered with a better log than ",
            replicas.broker[ranked.best[rows]],
            ", but cannot be elected yet",
        ),
    )
