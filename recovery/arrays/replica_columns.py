"""The replicas and logs of sound rows as flat columns: one item for each replica, in assignment order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery.arrays.nested_arrays import Array, Items, any_of, fields, items, lists, numbers, truths, valid
from recovery.model import Standing, Why
from recovery.ranking import Ranking

_EPOCH = {Ranking.LAST_RECORD: "last_epoch", Ranking.SPECIFICATION: "leader_epoch"}


class SpanColumns(NamedTuple):
    """Epoch spans: those of replica i are from ``first[i]`` to ``first[i + 1]``."""

    first: Array
    epoch: Array
    start: Array
    end: Array


class ReplicaColumns(NamedTuple):
    """``owner``: the row of each replica; ``at``: its index in the assignment; ``first``: where a row's
    replicas begin. ``silent``: its broker did not answer; ``no_lineage``: the log is known, its lineage is
    not; ``known``: both are. ``columns``: the snapshot's.
    """

    owner: Array
    at: Array
    first: Array
    broker: Array
    electable: Array
    silent: Array
    no_lineage: Array
    known: Array
    log_start: Array
    log_end: Array
    spans: SpanColumns
    columns: Mapping[str, Any]

    @property
    def rows(self) -> int:
        return len(self.first) - 1

    @property
    def sizes(self) -> Array:
        return np.diff(self.first)

    def number(self, name: str) -> Array:
        """A column of the snapshot, -1 for unknown values."""
        return numbers(self.columns[name], -1)

    def answered(self, ranking: Ranking) -> Array:
        """:func:`recovery.ranking.answered`."""
        if ranking is Ranking.SPECIFICATION:
            return ~self.silent
        why = pc.not_equal(fields(self.columns["lineage_unknown"])["why"], Why.NOT_ANSWERED.value)
        answered: Array = ~self.silent & (~self.no_lineage | truths(why))
        return answered

    def key_epoch(self, ranking: Ranking) -> Array:
        """The epoch that ``ranking`` compares first."""
        return self.number(_EPOCH[ranking])


def replicas_of(column: Any) -> ReplicaColumns:
    """The replicas of rows whose values are possible, as those of surveys are; stored rows are checked first
    (:mod:`pipeline.plan.row_checks`).
    """
    nested: Items = items(column)
    columns = fields(nested.values)
    silent, no_lineage = valid(columns["unknown"]), valid(columns["lineage_unknown"])
    spans = items(columns["spans"])
    parts = fields(spans.values)
    return ReplicaColumns(
        nested.owner,
        nested.at,
        nested.first,
        numbers(columns["broker"], -1),
        truths(pc.equal(columns["standing"], Standing.ELECTABLE.value)),
        silent,
        no_lineage,
        ~silent & ~no_lineage,
        numbers(columns["log_start"], -1),
        numbers(columns["log_end"], -1),
        SpanColumns(spans.first, *(numbers(parts[name], -1) for name in ("epoch", "start", "end"))),
        columns,
    )


class RankedReplicas(NamedTuple):
    """``order``: the replicas that answered, row by row, best first; ``best``: the first of each row that can
    be elected, or -1; ``refused``: for each row the replica because of which last-record refuses the row, or
    -1.
    """

    order: Array
    best: Array
    refused: Array
    answered: Array
    epoch: Array


def rank(replicas: ReplicaColumns, ranking: Ranking) -> RankedReplicas:
    """:func:`recovery.ranking.rank` for every row; the ranking of a refused row has no meaning."""
    answered, epoch = replicas.answered(ranking), replicas.key_epoch(ranking)
    order = _best_first(replicas, np.flatnonzero(answered), epoch)
    refused = np.full(replicas.rows, -1)
    if ranking is Ranking.LAST_RECORD:
        refused = first_of(replicas, np.flatnonzero(answered & replicas.no_lineage))
    return RankedReplicas(
        order, first_of(replicas, order[replicas.electable[order]]), refused, answered, epoch
    )


def _best_first(replicas: ReplicaColumns, among: Array, epoch: Array) -> Array:
    """The replicas of each row sorted by epoch and log end; ties keep the assignment order.

    Most rows are already in that order, because their logs are equal: only the others are sorted.
    """
    owner, first, then = replicas.owner[among], epoch[among], replicas.log_end[among]
    later = (first[1:] > first[:-1]) | ((first[1:] == first[:-1]) & (then[1:] > then[:-1]))
    mixed = any_of(owner[1:], later & (owner[1:] == owner[:-1]), replicas.rows)
    moved = np.flatnonzero(mixed[owner])
    order = among.copy()
    order[moved] = among[moved[np.lexsort((-then[moved], -first[moved], owner[moved]))]]
    return order


def first_of(replicas: ReplicaColumns, chosen: Array) -> Array:
    """The first of the replicas in each row, or -1; ``chosen`` is in row order."""
    found = np.full(replicas.rows, -1)
    found[replicas.owner[chosen][::-1]] = chosen[::-1]
    return found


def brokers(owner: Array, broker: Array, rows: int) -> Any:
    """One list of broker ids per row."""
    return lists(owner, pa.array(broker.astype(np.int32)), rows)
