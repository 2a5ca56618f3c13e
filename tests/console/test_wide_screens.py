"""A wide terminal shows what a narrow one has behind a key; no terminal hides a sentence below empty lines."""

from __future__ import annotations

from pathlib import Path

from tests.console.robot import Robot, console
from widgets import theme


def _column_of(robot: Robot, text: str) -> int:
    """Where the first line with the text has it; -1: nowhere."""
    return next((line.index(text) for line in robot.screen.splitlines() if text in line), -1)


async def test_from_120_columns_the_logs_and_what_each_choice_cuts_off_are_drawn_beside_or_below() -> None:
    async with console("stale-long-tail", size=(119, 40)) as robot:
        await robot.sees("payments-0")
        assert "WHAT EACH CHOICE CUTS OFF" not in robot.screen
        await robot.pilot.resize_terminal(120, 40)
        await robot.sees("THE LOGS OF payments-0", "WHAT EACH CHOICE CUTS OFF", "1 and 2 part at 1,000")
        await robot.sees("elect 2: loses 500 or more", "WHO MAY LEAD")
        assert _column_of(robot, "THE LOGS OF") == 1, "below, so that the list keeps its columns"
        await robot.sees("ANSWERED", "LEADER", "ISR", "REPLICAS")
        await robot.pilot.resize_terminal(160, 40)
        await robot.until(lambda: _column_of(robot, "THE LOGS OF") > 1, "the drawing beside the list")
        assert _column_of(robot, "THE LOGS OF") > _column_of(robot, "OFFSETS LOST") > 0
        await robot.press("3")
        await robot.sees("do not start it first")
        assert _column_of(robot, "WHO MAY LEAD") > _column_of(robot, "ELECTED ON RETURN") > 0
        await robot.pilot.resize_terminal(119, 40)
        await robot.until(lambda: _column_of(robot, "WHO MAY LEAD") == 1, "the drawing below the list")


async def test_a_loss_that_is_drawn_is_not_told_in_the_details_once_more() -> None:
    async with console("stale-long-tail", size=(119, 40)) as robot:
        await robot.sees("Lost by electing 2 now: 500 or more")
        await robot.pilot.resize_terminal(160, 50)
        await robot.sees(
            "elect 2: loses 500 or more", "payments-0: the logs differ: each choice loses some records"
        )
        assert "Lost by" not in robot.screen
        await robot.press("c", "down", "enter", "6")
        await robot.sees("WHAT ELECTING IT WOULD LOSE", "THE LOGS OF payments-0")
        assert "elect 2: loses" not in robot.screen


async def test_where_the_reasons_take_the_room_of_a_drawing_below_they_say_what_it_showed() -> None:
    async with console("stale-long-tail", size=(120, 40)) as robot:
        await robot.sees("THE LOGS OF payments-0", "elect 2: loses 500 or more")
        await robot.press("tab")
        await robot.until(lambda: "THE LOGS OF" not in robot.screen, "the reasons alone")
        await robot.sees("Lost by electing 2 now: 500 or more")
        await robot.press("shift+tab")
        await robot.sees("THE LOGS OF payments-0", "elect 2: loses 500 or more")
        assert "Lost by" not in robot.screen


async def test_few_rows_leave_their_room_to_the_reasons() -> None:
    async with console("stale-long-tail", size=(80, 24)) as robot:
        await robot.sees("the logs differ: each choice loses some records")
        assert "\u2026 Tab" not in robot.screen
    async with console("zone-power-loss", size=(80, 24)) as robot:
        await robot.sees("payments-7", "\u2026 Tab")


async def test_a_cluster_with_nothing_offline_is_told_in_the_first_pane() -> None:
    async with console("broker-gone-for-good", size=(120, 30)) as robot:
        await robot.sees("broker 3 down · 6 under-replicated · no partition offline")
        await robot.sees(
            "5 brokers: 1 down", "quorum: led by 100", "7 partitions of 2 topics, 6 under-replicated"
        )
        await robot.pilot.resize_terminal(120, 40)
        await robot.sees("3  FENCED", "broker     3  does not fetch", "/kafka/0", "orders-0   1       1,2")
        assert "│" not in robot.screen, "an empty drawing beside an empty list"


async def test_a_theme_is_chosen_by_its_name_and_remembered(home: Path) -> None:
    async with console("last-replica-standing", hints=False) as robot:
        await robot.press("L")
        await robot.sees("how the console looks")
        await robot.types("nord")
        await robot.sees("nord")
        await robot.press("down", "enter")
        await robot.until(lambda: robot.app.theme == "nord", "another theme")
        await robot.hears("theme nord")
    assert (home / "state" / "ktriage" / "theme").read_text() == "nord\n"
    async with console("last-replica-standing") as robot:
        assert robot.app.theme == "nord"
        await robot.sees("payments-0")
    (home / "state" / "ktriage" / "theme").write_text("no-such-theme")
    async with console("last-replica-standing") as robot:
        assert robot.app.theme == theme.DARK
