"""A partition's row shows whom it suggests, who could be elected at once, what that loses, and what to do first."""

from __future__ import annotations

import pytest

from console.reading.partition_row import partition_row
from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.advice import advise
from recovery.loss import loss
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy, decide
from tests.pipeline.survey_strategies import surveys

SUGGEST_LATER = (DecisionKind.WAIT, DecisionKind.REPORT_ONLY, DecisionKind.REFUSED)


@pytest.mark.parametrize("ranking", Ranking)
@pytest.mark.parametrize("strategy", Strategy)
def test_a_row_has_the_decision_the_advice_and_the_loss_of_who_can_be_elected_at_once(
    ranking: Ranking, strategy: Strategy
) -> None:
    found = surveys(7, 500)
    electable = 0
    for survey in found:
        judged = partition_verdicts(PartitionFacts(survey)) if survey.state.offline else None
        row = partition_row(survey, ranking, strategy, 1.0, judged)
        assert row.decision == decide(survey, ranking, strategy, judged)
        assert row.advice == advise(survey, ranking, judged)
        now = row.decision
        if row.decision.verdict in SUGGEST_LATER:
            now = decide(survey, ranking, Strategy.AGGRESSIVE)
        leader = now.leader if now.verdict is DecisionKind.ELECT else None
        assert row.now == leader
        assert row.loss == (None if leader is None else loss(survey, leader))
        electable += leader is not None and row.decision.verdict in SUGGEST_LATER
    assert electable or strategy is Strategy.AGGRESSIVE
