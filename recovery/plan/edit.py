"""Choosing another leader in a plan that is made."""

from __future__ import annotations

from dataclasses import replace

from recovery.model import TopicPartition
from recovery.plan.make import by_hand_reason
from recovery.plan.values import Plan, PlanCandidate, PlanError, PlanRow
from recovery.ranking import Ranking
from recovery.wording.replica_text import STANDING_WORDS


def with_leader(plan: Plan, tp: TopicPartition, broker: int) -> Plan:
    """The plan with ``broker`` designated for ``tp``; preconditions stay, the order follows.

    Raises PlanError with the reason where that broker cannot be elected. A plan that is saved again gets a
    new plan id when it is saved.
    """
    row = plan.row(tp)
    if row is None:
        other = next((entry for entry in plan.not_elected if entry.tp == tp), None)
        why = "it is not in the plan" if other is None else f"nobody is elected for it: {other.reason}"
        raise PlanError(f"{tp}: {why}")
    try:
        changed = led_by(row, broker, plan.header.ranking)
    except PlanError as error:
        raise PlanError(f"{tp}: {error}") from None
    return replace(plan, rows=tuple(changed if old is row else old for old in plan.rows))


NO_ANSWER_THEN = "did not answer when the plan was made: make a new plan to choose it"
NOT_ELECTABLE_THEN = "when the plan was made: make a new plan once it can be elected"


def led_by(row: PlanRow, broker: int, ranking: Ranking) -> PlanRow:
    """The row with ``broker`` chosen and the order after it by rank. Raises PlanError where it cannot lead."""
    candidate = row.candidate(broker)
    if broker not in row.replicas:
        raise PlanError(f"broker {broker} is not in the replica set {list(row.replicas)}")
    if candidate is None:
        raise PlanError(f"broker {broker} {NO_ANSWER_THEN}")
    if not candidate.electable:
        standing = STANDING_WORDS[candidate.standing]
        raise PlanError(f"broker {broker} was {standing} {NOT_ELECTABLE_THEN}")
    if broker == row.leader:
        return row
    by_rank = ranked(row, ranking)
    best = next(other for other in by_rank if other.electable)
    others = [other.broker for other in by_rank if other.broker != broker]
    return row._replace(
        order=(broker, *others, *row.silent),
        reason=by_hand_reason(broker, best.broker),
        other_ranking_leader=row.other_ranking_leader if row.other_ranking_leader != broker else None,
    )


def ranked(row: PlanRow, ranking: Ranking) -> tuple[PlanCandidate, ...]:
    """The candidates best first, ties in assignment order; one without an epoch to compare comes last."""
    placed = sorted(row.candidates, key=lambda candidate: row.replicas.index(candidate.broker))
    return tuple(sorted(placed, key=lambda c: c.key(ranking) or (-2, -2), reverse=True))
