"""A plan against the cluster as it is now: what moved makes its row stale, what is harmless does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from recovery.model import ReplicaLog, Standing, Survey, Unknown, Why
from recovery.plan.compare import compare
from recovery.plan.edit import with_leader
from recovery.plan.judgement import Judgement, Reason, RowDecision
from recovery.plan.values import Plan
from recovery.ranking import Ranking
from tests.unit.plan.plans import HEADER, LONG_TAIL, RIGHT, equal_logs, plan_of, stale_long_tail
from tests.unit.recovery.surveys import NO_READ, SILENT, log

PLAN = plan_of(stale_long_tail())
LOG = Reason.CANDIDATE_LOG
BY_LENGTH = replace(HEADER, ranking=Ranking.SPECIFICATION)


def state(told: Survey, **changes: Any) -> Survey:
    return told._replace(state=told.state._replace(**changes))


def with_log(told: Survey, broker: int, what: ReplicaLog | Unknown) -> Survey:
    return told._replace(
        replicas=tuple(r._replace(log=what) if r.broker == broker else r for r in told.replicas)
    )


def standing(told: Survey, broker: int, now: Standing) -> Survey:
    return told._replace(
        replicas=tuple(r._replace(standing=now) if r.broker == broker else r for r in told.replicas)
    )


def check(now: Survey, plan: Plan = PLAN) -> Judgement:
    (row,) = compare(plan, [now], HEADER.cluster_id)
    return row


def test_a_cluster_that_stood_still_is_as_planned() -> None:
    assert check(stale_long_tail()) == Judgement(PLAN.rows[0].tp, RowDecision.SEND, Reason.AS_PLANNED, "")
    assert check(stale_long_tail()).holds


def test_another_cluster_makes_every_row_stale() -> None:
    plan = plan_of(stale_long_tail(), equal_logs())
    rows = compare(plan, [stale_long_tail(), equal_logs()], "cluster-2")
    assert {(row.decision, row.reason) for row in rows} == {(RowDecision.STALE, Reason.CLUSTER_ID)}
    assert "cluster-1" in rows[0].detail
    assert "cluster-2" in rows[0].detail


@pytest.mark.parametrize(
    ("now", "moved", "said"),
    [
        (state(stale_long_tail(), topic_id="other"), Reason.TOPIC_ID, "deleted and created again"),
        (state(stale_long_tail(), topic_id="other", leader=2), Reason.TOPIC_ID, "deleted and created again"),
        (state(stale_long_tail(), leader_epoch=5), Reason.LEADER_EPOCH, "is 5, was 4: somebody led in between"),
        (state(stale_long_tail(), leader_epoch=3), Reason.LEADER_EPOCH, "is 3, was 4"),
        (state(stale_long_tail(), replicas=(1, 2, 3)), Reason.ASSIGNMENT, "[1, 2, 3], was [1, 2, 3, 4]"),
        (state(stale_long_tail(), replicas=(1, 3, 2, 4)), Reason.ASSIGNMENT, "[1, 3, 2, 4], was [1, 2, 3, 4]"),
        (state(stale_long_tail(), replicas=(2, 3, 1, 4)), Reason.OUR_ORDER, "a run was interrupted, resume it"),
        (stale_long_tail()._replace(reassigning=True), Reason.REASSIGNMENT, "in progress"),
        (with_log(stale_long_tail(), 2, log((0, 0, 1000), (2, 1000, 1299))), LOG, "1,300, now at 1,299"),
        (with_log(stale_long_tail(), 3, log((0, 0, 1000), (2, 1000, 1301))), LOG, "1,300, now at 1,301"),
        (with_log(stale_long_tail(), 1, log((0, 0, 1499))), LOG, "broker 1 ended at 1,500, now at 1,499"),
        (with_log(stale_long_tail(), 1, log((0, 0, 1000), (3, 1000, 1500))), LOG, "was 0, now 3"),
        (with_log(stale_long_tail(), 4, log((2, 0, 1301))), Reason.BETTER_LOG, "broker 4 did not answer when"),
        (with_log(stale_long_tail(), 4, log((3, 0, 10))), Reason.BETTER_LOG, "epoch 3, log end 10"),
    ],
)  # fmt: skip
def test_whatever_moved_is_told_and_the_row_is_stale(now: Survey, moved: Reason, said: str) -> None:
    row = check(now)
    assert (row.decision, row.reason, row.holds) == (RowDecision.STALE, moved, False)
    assert said in row.detail


def test_a_partition_that_is_gone_is_stale() -> None:
    (row,) = compare(PLAN, [], HEADER.cluster_id)
    assert (row.decision, row.reason) == (RowDecision.STALE, Reason.PARTITION)


def test_an_elr_member_that_came_back_by_itself_is_already_online() -> None:
    """Its epoch has moved, of course: that is a success, not a stale row."""
    planned = check(state(stale_long_tail(), leader=2, leader_epoch=5))
    assert (planned.decision, planned.detail) == (RowDecision.ALREADY_ONLINE, "led by 2 as planned")
    elr = plan_of(state(stale_long_tail(), elr=(4,)))
    other = check(state(stale_long_tail(), leader=4, leader_epoch=5), elr)
    assert (other.decision, other.reason) == (RowDecision.ALREADY_ONLINE, Reason.CLEAN_LEADER)
    assert not other.holds


def test_an_elr_member_that_came_back_with_an_empty_disk_is_no_success() -> None:
    elr = plan_of(state(stale_long_tail(), elr=(4,)))
    row = check(with_log(state(stale_long_tail(), leader=4, leader_epoch=5), 4, log()), elr)
    assert (row.decision, row.lost) == (RowDecision.OTHER_LEADER, 1300)
    assert "the leader has no record from before the plan" in row.detail


def test_a_leader_that_nobody_planned_is_named_with_what_it_lost() -> None:
    """Replica 1 stands first: somebody's unclean election took it, and 300 newer offsets are gone."""
    row = check(state(stale_long_tail(), leader=1, leader_epoch=5))
    assert (row.decision, row.lost) == (RowDecision.OTHER_LEADER, 300)
    assert row.detail == "1 leads, and not 2 as planned; at least 300 offsets of the planned log are cut off"


@pytest.mark.parametrize("now", [s for s in Standing if s is not Standing.ELECTABLE])
def test_a_chosen_one_that_cannot_be_elected_now_is_no_stale_plan(now: Standing) -> None:
    row = check(standing(stale_long_tail(), 2, now))
    assert (row.decision, row.reason, row.holds) == (RowDecision.TRY_AGAIN, Reason.NOT_ELECTABLE, False)
    assert "broker 2 is " in row.detail


def test_a_chosen_one_that_tells_nothing_or_not_its_epoch_is_not_elected() -> None:
    assert check(with_log(stale_long_tail(), 2, SILENT)).reason is Reason.NO_ANSWER
    blind = RIGHT._replace(lineage=NO_READ)
    row = check(with_log(stale_long_tail(), 2, blind))
    assert (row.decision, row.holds) == (RowDecision.NOT_POSSIBLE, False)


@pytest.mark.parametrize(
    ("now", "notes"),
    [
        (state(stale_long_tail(), isr=(), elr=(4,), last_known_elr=(3,)), 0),
        (standing(stale_long_tail(), 1, Standing.FENCED), 0),
        (with_log(stale_long_tail(), 2, RIGHT._replace(high_watermark=900, leader_epoch=4)), 0),
        (with_log(stale_long_tail(), 1, SILENT), 1),
        (with_log(stale_long_tail(), 2, RIGHT._replace(log_start_offset=10)), 1),
        (standing(stale_long_tail(), 3, Standing.FENCED), 1),
        (with_log(stale_long_tail(), 4, log((0, 0, 2000))), 0),
        (with_log(stale_long_tail(), 4, log((2, 0, 1300))), 0),
        (with_log(stale_long_tail(), 4, LONG_TAIL._replace(lineage=NO_READ)), 0),
    ],
)
def test_what_does_no_harm_leaves_the_row_true_and_is_noted_where_it_changes_the_picture(
    now: Survey, notes: int
) -> None:
    row = check(now)
    assert row.decision is RowDecision.SEND
    assert len(row.notes) == notes


def test_the_note_says_who_would_lead_now_if_the_chosen_one_dropped_out() -> None:
    row = check(standing(stale_long_tail(), 3, Standing.FENCED))
    assert row.notes == ("should 2 drop out, broker 1 would lead, and not 3 as planned",)


def test_under_the_specifications_ranking_a_silent_one_is_measured_by_its_length() -> None:
    plan = plan_of(stale_long_tail(), header=BY_LENGTH)
    assert plan.rows[0].leader == 1
    longer, shorter = log((0, 0, 1501)), log((9, 0, 1400))
    assert check(with_log(stale_long_tail(), 4, longer), plan).reason is Reason.BETTER_LOG
    assert check(with_log(stale_long_tail(), 4, shorter), plan).decision is RowDecision.SEND


def test_a_better_log_that_was_fenced_and_can_be_elected_now_makes_the_choice_stale() -> None:
    fenced = standing(standing(stale_long_tail(), 2, Standing.FENCED), 3, Standing.FENCED)
    plan = plan_of(fenced)
    assert plan.rows[0].leader == 1
    assert check(fenced, plan).decision is RowDecision.SEND
    row = check(standing(fenced, 3, Standing.ELECTABLE), plan)
    assert (row.decision, row.reason) == (RowDecision.STALE, Reason.BETTER_LOG)
    assert "broker 3 was fenced when the plan was made, can be elected now" in row.detail


def test_who_designated_another_over_a_better_one_is_not_told_of_the_next_better_one() -> None:
    fenced = standing(stale_long_tail(), 2, Standing.FENCED)
    by_hand = with_leader(plan_of(fenced), fenced.tp, 1)
    assert check(stale_long_tail(), by_hand).decision is RowDecision.SEND


def test_a_lineage_that_nobody_needed_is_no_precondition() -> None:
    blind = stale_long_tail()
    for broker in (1, 2, 3):
        told = blind.log(broker)
        assert told is not None
        blind = with_log(blind, broker, told._replace(lineage=Unknown(Why.NOT_ALLOWED, "needs READ")))
    plan = plan_of(blind, header=BY_LENGTH)
    assert plan.rows[0].chosen.last_epoch is None
    assert check(blind, plan).decision is RowDecision.SEND
    assert check(stale_long_tail(), plan).decision is RowDecision.SEND


def test_rows_come_in_the_plans_order_and_each_is_judged_alone() -> None:
    plan = plan_of(stale_long_tail("a"), stale_long_tail("b"), stale_long_tail("c"))
    now = [stale_long_tail("c"), state(stale_long_tail("b"), leader_epoch=9), stale_long_tail("a")]
    assert [(row.tp.topic, row.decision) for row in compare(plan, now, HEADER.cluster_id)] == [
        ("a", RowDecision.SEND),
        ("b", RowDecision.STALE),
        ("c", RowDecision.SEND),
    ]


def test_a_plan_whose_loss_was_made_smaller_by_hand_is_refused() -> None:
    (row,) = PLAN.rows
    told = tuple(
        c._replace(loss=c.loss._replace(at_least=0, at_most=0, tail=())) if c.broker == row.leader else c
        for c in row.candidates
    )
    edited = replace(PLAN, rows=(row._replace(candidates=told, unanswered=()),))
    now = check(stale_long_tail(), edited)
    assert (now.decision, now.reason) == (RowDecision.STALE, Reason.LOSS)
    assert "loses at least 500, and at most 0 in the plan" in now.detail
