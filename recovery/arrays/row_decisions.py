"""The choice of leaders for many rows: :func:`recovery.strategy.decide`, computed as columns, not row by row.

The reasons are worded as in :mod:`recovery.strategy`. No verdict on acknowledged records is an input.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from recovery.arrays import reason_text
from recovery.arrays.candidate_losses import losses
from recovery.arrays.nested_arrays import Array, lists, merged, numbers, structs, truths, valid
from recovery.arrays.replica_columns import RankedReplicas, ReplicaColumns, brokers, rank, replicas_of
from recovery.arrays.wait_for import WaitColumns, wait_for
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy

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
