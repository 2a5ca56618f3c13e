"""A leader that is cut off from the controllers goes on acknowledging: what that does to the verdicts.

The partition is in epoch 4 and has no leader; broker 1 led in epoch 3, and is fenced.
"""

from __future__ import annotations

import pytest

from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.acknowledged.verdict import ConditionKind, EvidenceKind, Verdict, VerdictKind
from recovery.loss import loss
from recovery.model import ReplicaLog, Standing, Survey, Unknown
from recovery.plan.make import make_plan
from recovery.plan.read import from_json
from recovery.plan.write import to_json
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy, WhyNot, decide
from recovery.wording.verdict_text import verdict_text
from tests.unit.plan.plans import HEADER
from tests.unit.recovery.surveys import SILENT, log, survey

FENCED = {1: Standing.FENCED}
END = 940


def cut_off(end: int = END, *, leads: bool = True) -> ReplicaLog:
    return log((3, 0, end), leader_epoch=3)._replace(high_watermark=end, leads=leads)


def seen(logs: dict[int, ReplicaLog | Unknown], min_isr: int = 1, *fenced: int) -> Survey:
    standings = dict.fromkeys((1, *fenced), Standing.FENCED)
    return survey(logs, isr=(1,), elr=None, last_known_elr=None, standings=standings)._replace(
        min_isr=min_isr
    )


def verdict(told: Survey, broker: int) -> Verdict:
    return partition_verdicts(PartitionFacts(told, unclean_elections=False, compacted=False)).candidates[
        broker
    ]


def test_while_the_old_leader_may_acknowledge_more_nothing_is_proved_of_another_choice() -> None:
    told = seen({1: cut_off(), 2: log((3, 0, END)), 3: log((3, 0, END))})
    found = verdict(told, 2)
    assert (found.kind, found.at_most) == (VerdictKind.OPEN, None)
    assert [(one.kind, one.brokers) for one in found.evidence] == [(EvidenceKind.STILL_WRITING, (1,))]
    assert "stopping broker 1 or mending its network" in verdict_text(found)
    assert loss(told, 2).at_most is None and loss(told, 1).at_most == 0


def test_what_it_has_committed_alone_is_counted_without_an_upper_limit() -> None:
    """It grew by 350, and acknowledges more while the operator reads."""
    found = verdict(seen({1: cut_off(END + 350), 2: log((3, 0, END)), 3: log((3, 0, END))}), 2)
    assert (found.kind, found.at_least, found.at_most, found.exact) == (VerdictKind.SOME, 350, None, False)
    assert "350 or more" in verdict_text(found) and "no others" not in verdict_text(found)


def test_a_min_isr_that_it_cannot_reach_any_more_leaves_a_verdict_that_names_the_belief() -> None:
    """2 and 3 have heard of a newer epoch, and do not follow it."""
    found = verdict(seen({1: cut_off(), 2: log((3, 0, END)), 3: log((3, 0, END))}, 2), 2)
    assert found.at_most == 0
    assert ConditionKind.MIN_ISR_NEVER_LOWER in [one.kind for one in found.conditions]


@pytest.mark.parametrize("strategy", [Strategy.BALANCED, Strategy.COMPLETE])
@pytest.mark.parametrize("min_isr", [1, 2])
def test_it_is_waited_for_whatever_the_verdicts_say(strategy: Strategy, min_isr: int) -> None:
    """What it takes with acks=1 is cut off too."""
    told = seen({1: cut_off(), 2: log((3, 0, END)), 3: log((3, 0, END))}, min_isr)
    judged = partition_verdicts(PartitionFacts(told, unclean_elections=False, compacted=False))
    decision = decide(told, Ranking.LAST_RECORD, strategy, judged)
    assert (decision.verdict, decision.waits_for) == (DecisionKind.WAIT, (1,))
    assert decision.why_not is WhyNot.OLD_LEADER
    assert decision.reason.startswith("broker 1 still acts as leader in epoch 3")


def test_who_follows_a_leader_that_does_not_answer_may_grow_too() -> None:
    """1 and 2 are cut off together: 1 leads and does not answer here, 2 follows it and answers."""
    told = seen({1: SILENT, 2: cut_off(leads=False), 3: log((3, 0, END))}, 2, 2)
    found = verdict(told, 3)
    assert (found.kind, found.at_most) == (VerdictKind.OPEN, None)
    assert [(one.kind, one.brokers) for one in found.evidence] == [(EvidenceKind.STILL_WRITING, (2,))]


def test_a_broker_that_only_lags_and_is_in_touch_with_the_controllers_decides_as_before() -> None:
    lagging = cut_off(leads=False)
    told = survey({1: SILENT, 2: lagging, 3: log((3, 0, END))}, elr=None, last_known_elr=None)
    assert verdict(told, 3).at_most == 0


def test_a_plan_keeps_that_a_log_could_still_grow() -> None:
    told = seen({1: cut_off(), 2: log((3, 0, END)), 3: log((3, 0, END))})
    judged = partition_verdicts(PartitionFacts(told, unclean_elections=False, compacted=False))
    decision = decide(told, Ranking.LAST_RECORD, Strategy.AGGRESSIVE, judged)
    plan = make_plan(HEADER, [(told, decision)])
    (row,) = plan.rows
    assert [one.broker for one in row.candidates if one.still_writes] == [1]
    assert row.loss.at_most is None
    assert from_json(to_json(plan)) == plan
