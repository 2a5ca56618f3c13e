"""What stands around the panes: never in doubt which cluster this is, and whether it can be changed."""

from __future__ import annotations

import pytest

from tests.unit.widgets.harness import Harness, text_of
from widgets.bars.filter_bar import FilterBar
from widgets.bars.message_bars import CommandBar, MessageBar
from widgets.bars.pane_tabs import Crumbs, PaneTabs, Tab, tab_line
from widgets.bars.title_bar import RefreshState, Title, TitleBar, title_lines
from widgets.dialogs.cluster_picker import ClusterChoice, ClusterKind, ClusterPicker
from widgets.dialogs.help_screen import HelpRow, HelpScreen, HelpSection
from widgets.table import RowFilter
from widgets.text import Tone, plain, width_of

TITLE = Title("prod-eu", "MkU3OEVBNTcwNTJENDM2Qk", "LIVE", age_s=3.0, refresh=RefreshState.FRESH)


def told(title: Title, width: int) -> str:
    return "\n".join(plain(line) for line in title_lines(title, width))


@pytest.mark.parametrize("width", [80, 120, 200])
def test_cluster_and_mode_are_always_in_sight(width: int) -> None:
    screen = told(TITLE, width)
    for word in ("prod-eu", "MkU3OEVBNTcwNTJENDM2Qk", "LIVE", "READ-ONLY", "3 s old"):
        assert word in screen
    assert all(width_of(line) <= width for line in title_lines(TITLE, width))


def test_armed_says_how_long_and_the_simulator_never_says_live() -> None:
    armed = Title("stale-long-tail", "simulated.x.1", "SIMULATOR", armed_left_s=590.0)
    assert "ARMED, 9 min left" in told(armed, 80)
    assert "SIMULATOR" in told(armed, 80) and "LIVE" not in told(armed, 80)
    assert "READ-ONLY" not in told(armed, 80)


def test_what_can_never_be_armed_says_why() -> None:
    served = Title("prod", "x", "LIVE", read_only_why="served to a browser")
    assert "READ-ONLY: served to a browser" in told(served, 80)


def test_a_lost_cluster_keeps_the_age_of_its_last_picture() -> None:
    lost = Title("prod", "x", "LIVE", age_s=125.0, refresh=RefreshState.LOST, note="retrying")
    assert "picture 2 min old · CLUSTER LOST" in told(lost, 80)
    assert "retrying" in told(lost, 80)


@pytest.mark.parametrize("width", [80, 120, 130, 150])
def test_the_age_of_the_picture_is_never_cut(width: int) -> None:
    name = "partitions-of-a-very-large-cluster-200000"
    note = "a refresh takes 9.6 s: the next one every 96 s"
    slow = Title(
        name,
        f"simulated.{name}.1",
        "SIMULATOR",
        age_s=115.0,
        refresh=RefreshState.SLOWED,
        note=note,
        armed_left_s=60.0,
    )
    assert "picture 1 min old · slowed down" in told(slow, width)
    assert all(width_of(line) <= width for line in title_lines(slow, width))


@pytest.mark.parametrize("width", [20, 30, 60])
def test_a_narrow_title_keeps_the_badge(width: int) -> None:
    long = Title("a-very-long-profile-name-of-some-cluster-in-frankfurt", "x" * 40, "LIVE", armed_left_s=60.0)
    assert told(long, width).startswith(" ARMED")
    assert all(width_of(line) <= width for line in title_lines(long, width))


@pytest.mark.parametrize("colour", ["red", "#ffee00", "black", "no-such-colour", None])
async def test_a_profiles_colour_can_be_read_on(colour: str | None) -> None:
    bar = TitleBar()
    async with Harness(bar).run_test(size=(80, 5)) as pilot:
        bar.update(Title("prod", "id", "LIVE", colour=colour))
        await pilot.pause()
        assert "prod" in text_of(pilot.app)


def test_tabs_lose_what_is_told_before_they_lose_the_pane() -> None:
    tabs = [Tab(str(n), f"Pane number {n}", "1,234 things") for n in range(1, 7)]
    for width in (200, 90, 40):
        row = tab_line(tabs, "3", width)
        assert width_of(row) <= width
        assert "[3 Pane number 3" in plain(row)
        assert all(str(n) in plain(row) for n in range(1, 7))


def test_tabs_keep_a_word_each_before_they_are_numbers() -> None:
    tabs = [
        Tab("1", "Offline partitions", "2,000", alarm=True, word="Offline"),
        Tab("2", "Replica log info", word="Replicas"),
        Tab("3", "Quorum", "NO LEADER", alarm=True),
    ]
    shown = {width: plain(tab_line(tabs, "1", width)) for width in (80, 50, 46, 35, 20)}
    assert shown[80] == "[1 Offline partitions 2,000] 2 Replica log info  3 Quorum NO LEADER"
    assert shown[50] == "[1 Offline 2,000] 2 Replicas  3 Quorum NO LEADER"
    assert shown[46] == "[1 Offline 2,000]2 Replicas 3 Quorum NO LEADER"
    assert shown[35] == "[1 Offline!]2 Replicas 3 Quorum!"
    assert shown[20] == "[1 Offline!]2 3!"


@pytest.mark.parametrize("width", [40, 80])
async def test_a_filter_stands_behind_the_path_and_a_wrong_one_is_red(width: int) -> None:
    crumbs = Crumbs()
    async with Harness(crumbs).run_test(size=(width, 5)) as pilot:
        crumbs.update(["prod-eu", "a-long-way-to-some-partition"], "'ord': 2 of 9 shown")
        await pilot.pause()
        assert "2 of 9 shown" in text_of(pilot.app)
        crumbs.update(["prod-eu"], "/(/: 0 of 9 shown", wrong=True)
        await pilot.pause()
        assert crumbs.lines[0][-1].tone is Tone.BAD


async def test_a_tab_is_chosen_by_the_mouse() -> None:
    chosen: list[str] = []

    class Tabbed(Harness):
        def on_pane_tabs_tab_clicked(self, message: PaneTabs.TabClicked) -> None:
            chosen.append(message.key)

    tabs = PaneTabs()
    app = Tabbed(tabs, Crumbs())
    async with app.run_test(size=(80, 5)) as pilot:
        tabs.update([Tab("1", "Partitions", "6"), Tab("2", "Replicas")], "1")
        app.query_one(Crumbs).update(["prod-eu", "partitions", "payments-0"])
        await pilot.pause()
        assert "prod-eu > partitions > payments-0" in text_of(app)
        await pilot.click(PaneTabs, offset=(text_of(app).index("Replicas"), 0))
        assert chosen == ["2"]


class Filtered(Harness):
    def __init__(self, *parts: FilterBar) -> None:
        super().__init__(*parts)
        self.filters: list[RowFilter | None] = []
        self.closed: list[bool] = []

    def on_filter_bar_filter_changed(self, message: FilterBar.FilterChanged) -> None:
        self.filters.append(message.filter)

    def on_filter_bar_filter_bar_closed(self, message: FilterBar.FilterBarClosed) -> None:
        self.closed.append(message.filter_stays)


async def test_a_filter_is_typed_kept_and_dropped() -> None:
    bar = FilterBar()
    app = Filtered(bar)
    async with app.run_test(size=(80, 5)) as pilot:
        bar.open()
        await pilot.press("!", "o", "r")
        await pilot.pause()
        assert app.filters[-1] == RowFilter("or", inverse=True)
        assert "!or" in text_of(app), "what is typed is seen"
        assert "not text" in text_of(app)
        await pilot.press("enter")
        await pilot.pause()
        assert app.closed == [True] and "filter:" not in text_of(app)
        bar.open()
        await pilot.press("escape")
        await pilot.pause()
        assert app.filters[-1] is None and app.closed == [True, False]


async def test_a_mistyped_expression_is_said_and_cannot_be_kept() -> None:
    bar = FilterBar()
    app = Filtered(bar)
    async with app.run_test(size=(80, 5)) as pilot:
        bar.open("/a")
        await pilot.pause()
        await pilot.press("(")
        await pilot.pause()
        assert "no regex" in text_of(app)
        assert app.filters[-1] == RowFilter("a(", regex=True), "it lets no row in"
        await pilot.press("enter")
        await pilot.pause()
        assert app.closed == [] and "no regex" in text_of(app), "the bar stays until it is mended"
        await pilot.press("backspace", "enter")
        await pilot.pause()
        assert app.filters[-1] == RowFilter("a", regex=True) and app.closed == [True]


async def test_an_error_is_one_line_and_stays() -> None:
    say, command = MessageBar(), CommandBar()
    async with Harness(say, command).run_test(size=(40, 5)) as pilot:
        command.update("ktriage replicas --bootstrap-server kafka-1:9092 --all-offline-partitions")
        say.say("broker 3:\x1b[2J\nlost", Tone.BAD)
        await pilot.pause()
        first, second, *_ = text_of(pilot.app).splitlines()
        assert first == "ERROR broker 3: [2J lost"
        assert second.startswith("$ ktriage") and second.endswith("partitions")
        assert command.text.endswith("--all-offline-partitions")
        say.clear_message()
        await pilot.pause()
        assert "ERROR" not in text_of(pilot.app)


async def test_a_long_error_keeps_its_cause_and_its_end() -> None:
    say = MessageBar()
    where = "/home/somebody/.local/state/ktriage/simulations/last-replica-standing-1.json"
    async with Harness(say).run_test(size=(80, 24)) as pilot:
        say.say(f"{where}: another command is using this simulation; wait for it", Tone.BAD)
        await pilot.pause()
        told = text_of(pilot.app)
        assert "another command is using this simulation; wait for it" in told
        say.say(
            f"{where}: another command is using this simulation; wait for it {where} " * 3 + "end", Tone.BAD
        )
        await pilot.pause()
        first, _, third, below, *_ = text_of(pilot.app).splitlines()
        assert first.startswith("ERROR last-replica-standing-1.json: another command")
        assert third.endswith("…") and not below
        say.say("short")
        await pilot.pause()
        assert say.size.height == 1


def test_a_title_tells_the_cause_before_the_place() -> None:
    note = "/home/somebody/.local/state/ktriage/x.json: another command is using this; asked again in 7 s"
    lost = Title("last", "x", "LIVE", age_s=125.0, refresh=RefreshState.LOST, note=note)
    assert "x.json: another command is using this" in told(lost, 80)
    assert "x.json: another command" in told(lost, 120)


async def test_help_lists_the_keys_and_why_one_does_nothing_now() -> None:
    sections = (HelpSection("Not now: this profile is read-only", (HelpRow("A", "arm"),), works=False),)
    app = Harness(MessageBar())
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(HelpScreen(sections))
        await pilot.pause()
        assert "Not now: this profile is read-only" in text_of(app) and "A  arm" in text_of(app)
        await pilot.press("question_mark")
        await pilot.pause()
        assert "arm" not in text_of(app)


async def test_help_that_is_longer_than_the_screen_is_scrolled() -> None:
    rows = tuple(HelpRow(f"k{number}", f"what key {number} does") for number in range(60))
    app = Harness(MessageBar())
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(HelpScreen((HelpSection("Keys", rows),)))
        await pilot.pause()
        assert "what key 0 does" in text_of(app) and "what key 59 does" not in text_of(app)
        await pilot.press("pagedown", "down")
        await pilot.pause()
        assert "what key 0 does" not in text_of(app) and "what key 25 does" in text_of(app)
        await pilot.press("end")
        await pilot.pause()
        assert "what key 59 does" in text_of(app)
        await pilot.press("escape")
        await pilot.pause()
        assert "what key" not in text_of(app)


async def test_the_picker_opens_only_what_can_be_opened() -> None:
    places = (
        ClusterChoice(ClusterKind.PROFILE, "prod-eu", "production", read_only=True),
        ClusterChoice(
            ClusterKind.PROFILE,
            "broken",
            "in /home/clusters.yaml",
            problem="clusters.yaml:12: expected a list",
        ),
        ClusterChoice(ClusterKind.SCENARIO, "stale-long-tail", "a choice by length destroys"),
    )
    chosen: list[ClusterChoice | None] = []
    app = Harness(MessageBar())
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(ClusterPicker(places), chosen.append)
        await pilot.pause()
        assert "SIMULATOR scenarios: nothing real" in text_of(app)
        await pilot.press("down", "enter")
        await pilot.pause()
        assert chosen == []
        assert "broken: clusters.yaml:12: expected a list in /home/clusters.yaml" in text_of(app)
        await pilot.press("end", "enter")
        await pilot.pause()
        assert chosen == [places[2]]
