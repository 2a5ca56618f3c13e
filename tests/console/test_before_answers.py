"""What stands on the screen while something is asked, and before anything was answered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import pytest
from textual.widgets import Input, OptionList

from backends.base.answers import ClusterInfo, Partitions
from backends.base.errors import Unreachable
from backends.base.protocol import Progress
from backends.simulator.adapter import SimulatorBackend
from console.app.base.question_dialogs import AnswerOption, ChoiceQuestion, TextQuestion
from console.app.session.view import Link
from console.simulator_backend import scenario
from console.target import Target
from tests.console.robot import console
from tests.unit.widgets.harness import Harness, text_of
from widgets import theme
from widgets.text_lines import Lines

ANSWERS = (
    AnswerOption("wait", "wait: leave it"),
    AnswerOption("choose", "choose a leader"),
    AnswerOption("no", "no", "not now"),
)


class Nobody(SimulatorBackend):
    """A cluster of which nobody ever answers."""

    async def open(self) -> ClusterInfo:
        raise Unreachable("nobody answers")


def nobody(_target: Target, _say: Callable[[str], None]) -> SimulatorBackend:
    return Nobody(scenario("last-replica-standing"))


async def test_a_cluster_that_never_answered_is_not_told_to_be_well() -> None:
    async with console("last-replica-standing", make=nobody, looked=False) as robot:
        await robot.link_is(Link.LOST)
        await robot.sees("NOT REACHED", "nobody is reached at this address", "C opens another address")
        assert "0 offline" not in robot.screen and "LOST" not in robot.screen.replace("OFFSETS LOST", "")
        await robot.opens("3")
        await robot.sees("who waits for a leader is not known yet")
        assert "no partition waits" not in robot.screen
        await robot.opens("5")
        await robot.sees("the log dirs are not known yet")
        assert "0 failed" not in robot.screen


class Late(SimulatorBackend):
    """A cluster whose partitions are listed only once the test lets it."""

    def __init__(self, name: str) -> None:
        super().__init__(scenario(name))
        self.released = threading.Event()

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        while not self.released.is_set():  # noqa: ASYNC110  # set by another thread
            await asyncio.sleep(0.01)
        return await super().partitions(topics)


async def test_a_pane_opened_before_the_first_answer_shows_the_worst_partition_once_it_is_known() -> None:
    late = Late("last-replica-standing")
    async with console("last-replica-standing", make=lambda _target, _say: late, looked=False) as robot:
        await robot.opens("2")
        await robot.sees("choose a partition in pane 1")
        late.released.set()
        await robot.until(lambda: robot.desk.cursor is not None, "a partition under the cursor")
        await robot.until(
            lambda: "choose a partition in pane 1" not in robot.screen, "the partition's replicas"
        )


class SlowToOpen(SimulatorBackend):
    """A cluster whose replay stops half way until the test lets it go on."""

    def __init__(self, name: str) -> None:
        super().__init__(scenario(name))
        self.released = threading.Event()

    def watch_opening(self, progress: Progress) -> None:
        def told(what: str, done: int, of: int) -> None:
            progress(what, done, of)
            if of and 2 * done >= of:
                self.released.wait()

        super().watch_opening(told)


async def test_before_there_is_a_picture_the_title_says_what_is_read_how_far_it_is_and_since_when() -> None:
    slow = SlowToOpen("last-replica-standing")
    now = [1_000.0]

    def clock() -> float:
        return now[0]

    async with console(
        "last-replica-standing", make=lambda _target, _say: slow, looked=False, clock=clock
    ) as robot:
        try:
            await robot.sees("no picture yet", "replaying the incident, second ")
            now[0] += 400.0
            await robot.sees("400 s so far")
            assert "LOST" not in robot.screen.replace("OFFSETS LOST", "")
        finally:
            slow.released.set()
        await robot.looked()
        await robot.until(lambda: "so far" not in robot.screen, "a title without the end of the replay")


class HangingDisks(SimulatorBackend):
    """A cluster whose log dirs are not told: what was acknowledged is judged after them."""

    async def log_dirs(self, brokers: Sequence[int] | None = None) -> NoReturn:  # noqa: ARG002
        await asyncio.Event().wait()
        raise AssertionError


async def test_nothing_is_suggested_before_it_was_judged_what_was_acknowledged() -> None:
    """By the logs alone the return of broker 3 looks harmless; it cuts off what was committed."""

    def hanging(_target: Target, _say: Callable[[str], None]) -> SimulatorBackend:
        return HangingDisks(scenario("stale-long-tail"))

    async with console("stale-long-tail", make=hanging, looked=False) as robot:
        await robot.sees("payments-0", "2 of 3", "checking …", "is being checked")
        assert "bring back" not in robot.screen and "wait for" not in robot.screen
        await robot.sees("Still reading: what to do first is said when all of it is read.")
        assert "Do first" not in robot.screen and "Start" not in robot.screen
        await robot.press("tab")
        assert "Do first" not in robot.screen
        await robot.opens("3")
        await robot.sees("Still reading: whom to start, and whom not yet")
        assert "back: a leader" not in robot.screen and "The return of" not in robot.screen
        await robot.opens("8")
        await robot.sees("1, still reading", "Whether it may be started first is still being read.")


async def test_an_empty_line_is_no_answer_and_leaves_the_question_open() -> None:
    taken: list[str | None] = []
    app = Harness(Lines())
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(TextQuestion("To which file?"), taken.append)
        await pilot.pause()
        assert app.screen.query_one(Input).outer_size.height == 1, "more rows look like a second field"
        await pilot.press("enter")
        await pilot.pause()
        assert taken == []
        assert "Type an answer first" in text_of(app)
        await pilot.press("a", "enter")
        await pilot.pause()
        assert taken == ["a"]


@pytest.mark.parametrize("name", [theme.PLAIN, theme.DARK])
async def test_the_answer_that_enter_takes_carries_a_sign_without_colour_too(name: str) -> None:
    taken: list[str | None] = []
    app = Harness(Lines(), theme_name=name)
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(ChoiceQuestion("How much must be known?", ANSWERS), taken.append)
        await pilot.pause()
        assert "► wait: leave it" in text_of(app)
        await pilot.press("down")
        await pilot.pause()
        assert "► choose a leader" in text_of(app)
        assert text_of(app).count("►") == 1
        strip = app.screen.query_one(OptionList).render_line(1)
        assert any(segment.style is not None and segment.style.reverse for segment in strip)
        await pilot.press("enter")
        await pilot.pause()
        assert taken == ["choose"]


async def test_a_broken_settings_file_says_its_line_first(home: Path) -> None:
    file = home / "config" / "ktriage" / "clusters.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("clusters:\n  prod: [\n", encoding="utf-8")
    async with console(None) as robot:
        await robot.until(lambda: "clusters.yaml" in robot.screen, "the picker")
        (row,) = [line for line in robot.screen.splitlines() if "LIVE  " in line]
        assert "line 3: not YAML" in row


async def test_a_bar_is_gone_when_its_work_is_over() -> None:
    async with console("last-replica-standing") as robot:
        await robot.plans(1)
        await robot.press("m")
        await robot.hears("beside the cluster of now")
        assert robot.desk.progress.batches is not None
        await robot.settled()
        assert "█" not in robot.screen


async def test_what_is_typed_on_when_a_confirmation_closes_runs_no_command() -> None:
    async with console("last-replica-standing", hush=1e9) as robot:
        await robot.plans(1)
        await robot.arms()
        await robot.asks_to_apply()
        await robot.press("enter")
        await robot.until(lambda: robot.app.screen is robot.desk, "the desk")
        await robot.hears("not confirmed")
        await robot.press("d", "1", "A")
        assert robot.session.draft.partitions and robot.session.safety.armed
        assert robot.desk.pane == "6"
        assert "a key so soon after a question does nothing: press it again" in robot.said


async def test_what_was_said_of_one_question_does_not_stand_behind_the_next() -> None:
    async with console("last-replica-standing") as robot:
        await robot.plans(1)
        await robot.arms()
        await robot.asks_to_apply()
        await robot.press("escape")
        await robot.hears("not confirmed")
        await robot.idle()
        await robot.asks_to_apply()
        assert "not confirmed" not in robot.screen
        await robot.press("escape")
        await robot.hears("not confirmed")
