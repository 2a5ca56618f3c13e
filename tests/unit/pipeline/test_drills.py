"""One incident of a drill, without Spark."""

from __future__ import annotations

import pytest

from benchmarks.drill.drill_run import DrillCase, run, run_arms
from benchmarks.drill.incident import IncidentShape, scenario
from benchmarks.drill.recovery_arms import Arm, arm_setup
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


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "min_isr", "seed"),
    [
        ("long-tail", 1, 1),
        ("failed-disk", 2, 4),
        ("no-elr", 2, 2),
        ("power", 1, 2),
        ("stale-long-tail", None, 1),
    ],
)
def test_arms_that_share_an_incident_have_the_rows_that_each_has_alone(
    name: str, min_isr: int | None, seed: int
) -> None:
    arms = [arm.value for arm in Arm]
    rows = run_arms(name, arms, min_isr, seed)
    assert rows == [run(DrillCase(name, arm, min_isr, seed)) for arm in arms]
    assert not any(row.error for row in rows)


def test_an_arm_that_cannot_be_run_leaves_the_others_their_rows() -> None:
    failed, ran = run_arms("kills", ["no-such-arm", Arm.NOBODY.value], 1, 1)
    assert "no-such-arm" in failed.error and "--arm no-such-arm" in failed.replay
    assert ran == run(DrillCase("kills", Arm.NOBODY.value, 1, 1)) and not ran.error


@pytest.mark.long
def test_a_choice_by_length_destroys_what_the_last_records_epoch_keeps() -> None:
    lost = dict.fromkeys((Arm.SPECIFICATION.value, Arm.LAST_RECORD.value), 0)
    for seed in range(25):
        for row in run_arms(IncidentShape.LONG_TAIL.value, list(lost), 2, seed):
            lost[row.arm] += row.lost_acknowledged
    assert lost[Arm.LAST_RECORD.value] < lost[Arm.SPECIFICATION.value]


def test_who_does_not_elect_uncleanly_stays_without_a_leader() -> None:
    rows = [run(DrillCase(IncidentShape.KILLS.value, Arm.NONE.value, 1, seed)) for seed in range(5)]
    others = [run(DrillCase(IncidentShape.KILLS.value, Arm.AGGRESSIVE.value, 1, seed)) for seed in range(5)]
    assert sum(row.unavailable_s for row in rows) > sum(row.unavailable_s for row in others)
    assert arm_setup(Arm.NONE).rules.strategy is UncleanRecoveryStrategy.NONE


def test_a_cluster_without_the_elr_has_none_with_any_arm() -> None:
    for arm in Arm:
        drawn = scenario(IncidentShape.NO_ELR.value, 1, arm_setup(arm).rules, 2)
        assert not drawn.topology.config.rules.elr
        assert drawn.topology.config.high_watermark_needs_min_isr, "no feature guards that rule"


def test_waiting_for_the_last_isr_member_costs_time_that_a_proof_saves() -> None:
    """Without the ELR: balanced elects where the best is proved to hold everything, complete waits for all. In most
    incidents a restart leaves a doubt, and balanced waits as long.
    """
    rows = {
        arm: [run(DrillCase(IncidentShape.NO_ELR.value, arm.value, 2, seed)) for seed in (2, 6)]
        for arm in (Arm.CAREFUL, Arm.WHOLE)
    }
    lost = {arm: sum(row.lost_acknowledged for row in found) for arm, found in rows.items()}
    offline = {arm: sum(row.unavailable_s for row in found) for arm, found in rows.items()}
    assert lost[Arm.CAREFUL] <= lost[Arm.WHOLE]
    assert offline[Arm.CAREFUL] <= offline[Arm.WHOLE]


def test_a_topic_that_elects_by_itself_leaves_nothing_to_an_operator() -> None:
    rows = [run(DrillCase(IncidentShape.SELF_ELECTING.value, arm.value, 2, 1)) for arm in Arm]
    assert {(row.lost_acknowledged, row.offline, row.decisions) for row in rows} == {(80, 0, 0)}


def test_a_failed_disk_is_not_waited_for_until_it_returns_empty() -> None:
    rows = {
        arm: run(DrillCase(IncidentShape.FAILED_DISK.value, arm.value, 2, 4))
        for arm in (Arm.CAREFUL, Arm.RANDOM_UNCLEAN)
    }
    assert all(row.offline == 1 for row in rows.values())
    assert rows[Arm.CAREFUL].lost_acknowledged < rows[Arm.RANDOM_UNCLEAN].lost_acknowledged


def test_an_operator_who_waited_looks_again() -> None:
    row = run(DrillCase(IncidentShape.LONG_TAIL.value, Arm.CAREFUL.value, 2, 6))
    assert (row.waits, row.decisions, row.offline_after) == (1, 2, 0)


def test_a_replaced_disk_is_not_taken_for_a_replica_that_answered() -> None:
    """The last leader's disk failed and was replaced. What it held may be on the old disk alone, which nobody reads
    here: the careful operator waits, and an election would lose acknowledged records.
    """
    rows = {
        arm: run(DrillCase(IncidentShape.FAILED_DISK.value, arm.value, 2, 2))
        for arm in (Arm.CAREFUL, Arm.LAST_RECORD)
    }
    assert (rows[Arm.CAREFUL].offline_after, rows[Arm.CAREFUL].lost_acknowledged) == (1, 0)
    assert rows[Arm.LAST_RECORD].lost_acknowledged > 0


def test_a_scenario_of_the_tool_can_be_drilled() -> None:
    row = run(DrillCase("stale-long-tail", Arm.LAST_RECORD.value, None, 1))
    assert (row.error, row.min_isr, row.offline, row.offline_after) == ("", -1, 1, 0)


def test_what_a_choice_cuts_off_of_a_replica_that_answers_is_not_lost_for_good() -> None:
    rows = [
        run(DrillCase(IncidentShape.LONG_TAIL.value, Arm.LAST_RECORD.value, 1, seed)) for seed in range(8)
    ]
    assert sum(row.rescuable for row in rows) > 0
    assert sum(row.lost_for_good for row in rows) > 0
    for row in rows:
        assert not row.error, row
        assert row.rescuable + row.lost_for_good == row.lost_acknowledged + row.lost_other


def test_nobody_rescues_what_no_replica_that_answers_has() -> None:
    """The controller elects by itself, or an operator with the released tools, who asks no replica."""
    for arm in (Arm.AGGRESSIVE, Arm.RANDOM_UNCLEAN, Arm.NOBODY):
        row = run(DrillCase(IncidentShape.LONG_TAIL.value, arm.value, 1, 1))
        assert (row.rescuable, row.lost_for_good) == (0, row.lost_acknowledged + row.lost_other)
