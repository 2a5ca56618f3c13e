"""When the records that a choice destroys were written: the first and the last of each, if they can be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from backends.base.protocol import Backend
from recovery.loss import Loss, Witness, witnesses
from recovery.model import Survey, TopicPartition
from recovery.plan.plan_review import worst
from recovery.plan.values import Plan, PlanRow

# Each time needs its own request: only for the rows that a person sees, not for thousands.
TIMED_ROWS = 200

Times = Mapping[tuple[TopicPartition, Witness], tuple[int, int]]


async def with_times(backend: Backend, plan: Plan, surveys: Sequence[Survey]) -> Plan:
    """The plan with timestamps in the losses of all candidates of its worst rows."""
    rows = {row.tp: row for row in worst(plan, TIMED_ROWS)}
    if not rows:
        return plan
    of = {survey.tp: survey for survey in surveys if survey.tp in rows}
    asked = dict.fromkeys(
        (tp, witness)
        for tp, row in rows.items()
        for candidate in row.candidates
        for witness in witnesses(of[tp], candidate.loss) or ()
    )
    times = await backend.record_times(tuple(asked))
    return replace(
        plan, rows=tuple(_timed(row, of[row.tp], times) if row.tp in rows else row for row in plan.rows)
    )


def _timed(row: PlanRow, survey: Survey, times: Times) -> PlanRow:
    return row._replace(
        candidates=tuple(c._replace(loss=_timed_loss(c.loss, survey, times)) for c in row.candidates)
    )


def _timed_loss(lost: Loss, survey: Survey, times: Times) -> Loss:
    found = witnesses(survey, lost)
    if found is None:
        return lost
    first, last = (times.get((survey.tp, witness)) for witness in found)
    return lost._replace(first_ms=first[0] if first else None, last_ms=last[1] if last else None)
