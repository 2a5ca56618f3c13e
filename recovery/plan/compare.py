"""Whether a plan may still be applied: every row is judged against the current cluster."""

from __future__ import annotations

from collections.abc import Iterable

from recovery.model import Survey
from recovery.plan.harmless_changes import notes
from recovery.plan.judgement import Judgement, Reason, RowDecision, judge
from recovery.plan.values import Plan, PlanRow
from recovery.ranking import Ranking


def compare(plan: Plan, surveys: Iterable[Survey], cluster_id: str) -> tuple[Judgement, ...]:
    """Every row of the plan against fresh ``surveys``, in the plan's order."""
    planned = plan.header.cluster_id
    if cluster_id != planned:
        detail = f"the plan is for cluster {planned}, this is {cluster_id}"
        return tuple(Judgement(row.tp, RowDecision.STALE, Reason.CLUSTER_ID, detail) for row in plan.rows)
    found = {survey.tp: survey for survey in surveys}
    return tuple(_compared(row, plan.header.ranking, found.get(row.tp)) for row in plan.rows)


def _compared(row: PlanRow, ranking: Ranking, now: Survey | None) -> Judgement:
    judgement = judge(row, ranking, now)
    return judgement if now is None or not judgement.holds else judgement._replace(notes=notes(row, now))
