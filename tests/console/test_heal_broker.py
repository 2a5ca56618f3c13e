"""``N`` in pane 8: new replicas in place of a broker that does not come back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from console.journal.errors import JournalError
from console.journal.journal import Journal
from tests.console.robot import Robot, console, records
from widgets.dialogs.confirmation import Confirmation


@asynccontextmanager
async def armed_at(broker: int) -> AsyncIterator[Robot]:
    async with console("broker-gone-for-good", size=(120, 40)) as robot:
        await robot.looked()
        await robot.opens("8")
        await robot.puts_the_cursor_on(broker)
        await robot.arms()
        yield robot


async def test_what_is_copied_where_is_shown_then_moved_and_in_the_journal(home: Path) -> None:
    async with armed_at(3) as robot:
        await robot.press("N")
        await robot.asked(Confirmation)
        await robot.sees("New replicas for 6 partitions in place of broker 3?", "[ Move ]")
        await robot.sees("SIMULATOR broker-gone-for-good, cluster")
        await robot.sees("orders-0: replicas 1,2,3 become 1,2,5", "… and 2 more")
        await robot.sees("Do this only if broker 3 cannot come back")
        await robot.confirms("6", "incident 7")
        await robot.idle()
        await robot.hears("6 partitions: 6 moved")
    actions = [line["action"] for run in records(home) for line in run if line.get("kind") == "before"]
    assert actions[0] == "heal" and "reassign" in " ".join(actions), actions


async def test_a_journal_that_lacks_the_end_of_the_heal_is_reported(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disk_full(_journal: Journal, _status: int | None) -> None:
        raise JournalError("no space left on device")

    monkeypatch.setattr(Journal, "close", disk_full)
    async with armed_at(3) as robot:
        await robot.press("N")
        await robot.asked(Confirmation)
        await robot.confirms("6", "incident 7")
        await robot.idle()
        await robot.hears("the journal is not complete; only this output shows what was done")


async def test_a_broker_that_is_up_keeps_its_replicas(home: Path) -> None:
    async with armed_at(1) as robot:
        await robot.press("N")
        await robot.idle()
        await robot.hears("broker 1 is up")
    assert not records(home)


async def test_whoever_does_not_confirm_has_sent_nothing(home: Path) -> None:
    async with armed_at(3) as robot:
        await robot.press("N")
        await robot.asked(Confirmation)
        await robot.press("escape")
        await robot.idle()
        await robot.hears("not confirmed: nothing was sent")
    assert not records(home)
