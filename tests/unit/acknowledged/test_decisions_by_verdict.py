"""``balanced`` goes by what can be proved of acknowledged records, and says so in the plan and its file."""

from __future__ import annotations

from dataclasses import replace

from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.model import ReplicaLog, Survey, Unknown
from recovery.plan.make import make_plan
from recovery.plan.read import from_json
from recovery.plan.values import Plan, PlanError
from recovery.plan.write import to_json
from recovery.ranking import Ranking
from recovery.strategy import Decision, DecisionKind, Strategy, decide
from tests.unit.plan.plans import HEADER
from tests.unit.recovery.surveys import SILENT, log, survey

Logs = dict[int, ReplicaLog | Unknown]


def balanced(told: Survey, *, unclean_elections: bool = False) -> Decision:
    facts = PartitionFacts(told, unclean_elections=unclean_elections, compacted=False)
    judged = partition_verdicts(facts)
    return decide(told, Ranking.LAST_RECORD, Strategy.BALANCED, judged)


def test_the_last_isr_member_is_not_waited_for_when_another_holds_everything() -> None:
    """Without the ELR Kafka would elect 3 as soon as it is back, whatever its log lost."""
    logs: Logs = {1: log((0, 0, 900)), 2: log((0, 0, 940)), 3: SILENT}
    decision = balanced(survey(logs, isr=(3,), elr=None, last_known_elr=None))
    assert (decision.verdict, decision.leader) == (DecisionKind.ELECT, 2)


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


def test_when_nobody_is_left_to_answer_the_best_is_elected_with_its_bound() -> None:
    logs: Logs = {1: log((0, 0, 1500)), 2: log((0, 0, 1000), (2, 1000, 1300))}
    assert balanced(survey(logs), unclean_elections=True).leader == 2


def judged_plan() -> Plan:
    logs: Logs = {1: log((0, 0, 900)), 2: log((0, 0, 940)), 3: SILENT}
    told = survey(logs, isr=(3,), elr=None, last_known_elr=None)
    return make_plan(HEADER, [(told, balanced(told))])


def test_the_verdict_of_each_candidate_is_in_the_plan_file() -> None:
    plan = judged_plan()
    verdict = plan.rows[0].chosen.verdict
    assert verdict is not None
    assert verdict.none
    assert from_json(to_json(plan)) == plan


def test_a_file_without_verdicts_is_read_and_a_wrong_one_is_one_line() -> None:
    plan = judged_plan()
    row = plan.rows[0]
    bare = replace(
        plan,
        rows=(row._replace(candidates=tuple(c._replace(verdict=None) for c in row.candidates)),),
    )
    assert "acknowledged" not in to_json(bare)
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
