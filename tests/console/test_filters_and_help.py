"""What surrounds the panes: filter, sort, marks, copies, exports, help, palette, the guide."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Hashable
from pathlib import Path

import pytest
from textual.widgets import Input, OptionList

from backends.base.answers import SurveyRequest, SurveyResult
from backends.base.protocol import Progress
from backends.simulator.adapter import SimulatorBackend
from console.app.base.table_actions import row_name
from console.app.picker import places
from console.change.registry import KEYS
from console.simulator_backend import scenario
from console.target import Target
from recovery.model import TopicPartition
from tests.console.robot import console
from widgets.dialogs.cluster_picker import ClusterPicker
from widgets.dialogs.help_screen import HelpScreen
from widgets.table import RowTable
from widgets.text import Tone
from widgets.theme import PLAIN


async def test_a_filter_shows_and_hides_and_escape_takes_it_away() -> None:
    async with console("zone-power-loss", size=(120, 30)) as robot:
        await robot.filters("payments-3")
        assert robot.desk.table.counts.shown == 1
        await robot.press("escape")
        await robot.settled()
        assert robot.desk.table.counts.shown == robot.desk.table.counts.rows == 8


async def test_keys_are_letters_while_a_filter_is_typed() -> None:
    async with console("zone-power-loss", size=(120, 30)) as robot:
        await robot.press("slash")
        await robot.types("Aqc")
        assert not robot.session.safety.armed
        assert robot.session.draft.plan is None
        await robot.press("escape")
        assert robot.app.return_code is None


@pytest.mark.long
async def test_every_column_can_be_sorted_by_and_is_named_where_it_has_no_room() -> None:
    async with console("last-replica-standing") as robot:
        await robot.chooses(1)
        await robot.press("enter")  # pane 2 has the replicas of the row
        for pane in ("2", "1", "3", "4", "5", "6"):
            await robot.opens(pane)
            for column in robot.desk.table.columns:
                await robot.press("s")
                assert f"sorted by {column.title}, from low to high" in robot.said
                await robot.press("S")
                assert f"sorted by {column.title}, from high to low" in robot.said
                await robot.settled()
            await robot.press("s", "S")
            assert "in the order they came in" in robot.said


async def test_marks_survive_a_refresh_a_sort_and_a_filter_and_are_what_is_chosen() -> None:
    async with console("zone-power-loss", size=(120, 30)) as robot:
        await robot.puts_the_cursor_on(TopicPartition("payments", 2))
        await robot.press("space")
        await robot.puts_the_cursor_on(TopicPartition("payments", 6))
        await robot.press("space", "s")
        await robot.filters("payments-1")
        await robot.looks_again()
        await robot.press("c")
        await robot.sees("elect by which strategy?", "elects 2")
        await robot.press("down", "down", "enter")
        await robot.until(lambda: robot.session.draft.plan is not None, "a plan")
        wanted = {TopicPartition("payments", 2), TopicPartition("payments", 6)}
        assert robot.session.draft.partitions == wanted


async def test_a_table_is_exported_with_all_its_columns(home: Path) -> None:
    async with console("zone-power-loss") as robot:
        for kind in ("csv", "json"):
            robot.desk.say("")
            await robot.press("E")
            await robot.answers(f"rows.{kind}")
            await robot.hears("saved 8 rows in")
    for kind in ("csv", "json"):
        text = await asyncio.to_thread((home / f"rows.{kind}").read_text, encoding="utf-8")
        rows = json.loads(text) if kind == "json" else list(csv.DictReader(text.splitlines()))
        assert len(rows) == 8
        assert "payments-0" in text


async def test_the_command_line_of_the_screen_is_copied_to_the_terminal_and_to_a_file(home: Path) -> None:
    async with console("last-replica-standing") as robot:
        await robot.press("enter")
        await robot.press("Y")
        await robot.hears("copied the command line")
        expected = "ktriage replicas --topic payments --partition 0 --simulate last-replica-standing"
        assert robot.app.clipboard == expected
        kept = home / "state" / "ktriage" / "copied.txt"
        assert kept.read_text(encoding="utf-8").strip() == expected


async def test_the_help_has_every_key_and_says_why_one_does_nothing() -> None:
    async with console("last-replica-standing", size=(120, 100)) as robot:
        await robot.press("question_mark")
        await robot.asked(HelpScreen)
        shown = robot.screen
        for action in KEYS:
            assert action.what in shown
        assert shown.count("Not now: only in pane 6 (Plan)") == 1, shown
        await robot.press("escape")
        await robot.until(lambda: robot.app.screen is robot.desk, "the desk")


async def test_the_palette_does_what_the_key_does() -> None:
    async with console("last-replica-standing") as robot:
        await robot.press("colon")
        await robot.until(lambda: robot.app.screen is not robot.desk, "the palette")
        await robot.types("pane 4")
        found = robot.app.screen.query_one(OptionList)

        def chosen() -> bool:
            option = found.highlighted_option
            return option is not None and "pane 4" in str(option.prompt)

        await robot.until(chosen, "the command, under the cursor")
        await robot.press("enter")
        await robot.until(lambda: robot.desk.pane == "4", "pane 4")


async def test_the_palette_finds_a_key_by_its_name() -> None:
    async with console("last-replica-standing") as robot:
        for typed, found in (("journal", "what was sent to this"), ("strategy", "how much must be")):
            await robot.press("colon")
            await robot.until(lambda: robot.app.screen is not robot.desk, "the palette")
            await robot.types(typed)
            await robot.sees(f"{typed}: {found}")
            await robot.press("escape")
            await robot.until(lambda: robot.app.screen is robot.desk, "the desk again")


async def test_panes_and_keys_can_be_clicked() -> None:
    async with console("last-replica-standing", size=(120, 30)) as robot:
        await robot.pilot.click("#tabs", offset=(17, 0))
        await robot.until(lambda: robot.desk.pane == "2", "pane 2")
        await robot.pilot.click("#keys", offset=(12, 0))
        await robot.until(lambda: robot.session.safety.armed, "an armed console")


async def test_without_colour_every_state_is_still_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with console("last-replica-standing") as robot:
        assert robot.app.theme == PLAIN
        await robot.sees("READ-ONLY", "SIMULATOR", "OFFLINE", "elect 1")
        drawn = robot.app.export_screenshot()
        assert "#ff8a5c" not in drawn
        assert "#6cc3f5" not in drawn


async def test_two_enters_in_haste_choose_no_leader() -> None:
    """The first opens the replicas; the cursor stands on the first of them, and it need not be the best."""
    async with console("stale-long-tail") as robot:
        await robot.press("enter", "enter", "enter")
        await robot.hears("c chooses a leader")
        await robot.idle()
        assert robot.session.draft.plan is None


async def test_escape_leads_back_the_way_one_came() -> None:
    async with console("last-replica-standing") as robot:
        await robot.press("enter")
        await robot.opens("4")
        await robot.press("escape")
        await robot.until(lambda: robot.desk.pane == "2", "pane 2")
        await robot.press("escape")
        await robot.until(lambda: robot.desk.pane == "1", "pane 1")


async def test_bare_it_offers_scenarios_and_opens_what_is_chosen() -> None:
    async with console(None) as robot:
        await robot.asked(ClusterPicker)
        await robot.sees("last-replica-standing", "SIMULATOR")
        picker = robot.app.screen
        assert isinstance(picker, ClusterPicker)
        await robot.press("enter")
        await robot.until(lambda: robot.app.desk is not None, "a cluster")
        await robot.looked()
        await robot.press("C")
        await robot.asked(ClusterPicker)
        await robot.press("escape")
        await robot.until(lambda: robot.app.screen is robot.desk, "the same cluster")


async def test_an_address_is_typed_into_the_picker_and_a_wrong_one_stays_in_its_field() -> None:
    async with console(None) as robot:
        await robot.asked(ClusterPicker)
        await robot.sees("No cluster has a name yet", "clusters: {production")
        await robot.types("kafka-1:port")
        await robot.press("enter")
        await robot.sees("--bootstrap-server: ", "kafka-1:port")
        field = robot.app.screen.query_one(Input)
        field.value = "127.0.0.1:9"
        await robot.press("enter")
        await robot.until(lambda: robot.app.desk is not None, "a cluster")
        assert robot.session.target.bootstrap == "127.0.0.1:9"


async def test_another_cluster_begins_read_only_without_marks_and_without_a_plan() -> None:
    async with console("last-replica-standing") as robot:
        await robot.chooses(1)
        await robot.arms()
        await robot.press("a", "C")
        await robot.asked(ClusterPicker)
        table = robot.app.screen.query_one(RowTable)
        wanted = next(place for place in places() if place.name == "stale-long-tail")
        await robot.until(lambda: table.move_to((wanted.kind, wanted.name)), "that scenario")
        before = robot.session
        await robot.press("enter")
        await robot.until(lambda: robot.app.session not in (None, before), "another session")
        await robot.until(lambda: robot.app.screen is robot.app.desk, "its desk")
        await robot.looked()
        await robot.sees("stale-long-tail", "READ-ONLY")
        assert robot.session.draft.plan is None
        assert not robot.desk.table.marks


async def test_a_plan_that_is_not_saved_is_not_lost_by_one_key() -> None:
    async with console("last-replica-standing") as robot:
        await robot.chooses(1)
        await robot.press("q")
        await robot.hears("the plan is not saved")
        assert robot.app.return_code is None
        await robot.press("r", "q")
        await robot.hears("the plan is not saved")
        await robot.press("q")
        await robot.until(lambda: robot.app.return_code == 0, "the end")


async def test_a_refresh_that_finds_everything_as_it_was_draws_no_row_again() -> None:
    async with console("zone-power-loss", size=(120, 30)) as robot:
        rows = robot.session.rows.partitions
        table = robot.desk.table
        await robot.looks_again()
        assert all(old is new for old, new in zip(rows, robot.session.rows.partitions, strict=True))
        assert table.counts.rows == 8


class Hanging(SimulatorBackend):
    """Its surveys never come back once it is told to; a mock, for a simulated broker answers or times out."""

    hangs = False

    async def survey(self, request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        if self.hangs:
            await asyncio.Event().wait()
        return await super().survey(request, progress)


async def test_long_work_that_sends_nothing_is_stopped_by_escape() -> None:
    backend = Hanging(scenario("last-replica-standing"))

    def make(_target: Target, _say: object) -> Hanging:
        return backend

    async with console("last-replica-standing", make=make) as robot:
        await robot.plans(1)
        backend.hangs = True
        await robot.press("m")
        await robot.until(lambda: robot.desk.busy == "comparing", "the comparison")
        await robot.press("w")
        await robot.hears("wait: comparing")
        await robot.press("escape")
        await robot.until(lambda: not robot.desk.busy, "the end of the comparison")
        backend.hangs = False
        await robot.press("m")
        await robot.hears("beside the cluster of now")


async def test_a_mistake_in_the_profiles_is_a_line_with_its_place_and_the_scenarios_are_still_there(
    home: Path,
) -> None:
    settings = home / "config" / "ktriage" / "clusters.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("clusters:\n  production: {bootstrap: 'kafka:9092', colur: red}\n", encoding="utf-8")
    async with console(None, size=(200, 40)) as robot:
        await robot.asked(ClusterPicker)
        await robot.sees("clusters.yaml", "line 2: ", "there is no such setting", "last-replica-standing")


async def test_rows_are_grouped_in_each_way_then_not_and_all_groups_fold_to_what_they_come_to() -> None:
    async with console("zone-power-loss", size=(120, 30)) as robot:
        for said, grouping in (
            ("grouped by topic", "topic"),
            ("by broker", "broker"),
            ("by suggestion", "suggested"),
            ("by state", "state"),
            ("not grouped", None),
        ):
            await robot.press("t")
            await robot.hears(said)
            assert robot.desk.table.grouping == grouping
            await robot.settled()
        await robot.press("F")
        await robot.sees("▸ payments  8 partitions: 8 OFFLINE")
        await robot.press("F")
        await robot.sees("▾ payments  8 partitions: 8 OFFLINE", "payments-7")


async def test_a_filter_is_named_with_what_it_shows_and_a_wrong_one_marks_nothing() -> None:
    async with console("zone-power-loss") as robot:
        await robot.filters("payments-1")
        await robot.sees("filter 'payments-1': 1 of 8 shown")
        await robot.press("slash")
        robot.desk.query_one("#filter-input", Input).value = "/("
        await robot.sees("no regex", "filter /(/: 0 of 8 shown")
        await robot.press("enter")
        await robot.sees("no regex")
        await robot.press("escape")
        await robot.settled()
        assert "shown" not in robot.screen
        assert not robot.desk.table.marks


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (TopicPartition("orders", 3), "orders-3"),
        ((2, "/kafka/1"), "2:/kafka/1"),
        ((101, "dku1K2nfGJkS0qSwPbHu7A"), "101 dku1K2nfGJkS0qSwPbHu7A"),
        ((3, ""), "3"),
        (("transaction", 7, TopicPartition("payments", 0)), "transaction 7 payments-0"),
        (2, "2"),
    ],
)
def test_a_row_is_named_as_a_person_names_it(key: Hashable, name: str) -> None:
    assert row_name(key) == name


@pytest.mark.long
async def test_an_error_goes_with_the_row_that_it_was_about() -> None:
    async with console("offline-2000") as robot:
        robot.desk.say("orders-0-0 cannot be chosen", Tone.BAD)
        await robot.press("r")
        await robot.looks_again()
        assert "cannot be chosen" in robot.said
        await robot.press("down")
        await robot.until(lambda: not robot.said, "no error beside another row")


@pytest.mark.long
async def test_an_error_stays_while_the_rows_change_under_the_cursor() -> None:
    async with console("offline-2000") as robot:
        await robot.press("down")
        robot.session._listener.cluster_changed("one", "another", "another cluster")
        table = robot.desk.table
        rows = table.shown_rows
        table.update(())
        table.update(rows[:1])
        await table.wait_settled()
        table.update(rows)
        await robot.settled()
        assert "another cluster answers" in robot.said


async def test_a_filter_is_named_on_a_short_terminal_too() -> None:
    async with console("zone-power-loss", size=(80, 15)) as robot:
        await robot.opens("8")
        await robot.filters("broker-3")
        await robot.sees("filter 'broker-3'")


async def test_a_row_that_the_filter_hides_is_not_called_unlisted() -> None:
    async with console("zone-power-loss", size=(120, 40)) as robot:
        await robot.filters("payments-7")
        await robot.sees("filter 'payments-7'")
        await robot.press("f")
        await robot.types("payments-1")
        await robot.press("enter")
        await robot.hears("payments-1: the filter of that pane does not show it")


async def test_why_a_key_did_nothing_is_not_shown_any_more_where_it_works() -> None:
    async with console("zone-power-loss", size=(120, 40)) as robot:
        await robot.press("M")
        await robot.hears("only in pane 4")
        await robot.press("4")
        await robot.until(lambda: "only in pane" not in robot.said, "no refusal of another pane")


async def test_a_terminal_that_is_large_enough_again_is_not_called_too_small() -> None:
    async with console("zone-power-loss", size=(40, 10)) as robot:
        await robot.hears("this terminal is 40x10")
        await robot.pilot.resize_terminal(120, 40)
        await robot.until(lambda: "this terminal" not in robot.said, "nothing about the size")
