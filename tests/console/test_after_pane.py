"""What an election did to consumer groups and transactions, on the screen: read, put right, and taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.app.base.question_dialogs import ChoiceQuestion
from tests.console.robot import Robot, console, records
from widgets.dialogs.confirmation import Confirmation


def sent(home: Path) -> list[str]:
    return [line["action"] for run in records(home) for line in run if line.get("kind") == "before"]


async def elected(robot: Robot, broker: int) -> None:
    await robot.chooses(broker)
    await robot.arms()
    await robot.opens("6")
    await robot.applies("payments", "incident 3")
    await robot.hears("need you: V")


async def test_a_group_that_the_election_hurt_is_put_right_and_taken_back(home: Path) -> None:
    async with console("groups-on-the-stale-tail", size=(120, 40)) as robot:
        await elected(robot, 2)
        await robot.opens("9")
        await robot.sees("need you (on the partitions of the plan)", "billing", "x shows what puts it right")
        await robot.puts_the_cursor_on(_key_of(robot, "billing"))
        await robot.press("x")
        await robot.asked(Confirmation)
        await robot.sees("Move 1 committed offset of 1 group?", "billing", "1,450", "1,000")
        await robot.confirms("1", "incident 3")
        await robot.idle()
        await robot.hears("1 offset committed and read back")
        await robot.press("U")
        await robot.asked(Confirmation)
        await robot.sees("Put back 1 committed offset of 1 group?", "as it was before the fix")
        await robot.confirms("1", "too early")
        await robot.idle()
        await robot.hears("1 offset committed and read back")
    assert sent(home).count("commit-offsets") == 2


def _key_of(robot: Robot, group: str) -> object:
    return next(row.key for row in robot.desk.table.shown_rows if row.key[1] == group)


async def test_a_read_only_console_shows_the_fix_and_sends_nothing(home: Path) -> None:
    async with console("groups-on-the-stale-tail", size=(120, 40)) as robot:
        await robot.opens("9")
        # Nobody leads the partition: what its transactions are is not known, and nothing says that all is well.
        await robot.sees(
            "Not known whether somebody needs you: 4 groups not judged, 1 partition without a leader not read",
            "on the whole",
            "audit",
        )
        assert "YOU" not in robot.screen and "0 transactions" not in robot.screen
        assert all(row.needs_you is None for row in robot.desk.table.shown_rows)
        await robot.press("x")
        await robot.idle()
        await robot.hears("the partition has no leader")
        await robot.press("U")
        await robot.idle()
        await robot.hears("has no fix of consumer groups")
    assert not records(home)


@pytest.mark.long
async def test_a_transaction_that_hangs_is_ended_as_it_ended(home: Path) -> None:
    async with console("hanging-transactions", size=(120, 40)) as robot:
        await robot.chooses(2)
        await robot.arms()
        await robot.opens("6")
        await robot.applies("payments", "incident 4")
        await robot.opens("9")
        await robot.sees("transaction")
        row = next(
            row for row in robot.desk.table.shown_rows if row.key[0] == "transaction" and row.needs_you
        )
        await robot.puts_the_cursor_on(row.key)
        await robot.press("x")
        await robot.until(
            lambda: isinstance(robot.app.screen, Confirmation | ChoiceQuestion), "a question about the marker"
        )
        await robot.sees("marker")


async def test_a_group_that_stands_before_a_hanging_transaction_waits_until_that_is_ended(home: Path) -> None:
    async with console("hanging-transactions", size=(120, 40)) as robot:
        await elected(robot, 2)
        await robot.opens("1")
        await robot.sees("1 transaction need you [9]", "9 After needs you")
        await robot.opens("9")
        await robot.sees("need you (on the partitions of the plan)")
        await robot.puts_the_cursor_on(_key_of(robot, "auditor"))
        await robot.sees("waits, if it reads committed records only")
        assert "reads on" not in robot.screen
        await robot.press("x")
        await robot.hears("which hangs: end it first")
        rows = robot.desk.table.shown_rows
        hanging = next(row for row in rows if row.kind == "transaction" and str(row.tp) == "payments-0")
        await robot.puts_the_cursor_on(hanging.key)
        await robot.press("x")
        await robot.asked(Confirmation)
        await robot.confirms("1", "incident 4")
        await robot.hears(f"transaction {hanging.key[1]} payments-0 is no longer in this list")
        await robot.idle()
        # Pane 1 names nobody any more, and the tab has no mark.
        assert not robot.session.left_to_do.clients
        await robot.opens("1")
        assert "need you" not in robot.screen
    assert "write-markers" in sent(home)
