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
        await robot.asks_to_apply()
        await robot.sees("2 groups (audit, billing) need another offset after the election")
        await robot.confirms("payments", "drill")
        await robot.idle()
        # A leader alone is no recovery: two groups would skip records.
        await robot.hears("offsets saved: B writes back. 2 groups, 0 transactions need you: V")
        assert "recovered" not in robot.screen
        # Whoever looks later sees no all-clear.
        await robot.opens("1")
        await robot.looks_again()
        await robot.sees(
            "500 offsets saved and not written back [B]", "2 groups, 0 transactions need you [9]"
        )
        await robot.sees("9 After needs you")
        await robot.hears("payments-0 has a leader again (broker 2). The list is empty. 500 offsets saved")
        await robot.hears("2 groups, 0 transactions need you: 9.")
        await robot.press("H")
        await robot.sees(
            "Hand-over", "affected by the elections and not put right with ktriage: audit, billing"
        )
        await robot.sees("groups fix")


async def test_a_transaction_that_hangs_after_the_election_is_reported_with_its_result(home: Path) -> None:
    """An election that loses nothing of what was acknowledged is no recovery while consumers stand still."""
    async with console("hanging-transactions", size=(140, 45), guide=True) as robot:
        await robot.looked()
        await robot.plans(2)
        await robot.arms()
        confirmation = await robot.asks_to_apply()
        await robot.confirms(confirmation.request.expected or "", "drill")
        await robot.idle()
        await robot.hears("0 groups, 1 transaction need you: V")
        assert "recovered" not in robot.screen
        await robot.sees("Guide: elected")
