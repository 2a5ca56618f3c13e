"""The choice of leaders for a batch of rows: :func:`recovery.strategy.decide` and the rows of the plan.

The reasons are worded as in :mod:`recovery.strategy`. A batch is computed as columns, not row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.nested_arrays import Array, any_of, items, lists, merged, numbers, structs, truths, valid
from pipeline.plan import reason_text
from pipeline.plan.candidate_losses import losses
from pipeline.plan.replica_columns import RankedReplicas, ReplicaColumns, brokers, rank, replicas_of
from pipeline.plan.row_checks import QUARANTINED, flaws
from pipeline.plan.wait_for import WaitColumns, clean_electors, wait_for
from pipeline.tables.schemas import CANDIDATE, PLANNED
from recovery.plan.topic_marks import MAY_BE_COMPACTED
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy

_OTHER = {Ranking.LAST_RECORD: Ranking.SPECIFICATION, Ranking.SPECIFICATION: Ranking.LAST_RECORD}
_VERDICTS = list(DecisionKind)


class DecisionRules(NamedTuple):
    """The ranking and strategy for the rows."""

    ranking: Ranking
    strategy: Strategy

    def planned(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Turns batches of snapshot rows into batches of plan rows."""
        for batch in batches:
            yield from planned(batch, *self)


def planned(batch: Any, ranking: Ranking, strategy: Strategy) -> list[Any]:
    """Turns batches of snapshot rows into batches of :data:`PLANNED`.

    A broken row gets the verdict "quarantined", its flaw as the reason, and nothing else.
    """
    flaw = flaws(batch)
    sound = pc.is_null(flaw)
    broken = batch.filter(pc.invert(sound))
    decided = _decided(batch.filter(sound), ranking, strategy)
    return [decided, quarantined(broken, flaw.drop_null())] if broken.num_rows else [decided]


def quarantined(batch: Any, flaw: Any) -> Any:
    """Rows that cannot be planned, as a batch of :data:`PLANNED`; ``flaw``: the reason for each."""
    count = batch.num_rows
    nobody = brokers(np.zeros(0, np.int64), np.zeros(0, np.int64), count)
    return _batch(
        batch,
        {
            "verdict": pa.array([QUARANTINED] * count),
            "chosen": pa.array(np.full(count, -1)),
            "election_order": nobody,
            "waits_for": nobody,
            "clean_electors": nobody,
            "reason": flaw,
        },
    )


def _batch(batch: Any, decided: dict[str, Any]) -> Any:
    """A batch of :data:`PLANNED`: the decided columns, else the batch's own, else nulls."""
    names = set(batch.schema.names)
    columns = []
    for field in PLANNED:
        if field.name in decided:
            columns.append(decided[field.name].cast(field.type))
        elif field.name in names:
            columns.append(batch[field.name].cast(field.type))
        else:
            columns.append(pa.nulls(batch.num_rows, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=PLANNED)


class _Inputs(NamedTuple):
    """The input of the decisions of a batch."""

    batch: Any
    leader: Array
    replicas: ReplicaColumns
    ranked: RankedReplicas
    waiting: WaitColumns


def _decided(batch: Any, ranking: Ranking, strategy: Strategy) -> Any:
    replicas = replicas_of(batch["replicas"])
    ranked, other = rank(replicas, ranking), rank(replicas, _OTHER[ranking])
    leader = numbers(batch["leader"], -1)
    inputs = _Inputs(batch, leader, replicas, ranked, wait_for(batch, replicas, ranked, strategy))
    verdict = _verdicts(inputs, strategy)
    elected = verdict == _VERDICTS.index(DecisionKind.ELECT)
    best, rival = leader.copy(), leader.copy()
    best[elected] = rival[elected] = replicas.broker[ranked.best[elected]]
    differs = elected & (other.best >= 0) & (other.refused < 0)
    rival[differs] = replicas.broker[other.best[differs]]
    columns = {
        "verdict": pa.array([one.value for one in _VERDICTS]).take(pa.array(verdict)),
        "chosen": pa.array(best),
        "election_order": _order(replicas, ranked, elected),
        "waits_for": _waits_for(inputs, verdict),
        "reason": _reason(inputs, verdict, ranking),
        "other_ranking_leader": pa.array(rival, mask=rival == best),
        "clean_electors": clean_electors(batch),
        "candidates": _candidates(batch, replicas, ranked, (leader == -1) & (ranked.refused < 0)),
        "silent": _silent(replicas, ranked),
    }
    return _batch(batch, columns)


def _verdicts(inputs: _Inputs, strategy: Strategy) -> Array:
    """The index of each row's verdict in :class:`DecisionKind`."""
    some = np.zeros(len(inputs.leader), bool)
    some[inputs.waiting.rows] = True
    cases = [
        (DecisionKind.ALREADY_ONLINE, inputs.leader != -1),
        (DecisionKind.REFUSED, _moves(inputs.batch)),
        (DecisionKind.REPORT_ONLY, np.full(len(some), strategy is Strategy.NONE)),
        (DecisionKind.REFUSED, inputs.ranked.refused >= 0),
        (DecisionKind.WAIT, some),
        (DecisionKind.NO_CANDIDATE, inputs.ranked.best < 0),
    ]
    return np.select(
        [holds for _, holds in cases],
        [_VERDICTS.index(verdict) for verdict, _ in cases],
        _VERDICTS.index(DecisionKind.ELECT),
    )


def _moves(batch: Any) -> Array:
    moves: Array = valid(batch["reassigning_unknown"]) | truths(batch["reassigning"])
    return moves


def _order(replicas: ReplicaColumns, ranked: RankedReplicas, elected: Array) -> Any:
    """:func:`recovery.strategy.election_order`."""
    size = max(len(replicas.owner), 1)
    place = size + replicas.at
    place[ranked.order] = np.arange(len(ranked.order))
    best = ranked.best[elected]
    place[best] = -1
    mine = np.flatnonzero(elected[replicas.owner])
    mine = mine[np.lexsort((place[mine], replicas.owner[mine]))]
    return brokers(replicas.owner[mine], replicas.broker[mine], replicas.rows)


def _waits_for(inputs: _Inputs, verdict: Array) -> Any:
    rows, brokers_waited_for, _ = _waiting(inputs.waiting, verdict)
    nobody = np.flatnonzero(verdict == _VERDICTS.index(DecisionKind.NO_CANDIDATE))
    free = np.ones(len(verdict), bool)
    free[rows] = free[nobody] = False
    rest = np.flatnonzero(free)
    nothing = np.zeros(0, np.int64)
    return merged(
        len(verdict),
        [
            (rows, brokers_waited_for),
            (nobody, inputs.batch["assignment"].take(pa.array(nobody))),
            (rest, brokers(nothing, nothing, len(rest))),
        ],
    )


def _waiting(waiting: WaitColumns, verdict: Array) -> WaitColumns:
    """The rows whose verdict is WAIT; the others are online or refused."""
    which = verdict[waiting.rows] == _VERDICTS.index(DecisionKind.WAIT)
    indexes = pa.array(which)
    return WaitColumns(waiting.rows[which], waiting.brokers.filter(indexes), waiting.why.filter(indexes))


def _reason(inputs: _Inputs, verdict: Array, ranking: Ranking) -> Any:
    def having(one: DecisionKind) -> Array:
        return np.flatnonzero(verdict == _VERDICTS.index(one))

    batch, _, replicas, ranked, _ = inputs
    online, refused = having(DecisionKind.ALREADY_ONLINE), having(DecisionKind.REFUSED)
    report, nobody = having(DecisionKind.REPORT_ONLY), having(DecisionKind.NO_CANDIDATE)
    elect = having(DecisionKind.ELECT)
    moves = _moves(batch)[refused]
    busy, unranked = refused[moves], refused[~moves]
    waiting = _waiting(inputs.waiting, verdict)
    return merged(
        len(verdict),
        [
            (online, reason_text.led_by(inputs.leader[online])),
            (busy, reason_text.reassigning(batch["reassigning_unknown"].take(pa.array(busy)))),
            (report, pa.array([reason_text.REPORT_ONLY] * len(report), pa.string())),
            (unranked, reason_text.lineage_missing(replicas, ranked.refused[unranked])),
            (waiting.rows, waiting.why),
            (nobody, reason_text.nobody(replicas, ranked, nobody)),
            (elect, reason_text.elected(replicas, ranked, elect, ranking)),
        ],
    )


def _candidates(batch: Any, replicas: ReplicaColumns, ranked: RankedReplicas, rows: Array) -> Any:
    """Every candidate of those rows, best first, with its preconditions and its loss."""
    chosen = ranked.order[rows[replicas.owner[ranked.order]]]
    place = pa.array(chosen)
    candidates = {name: replicas.columns[name].take(place) for name in CANDIDATE}
    items = structs(candidates | {"loss": losses(replicas, chosen, _may_be_compacted(batch))})
    return lists(replicas.owner[chosen], items, replicas.rows, null=~rows)


def _may_be_compacted(batch: Any) -> Array:
    marks = items(batch["marks"])
    which = pc.is_in(marks.values, pa.array([mark.value for mark in MAY_BE_COMPACTED]))
    return any_of(marks.owner, truths(which), batch.num_rows)


def _silent(replicas: ReplicaColumns, ranked: RankedReplicas) -> Any:
    unheard = np.flatnonzero(~ranked.answered)
    place = pa.array(unheard)
    items = structs({name: replicas.columns[name].take(place) for name in ("broker", "standing")})
    return lists(replicas.owner[unheard], items, replicas.rows)
