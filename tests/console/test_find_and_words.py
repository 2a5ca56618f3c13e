"""A partition is found in every pane, a word is explained, and what is there is also found."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from console.app.base.record_screen import RecordScreen
from console.app.main_screen.palette import ActionCommands, Palette
from console.app.session.cluster_refresh import ClusterRefresh
from console.app.session.view import View
from recovery.model import TopicPartition, Unknown
from tests.console.robot import console
from widgets.dialogs.glossary_screen import GlossaryScreen
from widgets.dialogs.partition_finder import PartitionFinder

WANTED = TopicPartition("orders-3", 17)


@pytest.mark.long
async def test_a_partition_typed_once_is_under_the_cursor_in_every_pane() -> None:
    async with console("offline-2000") as robot:
        await robot.press("f")
        await robot.asked(PartitionFinder)
        await robot.types("orders-3-17")
        await robot.sees("► orders-3-17")
        await robot.press("enter")
        await robot.until(lambda: robot.desk.table.cursor_key == WANTED, "the cursor on it")
        await robot.opens("3")
        await robot.until(lambda: robot.desk.table.cursor_key == WANTED, "the cursor on it in pane 3")
        await robot.opens("2")
        await robot.sees("orders-3-17: OFFLINE")
        await robot.opens("5")
        await robot.until(lambda: robot.desk.table.cursor_key is not None, "a log dir")
        dirs = robot.session.view.log_dirs
        assert dirs is not None
        held = [one for told in dirs.values() if not isinstance(told, Unknown) for one in told]
        (here,) = [one for one in held if (one.broker, one.path) == robot.desk.table.cursor_key]
        assert WANTED in {replica.tp for replica in here.replicas}
        await robot.opens("1")
        await robot.press("home", "f")
        await robot.sees("found before:", "► orders-3-17")
        await robot.press("escape")


async def test_a_partition_in_a_folded_group_is_found_and_its_group_unfolded() -> None:
    async with console("zone-power-loss") as robot:
        wanted = robot.session.rows.partitions[-1].state.tp
        await robot.press("t")
        await robot.settled()
        await robot.press("F")
        await robot.settled()
        assert not robot.desk.table.shows(wanted)
        await robot.press("f")
        await robot.asked(PartitionFinder)
        await robot.types(str(wanted))
        await robot.press("enter")
        await robot.until(lambda: robot.desk.table.cursor_key == wanted, "the cursor on it")
        await robot.hears(f"{wanted}: the cursor is on it")


async def test_a_partition_that_is_well_is_shown_with_its_replicas() -> None:
    async with console("disk-failure") as robot:
        partitions = robot.session.view.partitions
        assert partitions is not None
        listed = {row.state.tp for row in robot.session.rows.partitions}
        well = next(state.tp for state in partitions.states if state.tp not in listed)
        await robot.press("f")
        await robot.asked(PartitionFinder)
        await robot.types(str(well))
        await robot.press("enter")
        await robot.sees(f"Replica log info: {well}", f"{well}: led by")
        await robot.press("escape")
        await robot.until(lambda: robot.desk.pane == "1", "pane 1 again")


async def test_a_name_that_nobody_has_leads_nowhere() -> None:
    async with console("last-replica-standing") as robot:
        await robot.press("f")
        await robot.asked(PartitionFinder)
        await robot.types("nowhere")
        await robot.sees("no partition has that name")
        await robot.press("enter")
        await robot.asked(PartitionFinder)
        await robot.press("escape")
        await robot.until(lambda: robot.app.screen is robot.desk, "the desk")
        assert robot.desk.pane == "1"


async def test_a_word_is_searched_and_means_something_now() -> None:
    async with console("last-replica-standing", size=(100, 40)) as robot:
        await robot.sees("payments-0")
        await robot.press("W")
        await robot.asked(GlossaryScreen)
        await robot.sees("now for payments-0", "the ISR is 2 of replicas 0,1,2; of these 2 did not answer")
        await robot.types("verdict")
        await robot.sees("at most 320 acknowledged offsets are lost. Electing 1 loses no record")
        assert "unclean.leader.election.enable" not in robot.screen
        await robot.press("escape")
        await robot.press("question_mark")
        await robot.press("end")
        await robot.sees("voter", "T+15 s")


async def test_a_verdict_is_explained_step_by_step_for_the_partition_under_the_cursor() -> None:
    async with console("last-replica-standing", size=(140, 50)) as robot:
        await robot.sees("payments-0")
        await robot.opens("2")
        await robot.press("P")
        await robot.asked(RecordScreen)
        await robot.sees(
            "Proof", "payments-0: what is known", "The proof begins at offset", "electing broker 0"
        )
        await robot.press("end")
        await robot.sees("What these steps believe of Kafka")
        await robot.press("P")
        await robot.until(lambda: robot.app.screen is robot.desk, "the main screen again")


@pytest.mark.long
async def test_the_strategy_dialog_says_who_is_elected_who_waits_and_what_is_lost() -> None:
    async with console("offline-2000", size=(120, 40)) as robot:
        await robot.press("T")
        await robot.sees("Now: 2,000 offline partitions", "elects 0; 2,000 wait, all for broker 3")
        await robot.sees("elects 2,000", "none if the host of broker 2 kept power")


async def test_the_strategy_is_not_asked_while_the_first_picture_is_still_being_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, quorum = threading.Event(), ClusterRefresh._quorum

    async def later(*asked: Any) -> View:
        await asyncio.to_thread(read.wait)
        return await quorum(*asked)

    monkeypatch.setattr(ClusterRefresh, "_quorum", later)
    async with console("zone-power-loss", size=(80, 15), looked=False) as robot:
        await robot.until(lambda: robot.session.view.partitions is not None, "a part of the picture")
        await robot.press("2", "T")
        await robot.sees("the cluster was not read yet")
        read.set()
        await robot.looked()
        await robot.press("T")
        await robot.sees(f"Now: {robot.session.view.offline} offline partitions")


async def test_the_first_console_says_where_help_is_and_the_second_does_not(home: Path) -> None:
    for expected in (True, False):
        async with console("last-replica-standing", hints=True) as robot:
            assert ("New here?" in robot.said) is expected
    assert list(home.rglob("console-opened"))  # noqa: ASYNC240  # a test may wait for it


async def test_the_palette_and_a_wide_footer_have_what_is_hidden_on_a_narrow_one() -> None:
    async with console("last-replica-standing", size=(200, 50)) as robot:
        await robot.sees(
            "O all", "T strategy", "K ranking", "C clusters", "E export", "p pause", "f find", "W words"
        )
        titles = [command.title for command in robot.app.get_system_commands(robot.desk)]
        for key in ("O", "T", "K", "C", "E", "p", "f", "W"):
            assert any(title.endswith(f"(key {key})") for title in titles), key


async def test_the_palette_puts_what_works_and_what_begins_a_word_first() -> None:
    async with console("last-replica-standing", size=(120, 40)) as robot:
        await robot.press("colon")
        await robot.asked(Palette)
        provider = ActionCommands(robot.desk)
        hits = sorted([hit async for hit in provider.search("cluster")], reverse=True)
        helps = [str(hit.help) for hit in hits]
        assert hits[0].text is not None and hits[0].text.startswith("clusters: open another cluster"), hits
        disabled = [text.startswith("not now: ") for text in helps]
        assert any(disabled) and disabled == sorted(disabled), helps
        for typed, title in (("theme", "look: choose the colours"), ("strat", "strategy: choose")):
            first = max([hit async for hit in provider.search(typed)])
            assert first.text is not None and first.text.startswith(title), (typed, first)
