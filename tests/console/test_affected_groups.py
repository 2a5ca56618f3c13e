"""Consumer groups that an election affects, in pane 6 before it, and on the hand-over page after it."""

from __future__ import annotations

from pathlib import Path

from recovery.model import TopicPartition
from tests.console.robot import console

PAYMENTS = TopicPartition("payments", 0)


async def test_pane_6_names_the_groups_before_and_the_hand_over_after_the_election(home: Path) -> None:
    async with console("groups-on-the-stale-tail", size=(140, 45)) as robot:
        await robot.looked()
        await robot.opens("1")
        await robot.puts_the_cursor_on(PAYMENTS)
        await robot.chooses(2)
        await robot.opens("6")
        await robot.sees("2 consumer groups affected (audit, billing)", "2 on the branch that is cut off")
        await robot.sees("billing on payments-0: committed 1,450 (epoch 0)", "back to 1,000")
        await robot.arms()
        await robot.applies("payments", "drill")
        await robot.press("H")
        await robot.sees(
            "Hand-over", "affected by the elections and not put right with ktriage: audit, billing"
        )
        await robot.sees("groups fix")
