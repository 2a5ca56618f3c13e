"""The plan that is being edited."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.app.session.draft import Draft
from console.jobs.elect.draft_changes import with_choices
from recovery.plan.values import PlanError
from recovery.ranking import Ranking
from tests.unit.plan.plans import HEADER, equal_logs, plan_of, stale_long_tail

BY_LENGTH = replace(HEADER, ranking=Ranking.SPECIFICATION)


def test_rows_of_two_rankings_never_stand_in_one_plan() -> None:
    first = with_choices(Draft(), plan_of(stale_long_tail(), header=BY_LENGTH))
    with pytest.raises(
        PlanError, match="chosen by specification: choose the new rows by it too, or remove the old ones"
    ):
        with_choices(first, plan_of(equal_logs()))


def test_the_only_row_may_be_chosen_again_by_another_ranking() -> None:
    first = with_choices(Draft(), plan_of(stale_long_tail(), header=BY_LENGTH))
    again = with_choices(first, plan_of(stale_long_tail()))
    assert again.plan is not None
    assert (again.plan.header.ranking, again.plan.rows[0].leader) == (Ranking.LAST_RECORD, 2)
