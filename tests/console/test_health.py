"""The worst that is known of the cluster stands above every pane, and nothing is called well that is not known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from textual.widgets import Input

from backends.base.answers import Partitions
from backends.base.protocol import Backend
from backends.simulator.adapter import SimulatorBackend
from console.app.base.question_dialogs import ChoiceQuestion, TextQuestion
from console.app.session.view import Link
from console.change.registry import PANES
from console.simulator_backend import scenario
from console.target import Target
from recovery.model import TopicPartition, Unknown, Why
from tests.console.faults import hangs
from tests.console.robot import Robot, console

CLICKS = TopicPartition("payments", 1)
WHY = Unknown(Why.FAILED, "it has a leader, whose broker has no listener INSIDE: ask by another listener")


class WithoutListener(SimulatorBackend):
    """A cluster one of whose leaders has no listener of the kind that is asked."""

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        found = await super().partitions(topics)
        return replace(found, unknown={**found.unknown, CLICKS: WHY})


def header(robot: Robot) -> str:
    return "\n".join(robot.screen.splitlines()[:4])


async def in_every_pane(robot: Robot, text: str) -> None:
    for pane in PANES:
        await robot.opens(pane)
        await robot.until(lambda: text in header(robot), f"{text!r} above pane {pane}")


@pytest.mark.parametrize(
    ("scenario", "text", "tabs"),
    [
        (
            "last-replica-standing",
            "broker 2 down · 1 offline",
            ("1 Offline partitions 1", "8 Brokers 1 down"),
        ),
        ("disk-failure", "1 disk failed · 4 offline", ("1 Offline partitions 4", "5 Log dirs 1 failed")),
        (
            "two-of-three-voters-lost",
            "quorum NO LEADER · controller 102 down",
            ("4 Quorum NO LEADER", "8 Brokers 1 not reached"),
        ),
    ],
)
async def test_what_is_wrong_stands_above_every_pane(scenario: str, text: str, tabs: tuple[str, ...]) -> None:
    async with console(scenario, size=(80, 24)) as robot:
        await in_every_pane(robot, text)
        await robot.pilot.resize_terminal(180, 40)
        await robot.sees(text, *tabs)


async def test_tabs_keep_a_word_on_a_narrow_terminal_and_mark_the_panes_of_trouble() -> None:
    async with console("disk-failure", size=(80, 24)) as robot:
        await robot.sees("[1 Offline!]2 Replicas 3 ELR 4 Quorum 5 Dirs! 6 Plan 7 Time")
    async with console("last-replica-standing", size=(80, 24)) as robot:
        await robot.sees("[1 Offline!]2 Replicas 3 ELR 4 Quorum 5 Dirs 6 Plan 7 Time 8 Brokers! 9 After")


async def test_a_controller_that_runs_with_a_new_disk_is_not_said_to_be_down() -> None:
    async with console("controller-disk-failure", size=(120, 40)) as robot:
        await robot.sees(
            "controller 102 without a vote", "4 Quorum 1 no vote", "102 has a new disk and no vote"
        )
        assert "102 down" not in robot.screen
        await robot.opens("4")
        await robot.press("M")
        await robot.asked(ChoiceQuestion)
        await robot.sees("► disk:", "(seen: new disk)")
        await robot.press("escape")


async def test_the_new_controller_that_runs_is_proposed() -> None:
    async with console("controller-node-failure", size=(120, 40)) as robot:
        await robot.sees("voter 102 down")
        await robot.opens("4")
        await robot.press("M")
        await robot.asked(ChoiceQuestion)
        await robot.sees("► host:", "(seen: 103 without a vote)")
        await robot.press("enter")
        await robot.asked(TextQuestion)
        assert robot.app.screen.query_one(Input).value == "103"
        await robot.press("escape")


async def test_without_a_quorum_the_first_pane_says_what_to_do_first() -> None:
    async with console("two-of-three-voters-lost", size=(80, 24)) as robot:
        await robot.sees("As before, no controller leads: 0 offline", "Nobody can be elected", "Do first")
        shown = " ".join(robot.screen.split())
        assert "leaders and ISRs are shown as they were before. Do first: Start 102 or 101" in shown
        assert "$ ktriage quorum status --simulate two-of-three-voters-lost" in robot.screen
        await robot.press("O")
        await robot.sees("$ ktriage replicas --simulate two-of-three-voters-lost")


async def test_without_a_quorum_nothing_is_said_to_be_well() -> None:
    async with console("two-of-three-voters-lost", guide=True) as robot:
        await robot.sees("As before, no controller leads: 0 offline", "nobody can be elected. Press 4")
        await robot.sees("what is offline now is not known: no controller leads")
        assert "no partition" not in robot.screen
        assert "nothing is offline" not in robot.screen


async def test_a_lost_cluster_keeps_the_time_of_its_last_picture_and_is_not_called_well() -> None:
    async with console("static-quorum-upgrade", size=(80, 24)) as robot:
        await robot.sees("no partition offline", "no partition is offline or under min ISR")
        await hangs(robot, 1, 2, 3)
        await robot.press("r")
        await robot.link_is(Link.LOST)
        await robot.until(
            lambda: re.search(r"cluster LOST, last picture of \d\d:\d\d:\d\d UTC", header(robot)),
            "when the picture was made",
        )
        assert "no partition" not in header(robot)
        await robot.sees("what is offline now is not known: cluster LOST, last picture of")


async def test_an_old_picture_says_how_old_it_is_and_calls_nothing_well() -> None:
    now = [1_000.0]
    async with console("static-quorum-upgrade", size=(80, 24), clock=lambda: now[0]) as robot:
        await robot.sees("no partition offline")
        await robot.press("p")
        now[0] += 95.0
        await robot.until(lambda: "picture 1 min old" in robot.screen.splitlines()[2], "how old it is")
        assert "no partition" not in header(robot)


async def test_a_partition_whose_leader_is_not_on_this_listener_is_shown_and_never_designated() -> None:
    def make(target: Target, _say: object) -> Backend:
        return WithoutListener(scenario(target.scenario))

    async with console("last-replica-standing", size=(140, 40), make=make) as robot:
        await robot.sees("1 offline", "1 with a leader not on this listener", "leader unknown")
        assert [row.state.tp for row in robot.desk.table.shown_rows][1] == CLICKS
        await robot.puts_the_cursor_on(CLICKS)
        await robot.sees("has no listener INSIDE: ask by another listener; it is not offline")
        await robot.press("c")
        await robot.hears("payments-1: it has a leader, whose broker has no listener INSIDE")
        assert robot.session.draft.plan is None
        await robot.press("enter")
        await robot.sees("it has a leader, whose broker has no listener INSIDE")
        await robot.opens("1")
        await robot.press("a")
        await robot.press("c")
        await robot.until(lambda: robot.session.draft.plan is not None, "a plan")
        assert [str(tp) for tp in robot.session.draft.partitions] == ["payments-0"], "of two marked rows one"


async def test_pane_3_calls_no_return_good_that_pane_1_warns_of() -> None:
    async with console("stale-long-tail", size=(80, 30)) as robot:
        await robot.sees("not start broker 3 first")
        assert "Start broker 3" not in robot.screen
        await robot.opens("3")
        await robot.sees("Do not start 3 yet: it would lead", "Do not start broker 3 first: it leads at once")
        assert "Broker 3 back" not in robot.screen


async def test_the_first_screen_names_the_controller_that_waits_for_a_vote() -> None:
    for incident, text in (
        ("controller-node-failure", "Or replace it by 103, which runs without a vote."),
        ("quorum-growing-1-to-3", "Do first: Give 101 and 102 votes."),
    ):
        async with console(incident) as robot:
            await robot.until(lambda text=text: text in joined(robot), text)  # type: ignore[misc]  # mypy and defaults of lambdas


def joined(robot: Robot) -> str:
    """The screen's text, as if its lines were not folded."""
    return " ".join(robot.screen.split())


async def test_a_step_that_has_no_room_is_one_key_away() -> None:
    """A broker that is not reached from here is the third thing to do."""
    third = "Mend the way from here to broker 3"
    async with console("one-sided-cuts") as robot:
        await robot.until(lambda: "Then: Mend the network of broker 2" in joined(robot), "the second step")
        if third not in joined(robot):
            await robot.until(lambda: "… Tab" in joined(robot), "that there is more")
            await robot.press("tab")
            await robot.until(lambda: third in joined(robot), "the third step")
    async with console("one-sided-cuts", size=(120, 40)) as robot:
        await robot.until(lambda: third in joined(robot), "the third step")


@pytest.mark.parametrize(
    ("scenario", "texts"),
    [
        ("quorum-growing-1-to-3", ("quorum tolerates no failure: 101,102 without a vote", "4 Quorum!")),
        ("static-quorum-upgrade", ("Do first: 103 has no vote: upgrade the quorum, then add it. [4]",)),
        ("two-of-three-voters-lost", ("101 no metadata", "101 runs without metadata: its disk is new")),
        ("broker-gone-for-good", ("if it is gone for good", "One more failure can stop writes")),
        ("disk-failure", ("no other replica is left. [5]", "ktriage rescue read --to DIR --from-disk")),
        ("late-alter-partition", ("the log of broker 2 is EMPTY",)),
    ],
)
async def test_the_first_screen_names_what_is_at_stake(scenario: str, texts: tuple[str, ...]) -> None:
    async with console(scenario, size=(80, 24)) as robot:
        await robot.until(lambda: all(text in joined(robot) for text in texts), f"{texts}")


async def test_a_partition_whose_leader_is_not_reached_is_counted_where_no_controller_says_so() -> None:
    async with console("two-of-three-voters-lost", size=(120, 40)) as robot:
        await robot.sees("0 offline, 1 led by a broker that is not reached", "1 not reached")
        # What is broken has its rows too, as what is well has.
        await robot.sees("quorum: NO LEADER", "METADATA HELD")


@pytest.mark.parametrize(
    ("scenario", "texts"),
    [
        (
            "four-brokers-min-isr-3",
            ("start 0, then 2", "start 0 first if its host kept power, then 2: not fully checked"),
        ),
        ("disk-failure", ("or choose a", "archive-1    1 min  1 of 2     choose")),
    ],
)
async def test_a_row_agrees_with_what_is_said_above_and_below_it(
    scenario: str, texts: tuple[str, ...]
) -> None:
    async with console(scenario, size=(100, 40)) as robot:
        await robot.sees(*texts)
