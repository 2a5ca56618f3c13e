"""A broker with the better log comes back while the confirmation stands open."""

from __future__ import annotations

from recovery.model import TopicPartition
from tests.console.faults import answers_again, hangs
from tests.console.robot import console

PAYMENTS = TopicPartition("payments", 0)


async def test_the_older_log_is_not_elected_once_the_better_one_answers_again() -> None:
    async with console("last-replica-standing") as robot:
        await hangs(robot, 1)
        await robot.looks_again()
        await robot.plans(0)
        await robot.arms()
        await robot.asks_to_apply()
        await answers_again(robot, 1)
        await robot.confirms("payments", "drill")
        await robot.idle()
        await robot.hears("broker 1 did not answer when the plan was made, and now answers with a better log")
        assert not robot.session.draft.outcomes[PAYMENTS].good
        await robot.looks_again()
        assert robot.leaders() == {PAYMENTS: -1}
