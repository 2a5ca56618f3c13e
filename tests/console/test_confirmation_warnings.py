"""What the confirmation warns of: successors that lose more, and lost acknowledged records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.app.plan.applier import request
from console.app.plan.confirmed_change import freeze
from console.operations.elections.plan_comparison import checked_just_now
from recovery.acknowledged.verdict import Condition, ConditionKind, Verdict, VerdictKind
from recovery.plan.values import Plan
from tests.unit.plan.plans import equal_logs, plan_of, stale_long_tail
from tests.unit.recovery.surveys import log, survey
from widgets.dialogs.confirmation import ConfirmRequest


def asked_of(plan: Plan, verdict: Verdict | None = None) -> ConfirmRequest:
    """The question of the plan; with ``verdict``, where that is what is known of each candidate."""
    if verdict is not None:
        rows = tuple(
            row._replace(candidates=tuple(one._replace(verdict=verdict) for one in row.candidates))
            for row in plan.rows
        )
        plan = replace(plan, rows=rows)
    return request(freeze(plan, "cluster-1", "kafka:9092", simulated=False), checked_just_now(plan))


def test_a_successor_that_would_lose_more_is_told_in_numbers() -> None:
    told = asked_of(plan_of(survey({1: log((0, 0, 1000)), 2: log((0, 0, 300))}), equal_logs())).warnings
    assert any("1 of 2" in line and "offsets lost then: 700;" in line for line in told)
    assert any("t-0" in line and "broker 2" in line and "loses 700" in line for line in told)


def test_nothing_is_said_where_no_successor_loses_more() -> None:
    assert asked_of(plan_of(equal_logs())).warnings == ()


NONE_LOST = Verdict(VerdictKind.NONE)
IN_DOUBT = Verdict(VerdictKind.NONE, conditions=(Condition(ConditionKind.RECORDS_KEPT, (1,), doubtful=True),))
UNCHECKED = Verdict(VerdictKind.NONE, conditions=(Condition(ConditionKind.MIN_ISR_NEVER_LOWER),))
SOME_LOST = Verdict(VerdictKind.SOME, at_least=300)


@pytest.mark.parametrize(
    ("verdict", "warned", "line"),
    [
        (NONE_LOST, False, "acknowledged records lost: none: 1"),
        (UNCHECKED, True, "acknowledged records lost: none, unchecked: 1"),
        (IN_DOUBT, True, "acknowledged records lost: none, in doubt: 1"),
        (SOME_LOST, True, "acknowledged records lost: 300 or more committed: 1"),
    ],
)
def test_that_no_acknowledged_record_is_lost_is_no_warning(verdict: Verdict, warned: bool, line: str) -> None:
    asked = asked_of(plan_of(equal_logs()), verdict)
    assert (line in asked.warnings, line in asked.target) == (warned, not warned)


@pytest.mark.parametrize(
    ("verdict", "what"), [(NONE_LOST, "records that were never acknowledged"), (IN_DOUBT, "records")]
)
def test_records_that_were_never_acknowledged_are_named_as_such(verdict: Verdict, what: str) -> None:
    asked = asked_of(plan_of(stale_long_tail()), verdict)
    assert any(f"1 of 1 may lose {what}; offsets lost" in line for line in asked.warnings)
