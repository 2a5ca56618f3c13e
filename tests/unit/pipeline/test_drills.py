"""One incident of a drill, without Spark."""

from __future__ import annotations

import pytest

from pipeline.drills.drill_case import DrillCase, run
from pipeline.drills.incident import IncidentShape, scenario
from pipeline.drills.recovery_arms import Arm, arm_setup
from recovery.controller.rules import UncleanRecoveryStrategy


@pytest.mark.parametrize("shape", IncidentShape)
def test_the_same_seed_is_the_same_incident_and_another_is_another(shape: IncidentShape) -> None:
    rules = arm_setup(Arm.LAST_RECORD).rules
    assert scenario(shape.value, 3, rules, 1) == scenario(shape.value, 3, rules, 1)
    assert scenario(shape.value, 3, rules, 1).faults != scenario(shape.value, 4, rules, 1).faults


@pytest.mark.parametrize("arm", Arm)
def test_an_incident_costs_the_same_each_time_and_breaks_no_promise(arm: Arm) -> None:
    case = DrillCase(IncidentShape.POWER.value, arm.value, 2, 11)
    row = run(case)
    assert row == run(case)
    assert not row.error and not row.broken
    assert row.decisions == 0 or arm_setup(arm).person


def test_a_choice_by_length_destroys_what_the_last_records_epoch_keeps() -> None:
    lost = dict.fromkeys((Arm.SPECIFICATION, Arm.LAST_RECORD), 0)
    for arm in lost:
        for seed in range(25):
            lost[arm] += run(DrillCase(IncidentShape.LONG_TAIL.value, arm.value, 2, seed)).lost_acknowledged
    assert lost[Arm.LAST_RECORD] < lost[Arm.SPECIFICATION]


def test_who_does_not_elect_uncleanly_stays_without_a_leader() -> None:
    rows = [run(DrillCase(IncidentShape.KILLS.value, Arm.NONE.value, 1, seed)) for seed in range(5)]
    others = [run(DrillCase(IncidentShape.KILLS.value, Arm.AGGRESSIVE.value, 1, seed)) for seed in range(5)]
    assert sum(row.unavailable_s for row in rows) > sum(row.unavailable_s for row in others)
    assert arm_setup(Arm.NONE).rules.strategy is UncleanRecoveryStrategy.NONE


def test_a_scenario_of_the_tool_can_be_drilled() -> None:
    row = run(DrillCase("stale-long-tail", Arm.LAST_RECORD.value, None, 1))
    assert (row.error, row.min_isr, row.offline, row.offline_after) == ("", -1, 1, 0)
