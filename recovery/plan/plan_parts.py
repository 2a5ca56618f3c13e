"""A part of a plan, for a canary. The digest is taken of the whole plan, before."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from recovery.loss import Loss
from recovery.plan.values import Plan, PlanError, PlanRow


def first(plan: Plan, count: int) -> Plan:
    """The first ``count`` rows, in the file's order. Raises PlanError for a count below 1."""
    if count < 1:
        raise PlanError(f"expected at least 1 partition, not {count}")
    return replace(plan, rows=plan.rows[:count])


def only(plan: Plan, topics: Collection[str]) -> Plan:
    """The rows of those topics. Raises PlanError for a topic that the plan elects nobody of."""
    planned = {row.tp.topic for row in plan.rows}
    missing = [topic for topic in topics if topic not in planned]
    if missing:
        raise PlanError(f"the plan elects no partition of {missing[0]}")
    return _keep(plan, lambda row: row.tp.topic in topics)


def max_loss(plan: Plan, offsets: int, *, successors: bool = True) -> Plan:
    """The rows that lose at most ``offsets``, whether the chosen one is elected or one of its ``successors``.

    Where no bound is known, the row is over the limit.
    """
    if offsets < 0:
        raise PlanError(f"expected a number of offsets from 0, not {offsets}")

    def within(loss: Loss) -> bool:
        return loss.at_most is not None and loss.at_most <= offsets

    def wanted(row: PlanRow) -> bool:
        return within(row.loss) and (not successors or all(within(s.loss) for s in row.successors))

    return _keep(plan, wanted)


def _keep(plan: Plan, wanted: Callable[[PlanRow], bool]) -> Plan:
    return replace(plan, rows=tuple(row for row in plan.rows if wanted(row)))
