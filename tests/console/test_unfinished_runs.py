"""An earlier run on this host was killed between an election's order and the way back."""

from __future__ import annotations

from pathlib import Path

from console.change.change import open_journal
from console.journal.unfinished_entries import unfinished
from recovery.model import TopicPartition
from recovery.requests_in_doubt import REORDER
from tests.console.robot import Robot, console, program, records
from widgets.dialogs.confirmation import Confirmation

PAYMENTS = TopicPartition("payments", 0)


def leaves_an_order(robot: Robot, topic_id: str = "") -> None:
    """Its journal as it stands then: the order was written, and nothing says that it was reverted."""
    row = robot.session.draft.row(PAYMENTS)
    assert row is not None
    written = row.written_order
    if topic_id:
        written = written._replace(topic_id=topic_id)
    with open_journal(program(), robot.session.view.cluster_id, "killed") as journal:
        journal.after(journal.before(REORDER, {"rows": (written,)}), {"applied": [PAYMENTS]})


async def applies_up_to_the_question(robot: Robot) -> None:
    await robot.plans(1)
    leaves_an_order(robot)
    await robot.arms()
    await robot.asks_to_apply()
    first = robot.app.screen
    await robot.fills("payments", "drill")
    await robot.until(
        lambda: isinstance(robot.app.screen, Confirmation) and robot.app.screen is not first,
        "the question about the earlier run",
    )
    await robot.sees("An earlier run is unfinished", "payments-0", "[ Cancel ]")


async def test_it_is_finished_first_when_somebody_says_so_and_then_the_plan_is_applied(home: Path) -> None:
    async with console("last-replica-standing") as robot:
        await applies_up_to_the_question(robot)
        await robot.confirms()
        await robot.idle()
        await robot.hears("leads payments-0")
        assert unfinished(robot.session.view.cluster_id).nothing
    _killed, refused, finished = records(home)
    assert [line["kind"] for line in refused] == ["run", "end"]
    steps = [line.get("action", line["kind"]) for line in finished if line["kind"] != "after"]
    sent = ["rescue", "planned-elections", "elect", "end"]
    assert steps[-5:] == ["settled", *sent], "settled before the election is sent"


async def test_whoever_says_no_has_sent_nothing_and_is_told_the_command_that_finishes_it(home: Path) -> None:
    async with console("last-replica-standing") as robot:
        await applies_up_to_the_question(robot)
        await robot.press("escape")
        await robot.idle()
        await robot.hears(
            "an earlier run is unfinished and nothing was sent; finish it first: ktriage resume"
        )
        assert not unfinished(robot.session.view.cluster_id).nothing
    assert "before" not in [line["kind"] for line in records(home)[-1]]


async def test_the_journal_tells_how_a_run_of_the_console_ended_and_which_one_goes_on(home: Path) -> None:
    async with console("last-replica-standing", size=(160, 40)) as robot:
        await robot.plans(1)
        await robot.arms()
        await robot.applies("payments", "drill")
        await robot.hears("leads payments-0")
        await robot.press("J")
        await robot.sees("ended with status 0: 1 elected", "reason: drill")
        await robot.press("escape")
        cluster = robot.session.view.cluster_id
        with open_journal(program(), cluster, "another terminal's") as journal:
            entry = journal.before("remove-voter", {})
            await robot.press("J")
            await robot.sees("is still going on", "another terminal's")
            assert "did not end" not in robot.screen
            assert "whose end is not known" not in robot.screen, "it is no earlier run's"
            await robot.press("escape")
            journal.after(entry, {})
            journal.conclude(1)
        await robot.press("J")
        await robot.sees("ended with status 1")
    assert [lines[-1]["status"] for lines in records(home)] == [0, 1]


async def test_a_console_that_is_opened_after_a_kill_says_so_with_the_command_that_finishes_it(
    home: Path,
) -> None:
    async with console("last-replica-standing") as robot:
        await robot.plans(1)
        leaves_an_order(robot)
    async with console("last-replica-standing", size=(200, 30)) as robot:
        await robot.hears("an earlier run is unfinished: J shows what it left. To finish it: ktriage resume")
        await robot.press("J")
        await robot.sees("may have left 1 assignment in the order of an election: payments-0")
    assert len(records(home)) == 1


async def test_what_was_left_on_another_cluster_with_the_same_id_is_no_reminder_of_the_console(
    home: Path,
) -> None:
    async with console("last-replica-standing") as robot:
        await robot.plans(1)
        leaves_an_order(robot, "a-topic-of-another-one")
    async with console("last-replica-standing", size=(200, 30)) as robot:
        await robot.idle()
        assert "an earlier run is unfinished" not in robot.screen
        await robot.press("J")
        await robot.sees(
            "left out: 1 run in the journal of", "nothing was sent to this cluster from this host"
        )
        assert "may have left" not in robot.screen
    assert len(records(home)) == 1
