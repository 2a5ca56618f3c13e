"""``balanced`` goes by what can be proved of acknowledged records, and says so in the plan and its file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.acknowledged.verdict import Condition, ConditionKind, PartitionVerdicts, Verdict, VerdictKind
from recovery.advice import advice
from recovery.controller.registration import PartitionChange
from recovery.model import ReplicaLog, Standing, Survey, Unknown
from recovery.plan.make import make_plan
from recovery.plan.read import from_json
from recovery.plan.values import Plan, PlanError
from recovery.plan.write import to_json
from recovery.ranking import Ranking
from recovery.strategy import Decision, DecisionKind, Strategy, WhyNot, decide
from recovery.wording.advice_text import advice_text
from recovery.wording.proof_text import explained_lines
from tests.unit.acknowledged.controller_log import ControllerLog
from tests.unit.plan.plans import HEADER
from tests.unit.recovery.surveys import SILENT, log, survey

Logs = dict[int, ReplicaLog | Unknown]


def balanced(told: Survey, *, unclean_elections: bool = False) -> Decision:
    facts = PartitionFacts(told, unclean_elections=unclean_elections, compacted=False)
    judged = partition_verdicts(facts)
    return decide(told, Ranking.LAST_RECORD, Strategy.BALANCED, judged)


def unchecked() -> Survey:
    """2 lacks nothing if what only the metadata log tells holds; 3, the last ISR member, is silent."""
    logs: Logs = {1: log((0, 0, 900)), 2: log((0, 0, 940)), 3: SILENT}
    return survey(logs, isr=(3,), elr=None, last_known_elr=None)


def test_what_was_not_checked_waits_for_what_can_check_it() -> None:
    decision = balanced(unchecked())
    assert (decision.verdict, decision.waits_for, decision.instead) == (DecisionKind.WAIT, (3,), 2)
    checks = "checked by the answer of broker 3 or the disk of broker 3 or the metadata log"
    assert decision.why_not is WhyNot.UNCHECKED and checks in decision.reason


def test_where_every_log_is_known_the_metadata_log_is_asked_for() -> None:
    """Without a silent replica nobody is waited for."""
    logs: Logs = {1: log((0, 0, 900)), 2: log((2, 0, 940))}
    decision = balanced(survey(logs), unclean_elections=True)
    assert (decision.verdict, decision.waits_for, decision.instead) == (DecisionKind.WAIT, (), -1)
    assert decision.reason.endswith("decided by the metadata log")


def test_somebody_may_accept_what_was_not_checked() -> None:
    told = unchecked()
    judged = partition_verdicts(PartitionFacts(told, unclean_elections=False, compacted=False))
    decision = decide(told, Ranking.LAST_RECORD, Strategy.BALANCED, judged, accept_unchecked=True)
    assert (decision.verdict, decision.leader) == (DecisionKind.ELECT, 2)
    assert "if min ISR was never lower" in decision.reason
    open_ = survey({1: log((0, 0, 900)), 2: SILENT, 3: SILENT})
    judged = partition_verdicts(PartitionFacts(open_, unclean_elections=False, compacted=False))
    decision = decide(open_, Ranking.LAST_RECORD, Strategy.BALANCED, judged, accept_unchecked=True)
    assert decision.verdict is DecisionKind.WAIT, "an open verdict is not accepted"


@pytest.mark.parametrize("ranking", Ranking)
def test_a_log_that_is_proved_whole_is_waited_for_whatever_ranks_first(ranking: Ranking) -> None:
    """The specification's rule ranks 1 first, which heard of a later leader and lacks what 2 took alone."""
    logs: Logs = {1: log((0, 0, 22)), 2: log((0, 0, 22), (2, 22, 77), leader_epoch=2)}
    told = survey(logs, isr=(2,), elr=None, last_known_elr=None, standings={2: Standing.FENCED})
    file = Condition(ConditionKind.MIN_ISR_NEVER_LOWER, (2,))
    verdicts = {
        1: Verdict(VerdictKind.NONE, at_most=0, conditions=(file,)),
        2: Verdict(VerdictKind.NONE, at_most=0),
    }
    decision = decide(told, ranking, Strategy.BALANCED, PartitionVerdicts(verdicts))
    assert (decision.verdict, decision.waits_for) == (DecisionKind.WAIT, (2,))


def test_an_empty_log_is_never_accepted_as_complete() -> None:
    told = survey({1: log()}, elr=(1,))._replace(min_isr=1)
    judged = partition_verdicts(PartitionFacts(told, unclean_elections=False, compacted=False))
    decision = decide(told, Ranking.LAST_RECORD, Strategy.BALANCED, judged, accept_unchecked=True)
    assert judged.candidates[1].none and decision.verdict is DecisionKind.WAIT


def test_an_elr_member_is_waited_for_while_the_others_may_have_lost_unflushed_records() -> None:
    """ISR and ELR are below min ISR: the others left the ELR because they registered after a crash."""
    logs: Logs = {1: log((0, 0, 900)), 2: log((0, 0, 940)), 3: SILENT}
    decision = balanced(survey(logs, elr=(3,)))
    assert (decision.verdict, decision.waits_for) == (DecisionKind.WAIT, (3,))
    assert "started again" in decision.reason


def test_a_high_watermark_above_the_best_log_refuses_and_shows_both_branches() -> None:
    ahead = log((0, 0, 1500))._replace(high_watermark=1500)
    decision = balanced(survey({1: ahead, 2: log((0, 0, 1000), (2, 1000, 1300)), 3: SILENT}))
    assert decision.verdict is DecisionKind.REFUSED
    assert "broker 2 holds up to 1,300 in epoch 2; broker 1 holds up to 1,500 in epoch 0" in decision.reason


def test_what_is_open_waits_for_those_who_can_tell() -> None:
    decision = balanced(survey({1: log((0, 0, 900)), 2: SILENT, 3: SILENT}))
    assert (decision.verdict, decision.waits_for) == (DecisionKind.WAIT, (2, 3))


def test_a_topic_that_elects_uncleanly_by_itself_is_not_decided_by_overlap() -> None:
    logs: Logs = {1: log((0, 0, 900)), 2: log((0, 0, 940)), 3: SILENT}
    assert balanced(survey(logs), unclean_elections=True).waits_for == (3,)


def test_when_nothing_is_left_that_could_tell_more_the_best_is_elected_with_its_bound() -> None:
    """Every log is known, the metadata log too: it begins after the unclean elections that left two branches."""
    controller = ControllerLog(in_snapshot=True, epoch=2)
    controller.isr(2, 3)
    controller.isr(2)
    controller.isr(2, leader=-1)
    facts = controller.facts(
        {1: log((0, 0, 1500)), 2: log((0, 0, 1000), (2, 1000, 1300)), 3: log((0, 0, 1000), (2, 1000, 1300))}
    )
    judged = partition_verdicts(facts)
    decision = decide(facts.survey, Ranking.LAST_RECORD, Strategy.BALANCED, judged)
    assert judged.candidates[2].decided_by == ()
    assert (decision.verdict, decision.leader) == (DecisionKind.ELECT, 2)


def led_alone(*, shuts_down: bool) -> ControllerLog:
    """3 and then 2 drop out, 1 goes on alone below min ISR, and stops."""
    controller = ControllerLog()
    controller.isr(1, 2)
    controller.isr(1)
    if shuts_down:
        controller.shuts_down(1)
    controller.isr(1, leader=-1)
    return controller


def test_a_broker_that_led_alone_and_was_shut_down_is_waited_for_although_none_is_proved() -> None:
    """What it took with acks=1 is only on its log, and its return loses nothing."""
    logs: Logs = {1: SILENT, 2: log((0, 0, 900)), 3: log((0, 0, 800))}
    facts = led_alone(shuts_down=True).facts(logs)
    judged = partition_verdicts(facts)
    assert judged.candidates[2].proved_none
    decision = decide(facts.survey, Ranking.LAST_RECORD, Strategy.BALANCED, judged)
    assert (decision.verdict, decision.waits_for, decision.instead) == (DecisionKind.WAIT, (1,), 2)
    assert decision.why_not is WhyNot.WHOLE_MEMBER
    told = advice(decision)
    assert told is not None
    said = " ".join(advice_text(told).sentences)
    assert (
        "Or elect 2: no acknowledged record is lost, but others may be. It was shut down when last seen"
        in said
    )
    assert "and nothing at all is lost." in said


def test_where_nobody_knows_how_a_broker_stopped_that_led_alone_both_steps_are_told() -> None:
    logs: Logs = {1: SILENT, 2: log((0, 0, 900)), 3: log((0, 0, 800))}
    facts = led_alone(shuts_down=False).facts(logs)
    decision = decide(facts.survey, Ranking.LAST_RECORD, Strategy.BALANCED, partition_verdicts(facts))
    assert (decision.verdict, decision.leader) == (DecisionKind.ELECT, 2)
    told = advice(decision)
    assert told is not None and told.keep_down == ()
    action, holds, first, alone, read = advice_text(told).sentences
    assert action == "Start broker 1 if its host kept power; else elect 2."
    assert holds == "Broker 2 holds every record that was acknowledged with acks=all."
    assert alone.startswith("Broker 1 led alone from T+7 s to T+8 s (1.00 s): what it took then with acks=1")
    assert first == "If the host of broker 1 kept power, start it first: then nothing at all is lost."
    assert read.startswith("If you elect, read the disk of broker 1 before it is started (ktriage disk scan)")


@pytest.mark.parametrize(
    ("min_isr", "acks"), [(2, "(acks=1)"), (1, "(acks=1, and acks=all: the ISR reached min ISR)")]
)
def test_a_broker_that_led_alone_at_min_isr_acknowledged_with_acks_all_too(min_isr: int, acks: str) -> None:
    controller = ControllerLog(min_isr=min_isr)
    controller.isr(1)
    controller.isr(1, leader=-1)
    facts = controller.facts({1: SILENT, 2: log((0, 0, 900)), 3: log((0, 0, 800))})
    steps = " ".join(explained_lines(facts.survey, partition_verdicts(facts)))
    assert f"the ISR was broker 1 alone: what was acknowledged then {acks} is on no other log" in steps


def left_before_another_led_alone() -> ControllerLog:
    """2 is shut down, 1 goes on alone below min ISR, and stops; 2 comes first when it returns."""
    controller = ControllerLog(min_isr=2)
    controller.isr(1, 2)
    controller.shuts_down(2)
    controller.isr(1)
    controller.changes(PartitionChange(leader=-1, isr=(), elr=(2,)))
    return controller


ALL_LOST = "nothing at all is lost"
NO_ACKED = (
    " was shut down when last seen: Kafka elects it without an unclean election, and no record that was"
    " acknowledged with acks=all is lost."
)
LED = "Broker 1 led after broker 2 had left the ISR: what it took then with acks=1 is cut off when broker 2 leads;"


@pytest.mark.parametrize(
    ("leads_last", "logs", "says"),
    [
        (2, {1: SILENT, 2: SILENT, 3: SILENT}, (ALL_LOST,)),
        (
            1,
            {1: SILENT, 2: SILENT, 3: SILENT},
            (NO_ACKED, f"{LED} start broker 1 first if its host kept power."),
        ),
        (1, {1: SILENT, 2: SILENT, 3: log((0, 0, 800))}, (NO_ACKED, f"{LED} start broker 1 first")),
        (
            1,
            {1: log((0, 0, 1800)), 2: SILENT, 3: SILENT},
            (NO_ACKED, f"{LED} read the log of broker 1 first"),
        ),
    ],
    ids=[
        "it led last",
        "all are silent",
        "the later leader is silent",
        "the later leader is up, and restarted",
    ],
)
def test_nothing_at_all_is_lost_only_with_who_led_last(
    leads_last: int, logs: Logs, says: tuple[str, ...]
) -> None:
    controller = left_before_another_led_alone()
    if leads_last == 2:
        controller = ControllerLog(min_isr=2)
        controller.isr(2, 3, leader=2)
        controller.isr(2)
        controller.shuts_down(2)
        controller.changes(PartitionChange(leader=-1, isr=(), elr=(2,)))
    elif logs[1] is not SILENT:
        controller.starts(1)
    facts = controller.facts(logs)
    state = facts.survey.state._replace(elr=(2,), last_known_elr=(leads_last,))
    facts = replace(
        facts, survey=facts.survey._replace(state=state), elr_enabled=True, unclean_elections=False
    )
    told = advice(decide(facts.survey, Ranking.LAST_RECORD, Strategy.BALANCED, partition_verdicts(facts)))
    assert told is not None
    assert told.brokers == (2,)
    said = " ".join(advice_text(told).sentences)
    for sentence in says:
        assert sentence in said
    assert (ALL_LOST in said) is (leads_last == 2)


def test_a_best_log_that_led_later_does_not_wait_for_one_that_would_cut_it_off() -> None:
    facts = left_before_another_led_alone().facts({1: log((0, 0, 1800)), 2: SILENT, 3: SILENT})
    state = facts.survey.state._replace(elr=(2,), last_known_elr=(1,))
    facts = replace(
        facts, survey=facts.survey._replace(state=state), elr_enabled=True, unclean_elections=False
    )
    judged = partition_verdicts(facts)
    assert judged.candidates[1].proved_none
    decision = decide(facts.survey, Ranking.LAST_RECORD, Strategy.BALANCED, judged)
    assert (decision.verdict, decision.leader) == (DecisionKind.ELECT, 1)


def judged_plan() -> Plan:
    told = unchecked()
    judged = partition_verdicts(PartitionFacts(told, unclean_elections=False, compacted=False))
    header = replace(HEADER, accepted="the hosts kept power: incident 4711")
    decision = decide(told, Ranking.LAST_RECORD, Strategy.BALANCED, judged, accept_unchecked=True)
    return make_plan(header, [(told, decision)])


def test_the_verdict_of_each_candidate_is_in_the_plan_file() -> None:
    plan = judged_plan()
    verdict = plan.rows[0].chosen.verdict
    assert verdict is not None
    assert verdict.none
    assert from_json(to_json(plan)) == plan
    assert '"uncheckedAccepted": "the hosts kept power: incident 4711"' in to_json(plan)


def test_a_file_without_verdicts_is_read_and_a_wrong_one_is_one_line() -> None:
    plan = judged_plan()
    row = plan.rows[0]
    bare = replace(
        plan,
        rows=(row._replace(candidates=tuple(c._replace(verdict=None) for c in row.candidates)),),
    )
    assert '"acknowledged"' not in to_json(bare)
    assert from_json(to_json(bare)) == bare
    text = to_json(plan).replace('"verdict": "none, unchecked"', '"verdict": "perhaps"')
    try:
        from_json(text)
    except PlanError as wrong:
        assert (
            "acknowledged.verdict: expected one of none, none, unchecked, none, in doubt, some, open"
            in str(wrong)
        )
    else:
        raise AssertionError("it was read")


def with_failed_disk(logs: Logs, strategy: Strategy) -> Decision:
    """Broker 3, the last ISR member, has a failed disk."""
    told = survey(logs, isr=(3,), elr=None, last_known_elr=None)
    facts = PartitionFacts(told, unclean_elections=False, failed_disks=frozenset({3}), compacted=False)
    return decide(told, Ranking.LAST_RECORD, strategy, partition_verdicts(facts))


def test_complete_does_not_wait_for_a_disk_that_failed_and_elects_nobody_without_its_log() -> None:
    decision = with_failed_disk({1: log((0, 0, 900)), 2: log((0, 0, 940)), 3: SILENT}, Strategy.COMPLETE)
    assert (decision.verdict, decision.waits_for) == (DecisionKind.REFUSED, ())
    assert "the disk of broker 3 FAILED: read what is left of it" in decision.reason
    other = with_failed_disk({1: log((0, 0, 900)), 2: SILENT, 3: SILENT}, Strategy.COMPLETE)
    assert (other.verdict, other.waits_for) == (DecisionKind.WAIT, (2,))


def test_aggressive_without_a_candidate_names_no_failed_disk_as_awaited() -> None:
    decision = with_failed_disk({1: SILENT, 2: SILENT, 3: SILENT}, Strategy.AGGRESSIVE)
    assert (decision.verdict, decision.waits_for) == (DecisionKind.NO_CANDIDATE, (1, 2))
