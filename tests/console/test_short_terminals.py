"""A short terminal shows what matters most: the health of the cluster, the tabs, and rows of every pane."""

from __future__ import annotations

import pytest

from tests.console.robot import console

pytestmark = pytest.mark.long


async def test_rows_stand_in_every_pane() -> None:
    async with console("disk-failure", size=(80, 24)) as robot:
        for lines in (24, 15, 12):
            await robot.pilot.resize_terminal(80, lines)
            for pane in "12345":
                await robot.opens(pane)
                await robot.sees("1 disk failed · 4 offline")
                await robot.until(lambda: robot.desk.table.counts.rows, f"rows in pane {pane}")
                table = robot.desk.table
                assert table.region.height >= 2, f"no row in pane {pane}\n{robot.screen}"
                assert table.region.bottom < lines, f"the rows of pane {pane} are below the screen"


async def test_eight_partitions_of_two_thousand_stand_on_the_first_screen() -> None:
    async with console("offline-2000", size=(80, 24)) as robot:
        await robot.looked()
        await robot.sees("Do first: Start broker 3 with its old disk: 2,000 get a leader.", "… Tab")
        assert robot.screen.count("OFFLINE  orders-") >= 8


async def test_the_path_and_the_command_give_way_to_rows() -> None:
    async with console("disk-failure", size=(80, 15)) as robot:
        assert "$ ktriage" not in robot.screen
        assert "archive-1" in robot.screen
    async with console("disk-failure", size=(80, 24)) as robot:
        assert "$ ktriage" in robot.screen


async def test_what_each_choice_cuts_off_stands_first_where_the_logs_leave_it_no_room() -> None:
    async with console("four-brokers-min-isr-3", size=(80, 24)) as robot:
        await robot.opens("2")
        await robot.sees("WHAT EACH CHOICE CUTS OFF", "loses 400 or more")
        assert robot.screen.index("elect 3") < robot.screen.index("end 1,640")
        await robot.pilot.resize_terminal(80, 40)
        await robot.sees("may lose what a silent replica holds")
        await robot.until(
            lambda: robot.screen.index("elect 3") > robot.screen.index("end 1,240"), "the logs first"
        )


async def test_a_sentence_that_has_no_room_says_that_it_goes_on() -> None:
    async with console("stale-long-tail", size=(80, 15)) as robot:
        await robot.until(lambda: "… Tab" in robot.screen, "a sentence that goes on")
    async with console("stale-long-tail", size=(80, 30)) as robot:
        await robot.sees("The logs differ", "cuts off what broker 1 holds")
        await robot.sees("$ ktriage")
        assert "…" not in robot.screen.split("$ ktriage", maxsplit=1)[0].split("PARTITION", maxsplit=1)[0], (
            robot.screen
        )


async def test_a_line_below_which_the_screen_ends_says_that_it_goes_on() -> None:
    """Of the two lines of details only one has room."""
    async with console("last-replica-standing", size=(80, 14)) as robot:

        def details_end_in_tab() -> bool:
            lines = robot.screen.splitlines()
            details = [one for one in lines if "payments-0: " in one and "Do first" not in one]
            return any(one.rstrip(" ▁▂▃▄▅▆▇█").endswith("… Tab") for one in details)

        await robot.until(details_end_in_tab, "a line of details that says that it goes on")


@pytest.mark.parametrize("lines", [15, 12])
async def test_the_key_that_shows_the_rest_is_named_and_shows_it(lines: int) -> None:
    async with console("disk-failure", size=(80, lines)) as robot:
        await robot.sees("… Tab")
        assert "The disk of broker 2 FAILED" not in robot.screen
        await robot.press("tab")
        await robot.until(lambda: "The disk of broker 2 FAILED" in robot.screen, "the whole advice")
        assert "… Tab" not in robot.screen and "sessions-1" in robot.screen
        await robot.press("end")
        await robot.sees("columns:  leader none")
        await robot.press("tab")
        await robot.sees("… Tab")


@pytest.mark.parametrize("lines", [24, 15, 12])
async def test_what_ends_a_lost_quorum_can_be_read_by_keys(lines: int) -> None:
    """One sentence to act on and one of warning: at 24 lines at once, at fewer by keys."""
    async with console("two-of-three-voters-lost", size=(80, lines)) as robot:
        await robot.opens("4")
        await robot.sees("NO LEADER")
        action, warning = "Start 102 or 101 with its old disk, unless a rebuild", "Never format"
        if lines == 24:
            await robot.sees(action, warning)
            return
        await robot.sees("… Tab")
        await robot.press("tab")
        for _ in range(10):
            if warning in robot.screen:
                break
            await robot.press("down")
        await robot.sees(warning)
        await robot.press("end")
        await robot.sees("DOWN: not answered: controller-102.simulated:9093: connection refused")
        await robot.press("tab")
        await robot.sees("► ", "… Tab")


async def test_enter_is_answered_where_it_opens_nothing() -> None:
    async with console("broker-gone-for-good", size=(80, 24)) as robot:
        await robot.press("enter")
        await robot.hears("there is no row")
        await robot.opens("8")
        await robot.press("enter")
        await robot.hears("below the table")
