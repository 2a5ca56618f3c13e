"""In the console, what an election cuts off is read first, unless a key declines it, and can be written back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from console.app.app import Console
from console.app.base.question_dialogs import ChoiceQuestion, TextQuestion
from console.jobs.elect.candidate_picker import CandidatePicker
from console.plan_files import newest_rescue
from console.rescue_files.rescued_branch import open_rescue
from recovery.model import TopicPartition
from tests.console.faults import happens, passes
from tests.console.robot import Robot, console, records
from widgets.dialogs.confirmation import Confirmation

pytestmark = pytest.mark.long

PAYMENTS = TopicPartition("payments", 0)


@asynccontextmanager
async def planned() -> AsyncIterator[Robot]:
    """Armed, with 2 chosen by hand; the 500 records of 1 are cut off by that."""
    async with console("stale-long-tail", guide=True) as robot:
        await robot.looked()
        await robot.press("enter")
        await robot.press("c")
        await robot.sees(
            "Keep which log of payments-0?",
            "2 loses 500 or more, old; acknowledged records: 500 or more",
        )
        await robot.sees("1 loses 300 or more, NEWER")
        await robot.takes("compare")
        await robot.asked(CandidatePicker)
        await robot.press("enter")
        await robot.idle()
        await robot.opens("6")
        await robot.arms()
        yield robot


def actions(home: Path) -> list[str]:
    return [line["action"] for run in records(home) for line in run if line.get("kind") == "before"]


async def test_from_the_alarm_to_every_record_back_at_its_place(home: Path) -> None:
    async with planned() as robot:
        await robot.asks_to_apply()
        await robot.sees("Read first:", "Ctrl+R: keep the log of 3", "[ Apply ]")
        await robot.confirms("payments", "incident 1")
        await robot.idle()
        await robot.hears("Broker 2 leads payments-0. 500 offsets saved: B writes back.")
        await robot.sees("Guide: elected, and the 500 offsets that this cut off are saved. Press B")
        await robot.sees(
            "WHAT WAS CUT OFF WHEN IT WAS ELECTED", "saved before the election: 500 offsets; not seen"
        )
        assert "WOULD HAVE LOST" not in robot.screen and "1 loses" not in robot.screen
        await robot.opens("1")
        await robot.sees("500 offsets saved and not written back [B]")
        saved, saved_before = robot.session.left_to_do, robot.session.draft.rescue
        await robot.press("B")
        await robot.asked(TextQuestion)
        await robot.press("enter")
        await robot.asked(ChoiceQuestion)
        await robot.press("enter")
        await robot.asked(Confirmation)
        await robot.sees("Write 500 records back?", "[ Write back ]")
        await robot.sees("SIMULATOR ", ", cluster simulated.")
        await robot.confirms("500", "incident 1")
        await robot.idle()
        await robot.hears("500 records written back; 500 counted")
        await robot.opens("1")
        assert "not written back" not in robot.screen
        await robot.opens("6")
        await robot.sees("written back since: 500 records of 500 rescued offsets")
        await robot.sees("Guide: 800 of 800 records are there", "What only 3 holds is not known")
        # A console that did not write them back itself has it from the journal.
        session = robot.session
        assert session.draft.rescue is not None
        session.left_to_do, session.draft = saved, replace(session.draft, rescue=saved_before)
        await robot.looks_again()
        await robot.sees("written back since: 500 records of 500 rescued offsets")
        assert not session.left_to_do.saved
    assert actions(home) == ["rescue", "planned-elections", "elect", "restore-records"]


async def test_what_destroys_the_most_is_the_last_choice_and_the_journal_says_so(home: Path) -> None:
    async with planned() as robot:
        await robot.asks_to_apply()
        await robot.press("ctrl+r", "ctrl+r", "ctrl+r")
        await robot.sees("! NOTHING is read first: what is cut off is gone for good.")
        await robot.confirms("payments", "incident 1")
        await robot.idle()
        await robot.hears("Broker 2 leads payments-0. No group")
        assert newest_rescue(robot.session.view.cluster_id) is None
    assert actions(home) == ["no-rescue", "planned-elections", "elect"]


async def test_an_election_whose_rescue_is_not_whole_is_sent_only_when_told_to(home: Path) -> None:
    """The broker that holds the tail dies while the question is open."""
    async with planned() as robot:
        await robot.asks_to_apply()
        await happens(robot, lambda b: b.simulation.world.kill_broker(1))
        await robot.confirms("payments", "incident 1")
        await robot.idle()
        await robot.hears("its rescue is not whole")
        assert robot.leaders() == {PAYMENTS: -1}
        await robot.asks_to_apply()
        await robot.press("ctrl+r", "ctrl+r")
        await robot.sees("even if that cannot be read as a whole", "Ctrl+R: no rescue")
        await robot.confirms("payments", "incident 1")
        await robot.idle()
        await robot.until(lambda: robot.leaders() == {PAYMENTS: 2}, "payments-0 led by 2")
        rescue = newest_rescue(robot.session.view.cluster_id)
        assert rescue is not None
        assert [one.broker for one in open_rescue(rescue).index.unread] == [1, 3]
    assert actions(home) == ["rescue", "rescue", "planned-elections", "elect"]


async def test_the_log_of_a_broker_that_is_down_is_kept_when_that_is_chosen(home: Path) -> None:
    async with planned() as robot:
        await robot.asks_to_apply()
        await robot.press("ctrl+r")
        await robot.sees("The log of 3 stays, if down until then: taken out of the replica")
        await robot.confirms("payments", "incident 1")
        await robot.idle()
        await robot.hears("The log of 3 is kept when it starts")
    assert actions(home) == ["rescue", "keep-log", "planned-elections", "elect", "reassign"]


async def test_the_head_names_the_disk_to_read_until_its_broker_comes_back_and_the_bell_rings(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broker 3 is silent at the election, and then started although nobody has read its disk."""
    rung = []
    monkeypatch.setattr(Console, "bell", lambda _app: rung.append(True))
    async with planned() as robot:
        await robot.asks_to_apply()
        await robot.sees("Broker 3 is down and may hold more of payments-0", "48.8 KiB, about 1 s,")
        await robot.confirms("payments", "incident 1")
        await robot.idle()
        await robot.looks_again()
        await robot.sees("read the disk of 3 before it starts")
        assert not rung
        await happens(robot, lambda b: b.simulation.world.start_broker(3))
        await passes(robot, 30)
        await robot.looks_again()
        await robot.hears("broker 3 came back unread: what it alone held of payments-0 is gone")
        assert rung
        await robot.until(lambda: "before it starts" not in robot.screen, "no disk in the head")
        await robot.press("J")
        await robot.sees("before broker 3 is started, read its disk")
