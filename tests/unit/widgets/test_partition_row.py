"""A partition's row shows whom it suggests, who could be elected at once, what that loses, and what to do first."""

from __future__ import annotations

import pytest

from console.app.base.table_actions import row_gone_text
from console.reading.partition_row import bare_row, partition_row
from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.advice import advise
from recovery.loss import loss
from recovery.model import PartitionState
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy, decide
from tests.pipeline.survey_strategies import surveys
from widgets.table import RowTable

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


def _state(partition: int, leader: int) -> PartitionState:
    return PartitionState("payments", partition, "", leader, 3, (1, 2), (), (), (2,), ())


@pytest.mark.parametrize(
    ("led", "text"),
    [
        (1, "payments-0 has a leader again (broker 2). The list is empty."),
        (3, "3 partitions have a leader again, such as payments-0 (broker 2). The list is empty."),
    ],
)
def test_of_several_partitions_that_got_a_leader_the_number_is_told(led: int, text: str) -> None:
    """Partition 3 had a leader before, and is no news."""
    rows = [bare_row(_state(number, -1 if number < 3 else 2)) for number in range(4)]
    now = [_state(number, 2 if number < led or number == 3 else -1) for number in range(4)]
    gone = RowTable.RowGone(RowTable((), lambda row: row.state.tp), rows[0].state.tp, rows[0], None, rows)
    assert row_gone_text(gone, now, 0) == text
