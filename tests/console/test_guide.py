"""The guide is walked on the smallest usual terminal, by what can be read on it."""

from __future__ import annotations

import re

import pytest

from console.app.base.question_dialogs import ChoiceQuestion
from recovery.model import TopicPartition
from tests.console.robot import Robot, console

KEYS = re.compile(r"(?:[Pp]ress|[:,;]) (Enter|Tab|End|[A-Za-z0-9?])(?= |,|\.)")
OF_TABLES = {"Enter", "Tab", "End"}


def guide(robot: Robot) -> str:
    """The guide's lines as they stand on the screen, as one."""
    lines = robot.screen.splitlines()
    first = next(number for number, text in enumerate(lines) if text.startswith("Guide: "))
    told = [lines[first]]
    for text in lines[first + 1 :]:
        if not text.startswith("       "):
            break
        told.append(text.strip())
    return " ".join(told)


def named(robot: Robot) -> set[str]:
    """The keys that the guide names, of a chain (6, then B) the first; each works now."""
    keys = set(KEYS.findall(guide(robot)))
    disabled = {action.shown: why for action, why in robot.desk.actions() if why}
    assert not {key: disabled[key] for key in keys & set(disabled)}, guide(robot)
    assert keys <= {action.shown for action, _ in robot.desk.actions()} | OF_TABLES, guide(robot)
    return keys


async def test_the_guide_leads_to_a_leader_by_keys_that_work_and_points_at_what_is_seen() -> None:
    async with console("last-replica-standing", guide=True, size=(80, 24)) as robot:
        await robot.sees("Do first", "payments-0")
        assert "Enter" in named(robot)
        await robot.press("enter")
        await robot.sees("broker 0", "broker 1", "end 1,560")
        assert {"Tab", "c"} <= named(robot)
        assert "then End" in guide(robot)
        assert "drawn above" in guide(robot)
        await robot.press("tab", "end")
        await robot.sees("elect 0", "elect 1")
        await robot.chooses(1)
        assert "6" in named(robot)
        await robot.opens("6")
        assert {"e", "R", "A"} <= named(robot)
        await robot.arms()
        assert "X" in named(robot)
        await robot.applies("payments", "drill")
        await robot.until(lambda: not robot.session.view.offline, "nothing offline in the picture")
        named(robot)
        await robot.opens("1")
        named(robot)


async def test_a_console_that_cannot_be_armed_is_not_told_to_press_a() -> None:
    async with console("last-replica-standing", guide=True, read_only=True) as robot:
        await robot.plans(1)
        assert "A" not in named(robot)
        await robot.sees("stays read-only")


async def test_a_lost_quorum_names_no_key_for_the_pane_that_is_open() -> None:
    async with console("two-of-three-voters-lost", guide=True) as robot:
        await robot.until(lambda: "the quorum is lost" in robot.screen, "a lost quorum")
        assert "4" in named(robot)
        await robot.opens("4")
        assert "4" not in named(robot)


async def test_where_a_broker_is_to_be_started_the_guide_does_not_lead_to_an_election() -> None:
    async with console("zone-power-loss", guide=True) as robot:
        await robot.sees("Do first: Start broker 2", "Do what Do first says.")
        assert "then c there" in guide(robot)


@pytest.mark.long
async def test_waiting_is_an_answer_and_is_confirmed_in_words() -> None:
    async with console("offline-2000") as robot:
        await robot.press("c")
        await robot.asked(ChoiceQuestion)
        await robot.press("enter")
        await robot.hears("is left as it is, and is not in the plan")
        assert robot.session.draft.plan is None


async def test_a_suggestion_stays_after_its_logs_were_looked_at() -> None:
    async with console("last-replica-standing") as robot:
        await robot.sees("elect 1")
        await robot.press("enter")
        await robot.sees("Replica log info: payments-0", "1,560")
        await robot.opens("1")
        await robot.looks_again()
        await robot.sees("elect 1")
        assert "wait for 2" not in robot.screen


async def test_a_partition_that_nobody_can_lead_is_not_offered_to_be_chosen() -> None:
    async with console("disk-failure", guide=True, size=(80, 24)) as robot:
        await robot.puts_the_cursor_on(TopicPartition("sessions", 1))
        await robot.press("enter")
        await robot.sees("Replica log info: sessions-1", "no replica of sessions-1 can be elected")
        assert named(robot) == {"5", "1"}
        await robot.press("c")
        await robot.hears("no other replica is left")
    async with console("one-sided-cuts", guide=True, size=(80, 24)) as robot:
        await robot.sees("payments-0")
        await robot.press("enter")
        await robot.sees("no replica of payments-0 can be elected")
        assert named(robot) == {"3"}


async def test_what_is_wrong_is_pointed_at_where_nothing_is_offline() -> None:
    async with console("broker-gone-for-good", guide=True, size=(80, 24)) as robot:
        await robot.sees("nothing is offline", "the brokers that are not up")
        assert named(robot) == {"8"}
        await robot.opens("8")
        await robot.sees("What is wrong is listed here")
    async with console("controller-disk-failure", guide=True, size=(80, 24)) as robot:
        await robot.sees("the controllers without a vote")
        await robot.opens("4")
        assert "M" in named(robot)


async def test_the_guide_names_the_keys_of_a_choice_and_explains_its_words() -> None:
    async with console("stale-long-tail", guide=True, size=(80, 24)) as robot:
        await robot.press("c")
        await robot.sees("Keep which log of payments-0?")
        await robot.sees("Guide: answer what is asked: Up, Down, Enter")
        assert "old: written under an earlier leader, NEWER: written under a later one" in guide(robot)
