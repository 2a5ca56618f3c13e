"""Making a plan, choosing another leader in it, and taking a part of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from recovery.loss import loss
from recovery.model import Standing, TopicPartition, Unknown, Why
from recovery.plan.edit import with_leader
from recovery.plan.make import make_plan, plan_of_bare
from recovery.plan.plan_parts import first, max_loss, only
from recovery.plan.read import from_json
from recovery.plan.topic_marks import Mark, marks
from recovery.plan.values import BarePlan, BareRow, Plan, PlanError
from recovery.plan.write import to_json
from recovery.ranking import Ranking
from recovery.strategy import Decision, DecisionKind
from tests.unit.plan.plans import (
    HEADER,
    LONG_TAIL,
    RIGHT,
    decided,
    equal_logs,
    named,
    nobody,
    plan_of,
    plans,
    preconditions,
    stale_long_tail,
    story,
)
from tests.unit.recovery.surveys import NO_READ, SILENT, log, survey

ORDERS = TopicPartition("orders", 0)


def test_the_later_epoch_leads_and_its_equal_would_follow() -> None:
    row = plan_of(stale_long_tail()).rows[0]
    assert (row.leader, row.order, row.silent) == (2, (2, 3, 1, 4), (4,))
    assert row.successor is not None
    assert (row.successor.broker, row.other_ranking_leader) == (3, 1)


def test_every_candidate_has_its_own_loss_as_the_loss_rule_counts_it() -> None:
    told = stale_long_tail()
    row = plan_of(told).rows[0]
    assert {c.broker: c.loss for c in row.candidates} == {b: loss(told, b) for b in (1, 2, 3)}


def test_equal_logs_have_equal_losses_even_where_another_answer_is_missing() -> None:
    told = survey({1: RIGHT, 2: RIGHT, 3: NO_READ, 4: LONG_TAIL})
    row = plan_of(told).rows[0]
    assert {c.broker: c.loss for c in row.candidates} == {b: loss(told, b) for b in (1, 2, 4)}


def test_a_log_that_starts_later_loses_the_head_and_its_twin_does_not() -> None:
    told = survey({1: RIGHT, 2: RIGHT._replace(log_start_offset=400)})
    row = plan_of(told).rows[0]
    assert {c.broker: c.loss.at_least for c in row.candidates} == {1: 0, 2: 400}


def test_under_the_specifications_ranking_a_log_without_lineage_keeps_its_own_doubt() -> None:
    blind = RIGHT._replace(lineage=Unknown(Why.NOT_ALLOWED, "needs READ"))
    told = survey({1: blind, 2: blind, 3: RIGHT})
    row = plan_of(told, header=replace(HEADER, ranking=Ranking.SPECIFICATION)).rows[0]
    assert {c.broker: c.loss for c in row.candidates} == {b: loss(told, b) for b in (1, 2, 3)}
    assert {c.broker: c.last_epoch for c in row.candidates} == {1: None, 2: None, 3: 2}


def test_who_cannot_lead_stands_apart_with_the_reason_and_whom_to_wait_for() -> None:
    plan = plan_of(nobody(), named(survey({1: RIGHT}, leader=1), "fine", 0))
    assert plan.rows == ()
    assert [(row.verdict, row.waits_for, row.leader) for row in plan.not_elected] == [
        (DecisionKind.NO_CANDIDATE, (1, 2), -1),
        (DecisionKind.ALREADY_ONLINE, (), 1),
    ]


def test_a_partition_chosen_for_twice_is_refused() -> None:
    with pytest.raises(PlanError, match="orders-0 was chosen for twice"):
        plan_of(stale_long_tail(), stale_long_tail())


def test_a_decision_for_a_broker_that_told_nothing_is_refused() -> None:
    with pytest.raises(PlanError, match="broker 4 did not report its log"):
        make_plan(HEADER, [(stale_long_tail(), Decision(DecisionKind.ELECT, 4, (4, 1, 2, 3), (), "", None))])


def test_an_error_of_several_lines_from_a_broker_still_makes_a_file_that_can_be_read() -> None:
    plan = make_plan(
        HEADER, [(nobody(), Decision(DecisionKind.REFUSED, -1, (), (), "one\n two\x1b[31m", None))]
    )
    assert plan.not_elected[0].reason == "one two?[31m"
    assert from_json(to_json(plan)) == plan


def test_designating_a_lesser_one_keeps_every_precondition_and_says_whom_it_passes_over() -> None:
    plan = with_leader(story(), ORDERS, 1)
    row, before = plan.rows[0], story().rows[0]
    assert row.order == (1, 2, 3, 4)
    assert preconditions(row) == preconditions(before)
    assert "by hand; 2 ranks best" in row.reason
    assert row.other_ranking_leader is None
    assert plan.rows[1:] == story().rows[1:]


def test_designating_back_gives_the_first_order_again() -> None:
    there_and_back = with_leader(with_leader(story(), ORDERS, 1), ORDERS, 2)
    assert there_and_back.rows[0].order == story().rows[0].order


@settings(max_examples=40)
@given(plans())
def test_an_edited_row_has_the_chosen_first_every_replica_once_and_the_silent_last(plan: Plan) -> None:
    for row in plan.rows:
        for candidate in row.candidates:
            if not candidate.electable:
                with pytest.raises(PlanError, match=f"broker {candidate.broker} was "):
                    with_leader(plan, row.tp, candidate.broker)
                continue
            changed = with_leader(plan, row.tp, candidate.broker).row(row.tp)
            assert changed is not None
            assert changed.order[0] == candidate.broker
            assert sorted(changed.order) == sorted(row.replicas)
            if candidate.broker != row.leader:
                assert changed.order[len(changed.order) - len(row.silent) :] == row.silent
            assert preconditions(changed) == preconditions(row)


@pytest.mark.parametrize(
    ("broker", "why"),
    [
        (9, "orders-0: broker 9 is not in the replica set"),
        (4, "orders-0: broker 4 did not answer when the plan was made"),
        (3, "orders-0: broker 3 was fenced when the plan was made"),
    ],
)
def test_who_cannot_be_elected_cannot_be_designated(broker: int, why: str) -> None:
    told = survey({1: LONG_TAIL, 2: RIGHT, 3: RIGHT, 4: SILENT}, standings={3: Standing.FENCED})
    with pytest.raises(PlanError, match=why):
        with_leader(plan_of(named(told, "orders", 0)), ORDERS, broker)


def test_a_row_that_nobody_leads_cannot_be_given_a_leader() -> None:
    with pytest.raises(PlanError, match="lost-0: nobody is elected for it: no replica answered"):
        with_leader(story(), TopicPartition("lost", 0), 1)
    with pytest.raises(PlanError, match="other-0: it is not in the plan"):
        with_leader(story(), TopicPartition("other", 0), 1)


def test_a_bare_file_is_asked_afresh_and_gets_its_preconditions() -> None:
    bare = BarePlan((BareRow(ORDERS, 1), BareRow(TopicPartition("audit", 0), 1)))
    plan = plan_of_bare(HEADER, bare, [stale_long_tail(), equal_logs()])
    assert [(row.tp.topic, row.leader) for row in plan.rows] == [("orders", 1), ("audit", 1)]
    assert plan.rows[0].order == (1, 2, 3, 4)
    assert preconditions(plan.rows[0]) == preconditions(story().rows[0])


def test_a_bare_row_that_cannot_be_elected_is_said_and_nobody_takes_its_place() -> None:
    rows = [("orders", 4), ("orders2", 9), ("fenced", 3), ("gone", 1), ("online", 2), ("moving", 2)]
    bare = BarePlan(tuple(BareRow(TopicPartition(topic, 0), leader) for topic, leader in rows))
    fenced = survey({1: LONG_TAIL, 2: RIGHT, 3: RIGHT}, standings={3: Standing.FENCED})
    surveys = [
        stale_long_tail(),
        stale_long_tail("orders2"),
        named(fenced, "fenced", 0),
        named(survey({1: RIGHT, 2: RIGHT}, leader=1), "online", 0),
        named(survey({1: RIGHT, 2: RIGHT}, reassigning=True), "moving", 0),
    ]
    plan = plan_of_bare(HEADER, bare, surveys)
    assert plan.rows == ()
    said = {row.tp.topic: (row.verdict, row.reason) for row in plan.not_elected}
    assert said["orders"] == (
        DecisionKind.REFUSED,
        "broker 4 cannot be elected: fenced; broker 4 did not report its log (not answered: connection refused)",
    )
    assert said["orders2"] == (
        DecisionKind.REFUSED,
        "broker 9 has no replica; the replicas are on [1, 2, 3, 4]",
    )
    assert said["fenced"] == (DecisionKind.REFUSED, "broker 3 cannot be elected: fenced")
    assert said["gone"] == (DecisionKind.REFUSED, "the partition does not exist or may not be seen")
    assert said["online"] == (DecisionKind.ALREADY_ONLINE, "led by 1")
    assert said["moving"][0] is DecisionKind.REFUSED


def canary() -> Plan:
    small = named(survey({1: log((0, 0, 110)), 2: log((0, 0, 100), (1, 100, 105))}), "small", 0)
    return plan_of(stale_long_tail(), equal_logs("audit", 0), small, equal_logs("audit", 1), nobody())


def test_the_first_n_are_the_files_first_n() -> None:
    assert first(canary(), 2).rows == canary().rows[:2]
    assert first(canary(), 99).rows == canary().rows
    with pytest.raises(PlanError, match="at least 1"):
        first(canary(), 0)


def test_only_a_topic_and_a_topic_that_is_not_there() -> None:
    assert [row.tp for row in only(canary(), ["audit"]).rows] == [("audit", 0), ("audit", 1)]
    with pytest.raises(PlanError, match="no partition of lost"):
        only(canary(), ["audit", "lost"])


def test_a_loss_without_a_known_bound_is_over_every_limit() -> None:
    assert [row.tp.topic for row in max_loss(canary(), 10).rows] == ["audit", "small", "audit"]
    assert [row.tp.topic for row in max_loss(canary(), 9).rows] == ["audit", "audit"]
    assert [row.tp.topic for row in max_loss(canary(), 1 << 62).rows] == ["audit", "small", "audit"]
    with pytest.raises(PlanError, match="from 0"):
        max_loss(canary(), -1)


def test_what_was_selected_is_the_plan_of_the_whole() -> None:
    part = first(canary(), 1)
    assert (part.header, part.not_elected) == (canary().header, canary().not_elected)


@pytest.mark.parametrize(
    ("topic", "config", "said"),
    [
        ("orders", {"cleanup.policy": "delete"}, ()),
        ("orders", {"cleanup.policy": "compact,delete"}, (Mark.COMPACTED,)),
        ("orders", {"remote.storage.enable": "true"}, (Mark.TIERED,)),
        ("__transaction_state", {"cleanup.policy": "compact"},
         (Mark.INTERNAL, Mark.TRANSACTIONAL, Mark.COMPACTED)),
        ("__consumer_offsets", Unknown(Why.NOT_ALLOWED, ""), (Mark.INTERNAL, Mark.UNKNOWN)),
        ("orders", None, (Mark.UNKNOWN,)),
    ],
)  # fmt: skip
def test_marks_say_what_else_goes(topic: str, config: dict[str, str] | None, said: tuple[Mark, ...]) -> None:
    assert marks(topic, config) == said
    assert all(mark.meaning for mark in said)


def test_marks_stand_in_the_file() -> None:
    plan = make_plan(HEADER, [decided(equal_logs())], {"audit": (Mark.COMPACTED, Mark.TIERED)})
    assert from_json(to_json(plan)) == plan
    assert plan.rows[0].marks == (Mark.COMPACTED, Mark.TIERED)
