"""Whether a plan may still be applied: every row is judged against the current cluster."""

from __future__ import annotations

from collections.abc import Iterable

from recovery.model import Survey
from recovery.plan.judgement import Judgement, Reason, RowDecision, judge
from recovery.plan.values import Plan, PlanRow
from recovery.ranking import Ranking

# What has changed since a plan was made and does its row no harm: see :mod:`recovery.plan.judgement`.


def notes(row: PlanRow, now: Survey) -> tuple[str, ...]:
    """What has changed without harm, of a row that can be sent, and is worth a line."""
    found = []
    for candidate in row.candidates:
        log = now.log(candidate.broker)
        if log is None:
            found.append(f"broker {candidate.broker} does not answer now")
        elif candidate.broker == row.leader and log.log_start_offset > candidate.log_start >= 0:
            rise = f"rose from {candidate.log_start:,} to {log.log_start_offset:,}"
            found.append(f"the log start of broker {candidate.broker} {rise}: more of the head may be lost")
    then, successor = row.successor, _successor_now(row, now)
    if then is not None and successor != then.broker:
        whom = "nobody" if successor is None else f"broker {successor}"
        found.append(f"should {row.leader} drop out, {whom} would lead, and not {then.broker} as planned")
    return tuple(found)


def _successor_now(row: PlanRow, now: Survey) -> int | None:
    replicas = {replica.broker: replica for replica in now.replicas}
    return next((b for b in row.order[1:] if b in replicas and replicas[b].electable), None)


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
