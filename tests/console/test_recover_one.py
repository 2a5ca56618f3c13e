"""Three in the morning: one partition is offline, and somebody who never saw the console gets it back."""

from __future__ import annotations

from pathlib import Path

from recovery.model import TopicPartition
from tests.console.robot import console, records

PAYMENTS = TopicPartition("payments", 0)


async def test_the_last_replica_standing_is_recovered_from_the_keyboard(home: Path) -> None:
    async with console("last-replica-standing", guide=True) as robot:
        await robot.sees("READ-ONLY", "SIMULATOR", "OFFLINE", "payments-0", "wait for 2")
        await robot.press("enter")
        await robot.sees("Replica log info: payments-0", "1,560", "1,260")
        await robot.plans(1)
        await robot.arms()
        await robot.sees("ARMED")
        confirmation = await robot.asks_to_apply()
        assert confirmation.request.expected == "payments"
        assert confirmation.request.needs_reason
        await robot.confirms("payments", "broker 2 lost its unflushed records")
        await robot.idle()
        await robot.hears("1 recovered")
        await robot.until(lambda: robot.leaders() == {PAYMENTS: 1}, "payments-0 led by 1")
        await robot.until(lambda: not robot.session.view.offline, "nothing offline in the picture")
    (lines,) = records(home)
    assert lines[0]["reason"] == "broker 2 lost its unflushed records"
    assert [line["kind"] for line in lines] == ["run", "before", "after", "end"]
