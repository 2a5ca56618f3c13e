"""What the confirmation says of those who would be elected if the chosen leaders dropped out."""

from __future__ import annotations

from console.app.plan.applier import request
from console.app.plan.confirmation import freeze
from console.operations.elections.plan_comparison import checked_just_now
from recovery.plan.values import Plan
from tests.unit.plan.plans import equal_logs, plan_of
from tests.unit.recovery.surveys import log, survey


def warnings(plan: Plan) -> tuple[str, ...]:
    frozen = freeze(plan, "cluster-1", "kafka:9092", simulated=False)
    return request(frozen, checked_just_now(plan)).warnings


def test_a_successor_that_would_lose_more_is_told_in_numbers() -> None:
    told = warnings(plan_of(survey({1: log((0, 0, 1000)), 2: log((0, 0, 300))}), equal_logs()))
    assert any("1 of 2" in line and "offsets lost then: 700;" in line for line in told)
    assert any("t-0" in line and "broker 2" in line and "loses 700" in line for line in told)


def test_nothing_is_said_where_no_successor_loses_more() -> None:
    assert warnings(plan_of(equal_logs())) == ()
