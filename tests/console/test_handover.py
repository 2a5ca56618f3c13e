"""The page for the next person on call, on a key."""

from __future__ import annotations

from pathlib import Path

from tests.console.robot import console


async def test_whoever_takes_over_sees_what_is_open_and_what_was_done(home: Path) -> None:
    assert home
    async with console("last-replica-standing", size=(160, 40)) as robot:
        await robot.press("H")
        await robot.sees(
            "Hand-over: cluster", "1 offline", "ktriage plan --all-offline-partitions", "Nothing was sent"
        )
        await robot.press("escape")
        await robot.plans(1)
        await robot.arms()
        await robot.applies("payments", "drill")
        await robot.hears("leads payments-0")
        await robot.press("H")
        await robot.sees("reason: drill", "ktriage verify", "no partition offline")
