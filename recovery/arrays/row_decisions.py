"""The choice of leaders for many rows, and the brokers to wait for: :func:`recovery.strategy.decide` and
:func:`recovery.strategy._must_wait`, computed as columns, not row by row.

The reasons are worded as in :mod:`recovery.strategy`. No verdict on acknowledged records is an input.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from recovery.arrays import reason_text
from recovery.arrays.candidate_losses import losses
from recovery.arrays.nested_arrays import (
    Array,
    Items,
    any_of,
    items,
    joined,
    keys,
    lists,
    merged,
    numbers,
    structs,
    truths,
    valid,
    within,
)
from recovery.arrays.replica_columns import RankedReplicas, ReplicaColumns, brokers, rank, replicas_of
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy


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


VERDICTS = list(DecisionKind)
"""A verdict in an array is its index here."""

CANDIDATE = ("broker", "standing", "leader_epoch", "last_epoch", "log_end", "log_start", "high_watermark")
"""What is told of a candidate, as in :data:`recovery.arrays.survey_batch.REPLICA`."""

_OTHER = {Ranking.LAST_RECORD: Ranking.SPECIFICATION, Ranking.SPECIFICATION: Ranking.LAST_RECORD}


class RankedRows:
    """Rows with their replicas ranked, to be decided by any strategy.

    ``batch`` has the columns of :data:`recovery.arrays.survey_batch.SURVEYS` from which rows are decided; their
    values are possible ones. ``compacted``: the rows whose topics are compacted, or may be.
    """

    def __init__(self, batch: Any, ranking: Ranking, compacted: Array) -> None:
        self.batch = batch
        self.ranking = ranking
        self.compacted = compacted
        self.leader = numbers(batch["leader"], -1)
        self.replicas: ReplicaColumns = replicas_of(batch["replicas"])
        self.ranked: RankedReplicas = rank(self.replicas, ranking)

    @cached_property
    def moves(self) -> Array:
        """Which rows are, or may be, reassigned."""
        moves: Array = valid(self.batch["reassigning_unknown"]) | truths(self.batch["reassigning"])
        return moves

    @cached_property
    def other_leader(self) -> Array:
        """The broker that the other ranking would choose, -1 if it chooses nobody."""
        replicas, other = self.replicas, rank(self.replicas, _OTHER[self.ranking])
        found = np.full(replicas.rows, -1)
        some = (other.best >= 0) & (other.refused < 0)
        found[some] = replicas.broker[other.best[some]]
        return found

    @cached_property
    def candidates(self) -> Any:
        """Every candidate of the leaderless rows, best first, with its loss; null for the other rows, and where the
        ranking refuses.
        """
        replicas, ranked = self.replicas, self.ranked
        rows = (self.leader == -1) & (ranked.refused < 0)
        chosen = ranked.order[rows[replicas.owner[ranked.order]]]
        place = pa.array(chosen)
        candidates = {name: replicas.columns[name].take(place) for name in CANDIDATE}
        items = structs(candidates | {"loss": losses(replicas, chosen, self.compacted)})
        return lists(replicas.owner[chosen], items, replicas.rows, null=~rows)

    @cached_property
    def silent(self) -> Any:
        """The replicas that did not answer."""
        replicas = self.replicas
        unheard = np.flatnonzero(~self.ranked.answered)
        place = pa.array(unheard)
        items = structs({name: replicas.columns[name].take(place) for name in ("broker", "standing")})
        return lists(replicas.owner[unheard], items, replicas.rows)


class RowDecisions(NamedTuple):
    """The decision of one strategy for each row. ``verdict``: the index in :data:`VERDICTS`; ``leader``: who is
    elected, or leads already, -1 for nobody; ``waiting``: the rows that wait, for whom and why.
    """

    rows: RankedRows
    verdict: Array
    leader: Array
    waiting: WaitColumns

    def having(self, verdict: DecisionKind) -> Array:
        """The rows with that verdict."""
        return np.flatnonzero(self.verdict == VERDICTS.index(verdict))

    @property
    def other_ranking_leader(self) -> Any:
        """The broker that the other ranking would choose in each row; null where it is the same one, or nobody is
        elected.
        """
        other, elected = self.rows.other_leader, self.verdict == VERDICTS.index(DecisionKind.ELECT)
        return pa.array(other, mask=~elected | (other < 0) | (other == self.leader))

    @property
    def election_order(self) -> Any:
        """:func:`recovery.strategy.election_order`; nobody where nobody is elected."""
        replicas, ranked = self.rows.replicas, self.rows.ranked
        elected = self.verdict == VERDICTS.index(DecisionKind.ELECT)
        place = max(len(replicas.owner), 1) + replicas.at
        place[ranked.order] = np.arange(len(ranked.order))
        place[ranked.best[elected]] = -1
        mine = np.flatnonzero(elected[replicas.owner])
        mine = mine[np.lexsort((place[mine], replicas.owner[mine]))]
        return brokers(replicas.owner[mine], replicas.broker[mine], replicas.rows)

    @property
    def waits_for(self) -> Any:
        """The brokers to wait for."""
        rows, nobody = self.waiting.rows, self.having(DecisionKind.NO_CANDIDATE)
        free = np.ones(len(self.verdict), bool)
        free[rows] = free[nobody] = False
        rest = np.flatnonzero(free)
        nothing = np.zeros(0, np.int64)
        return merged(
            len(self.verdict),
            [
                (rows, self.waiting.brokers),
                (nobody, self.rows.batch["assignment"].take(pa.array(nobody))),
                (rest, brokers(nothing, nothing, len(rest))),
            ],
        )

    @property
    def reason(self) -> Any:
        """The reason of each decision."""
        batch, replicas, ranked = self.rows.batch, self.rows.replicas, self.rows.ranked
        online, refused = self.having(DecisionKind.ALREADY_ONLINE), self.having(DecisionKind.REFUSED)
        report, nobody = self.having(DecisionKind.REPORT_ONLY), self.having(DecisionKind.NO_CANDIDATE)
        elect = self.having(DecisionKind.ELECT)
        moves = self.rows.moves[refused]
        busy, unranked = refused[moves], refused[~moves]
        return merged(
            len(self.verdict),
            [
                (online, reason_text.led_by(self.leader[online])),
                (busy, reason_text.reassigning(batch["reassigning_unknown"].take(pa.array(busy)))),
                (report, pa.array([reason_text.REPORT_ONLY] * len(report), pa.string())),
                (unranked, reason_text.lineage_missing(replicas, ranked.refused[unranked])),
                (self.waiting.rows, self.waiting.why),
                (nobody, reason_text.nobody(replicas, ranked, nobody)),
                (elect, reason_text.elected(replicas, ranked, elect, self.rows.ranking)),
            ],
        )


def decisions(rows: RankedRows, strategy: Strategy) -> RowDecisions:
    """What that strategy decides for each row."""
    waiting = wait_for(rows.batch, rows.replicas, rows.ranked, strategy)
    verdict = _verdicts(rows, waiting, strategy)
    elected = verdict == VERDICTS.index(DecisionKind.ELECT)
    leader = rows.leader.copy()
    leader[elected] = rows.replicas.broker[rows.ranked.best[elected]]
    # The others among those that would wait are online or refused.
    waits = verdict[waiting.rows] == VERDICTS.index(DecisionKind.WAIT)
    some = pa.array(waits)
    waiting = WaitColumns(waiting.rows[waits], waiting.brokers.filter(some), waiting.why.filter(some))
    return RowDecisions(rows, verdict, leader, waiting)


def _verdicts(rows: RankedRows, waiting: WaitColumns, strategy: Strategy) -> Array:
    some = np.zeros(len(rows.leader), bool)
    some[waiting.rows] = True
    cases = [
        (DecisionKind.ALREADY_ONLINE, rows.leader != -1),
        (DecisionKind.REFUSED, rows.moves),
        (DecisionKind.REPORT_ONLY, np.full(len(some), strategy is Strategy.NONE)),
        (DecisionKind.REFUSED, rows.ranked.refused >= 0),
        (DecisionKind.WAIT, some),
        (DecisionKind.NO_CANDIDATE, rows.ranked.best < 0),
    ]
    return np.select(
        [holds for _, holds in cases],
        [VERDICTS.index(verdict) for verdict, _ in cases],
        VERDICTS.index(DecisionKind.ELECT),
    )
