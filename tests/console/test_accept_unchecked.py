"""In the console, a choice that rests on what was not checked needs a reason, kept in the plan and the journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.app.base.question_dialogs import ChoiceQuestion, TextQuestion
from recovery.strategy import Strategy
from tests.console.robot import console, records

pytestmark = pytest.mark.long

WHY = "the hosts kept power: incident 1"


async def test_what_was_not_checked_is_accepted_with_a_reason(home: Path) -> None:
    async with console("four-brokers-min-isr-3") as robot:
        await robot.looked()
        await robot.press("c")
        await robot.asked(ChoiceQuestion)
        await robot.sees("1 loses an unknown number; acknowledged records: none", "asks you for the reason")
        question = robot.app.screen
        assert isinstance(question, ChoiceQuestion)
        assert (
            robot.screen.count("1 loses") == 1
            and "elect 1" not in robot.screen.partition("Keep which log")[2]
        )
        await robot.takes("accept")
        await robot.asked(TextQuestion)
        await robot.answers(WHY)
        await robot.until(lambda: robot.session.draft.plan is not None, "a plan")
        plan = robot.session.draft.plan
        assert plan is not None
        assert [row.leader for row in plan.rows] == [1]
        assert (plan.header.strategy, plan.header.accepted) == (Strategy.BALANCED, WHY)
        await robot.idle()
        await robot.opens("6")
        await robot.arms()
        confirmation = await robot.asks_to_apply()
        await robot.confirms(confirmation.request.expected or "", "incident 1")
        await robot.idle()
    (planned,) = (line for run in records(home) for line in run if line.get("action") == "planned-elections")
    assert planned["detail"]["uncheckedAccepted"] == WHY
