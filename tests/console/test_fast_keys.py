"""Keys that come faster than the screen, and screens that are left while something is under way."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from backends.base.answers import Election, SurveyRequest, SurveyResult
from backends.base.protocol import Backend, Progress, Recorder, Stop
from backends.simulator.adapter import SimulatorBackend
from console.app.base.question_dialogs import ChoiceQuestion
from console.app.main_screen.main_screen import MainScreen
from console.app.session.view import Link
from console.app.typed_ahead import TypedAhead
from console.change.registry import DIRS, OFFLINE, QUORUM
from console.jobs.elect import election_batches
from console.jobs.quorum.wizard_screens.screen import WizardScreen
from console.simulator_backend import scenario
from console.target import Target, resolve
from recovery.plan import election_requests
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking
from tests.console.faults import answers_again, hangs
from tests.console.robot import Robot, console, records, reports, soon
from tests.console.test_wizard import SCENARIO, opens_the_wizard
from widgets.bars.title_bar import TitleBar
from widgets.dialogs.confirmation import Confirmation
from widgets.dialogs.help_screen import HelpScreen
from widgets.dialogs.partition_finder import PartitionFinder

LOST = "last-replica-standing"
TWO_BRANCHES = "stale-long-tail"
"""Where the careful strategy elects nobody, so that the console asks how much must be known."""


class Slow(SimulatorBackend):
    """What is sent from the second request on waits until it is let; a mock, for a simulated controller answers at
    once.
    """

    def __init__(self, name: str, waits_from: int, *, heeds_stop: bool = False) -> None:
        super().__init__(scenario(name))
        self.waits_from = waits_from
        self.heeds_stop = heeds_stop
        self.sent = 0
        self.surveys_hang = False
        self.let = threading.Event()

    async def designate(
        self,
        rows: Sequence[PlanRow],
        ranking: Ranking,
        recorder: Recorder,
        *,
        attempts: int,
        stop: Stop,
        progress: Progress | None = None,
    ) -> tuple[Election, ...]:
        self.sent += 1
        if self.sent >= self.waits_from:
            while not self.let.is_set() and not (self.heeds_stop and stop):  # noqa: ASYNC110  # set by another thread
                await asyncio.sleep(0.01)
        return await super().designate(
            rows, ranking, recorder, attempts=attempts, stop=stop, progress=progress
        )

    async def survey(self, request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        if self.surveys_hang:
            await asyncio.Event().wait()
        return await super().survey(request, progress)


def gives(backend: SimulatorBackend) -> Callable[[Target, object], Backend]:
    return lambda _target, _say: backend


async def plans_everything(robot: Robot) -> None:
    await robot.press("a", "c")
    await robot.asked(ChoiceQuestion)
    await robot.press("down", "down", "enter")
    await robot.until(lambda: len(robot.session.draft.partitions) > 1, "a plan")
    await robot.idle()
    await robot.opens("6")
    await robot.arms()


@pytest.mark.parametrize("close", ["escape", "enter"])
async def test_a_second_key_takes_no_screen_but_the_one_it_was_meant_for(close: str) -> None:
    async with console(TWO_BRANCHES) as robot:
        await robot.press("c")
        await robot.asked(ChoiceQuestion)
        robot.hits(close, close, close)
        await robot.until(lambda: robot.app.screen is robot.app.desk, "the desk")
        await robot.idle()
        await robot.press("question_mark")
        await robot.asked(HelpScreen)
        robot.hits("escape", "escape", "escape")
        await robot.until(lambda: robot.app.screen is robot.app.desk, "the desk")
        await robot.press("4")
        await robot.until(lambda: robot.desk.pane == "4", "pane 4")


async def test_the_palette_is_closed_and_opened_in_one_burst() -> None:
    async with console(LOST) as robot:
        for burst in (("colon", "escape", "colon", "escape"), ("colon", "4", "enter", "enter", "enter")):
            robot.hits(*burst)
            await robot.pilot.pause()
            robot.hits("escape", "escape", "escape")
            await robot.until(lambda: robot.app.screen is robot.app.desk, "the desk")


async def test_a_name_is_typed_ahead_of_the_field_that_it_is_for() -> None:
    async with console("zone-power-loss") as robot:
        robot.hits("f", "o", "r", "d", "space", "1", "7")
        await robot.asked(PartitionFinder)
        field = robot.app.screen.query_one(Input)
        await robot.until(lambda: field.value == "ord 17", f"the whole name; there is {field.value!r}")
        await robot.press("escape")
        await robot.until(lambda: robot.app.screen is robot.desk, "the desk")
        robot.hits("4", "slash", "1", "0", "2", "enter")
        await robot.until(lambda: robot.desk.pane == QUORUM and robot.desk.table.filtered, "the filter")
        await robot.sees("filter '102'")
        await robot.until(lambda: not isinstance(robot.app.focused, Input), "the keys of the pane again")
        assert not robot.session.poller.state.schedule.paused and not robot.session.safety.armed
        robot.hits("colon", *"offline", "enter")
        await robot.until(lambda: robot.desk.pane == OFFLINE, "the command that was typed")


async def test_a_question_is_not_answered_by_what_was_typed_before_it_was_there() -> None:
    async with console(TWO_BRANCHES) as robot:
        robot.hits("c", "down", "enter", "1", "enter")
        await robot.asked(ChoiceQuestion)
        await robot.pilot.pause()
        assert isinstance(robot.app.screen, ChoiceQuestion) and robot.session.draft.plan is None
        assert robot.desk.pane == OFFLINE
        await robot.until(lambda: re.search("keys .*d(o|id) nothing", robot.said), "a word about the keys")


async def test_keys_that_come_while_another_cluster_is_opened_do_nothing() -> None:
    async with console(LOST) as robot:
        for name in ("stale-long-tail", LOST):
            robot.app.run_worker(robot.app.open(resolve(None, None, name, None)))
            for _ in range(20):
                robot.hits("j", "2", "r", "slash", "escape", "5", "j", "A", "1", "question_mark", "escape")
                await asyncio.sleep(0)
            await soon(
                lambda name=name: robot.app.session and robot.app.session.target.scenario == name  # type: ignore[misc]  # mypy and defaults of lambdas
            )
        await robot.until(
            lambda: robot.app.desk is not None and robot.app.screen is robot.app.desk, "its desk"
        )
        await robot.looked()


async def test_a_field_that_is_gone_when_its_focus_is_told_is_none_to_type_into() -> None:
    async with console(LOST) as robot:
        TypedAhead().focused(Input())
        assert robot.app.return_code is None


async def test_what_is_chosen_of_a_cluster_that_was_lost_meanwhile_is_not_planned() -> None:
    async with console(TWO_BRANCHES) as robot:
        await robot.press("c")
        await robot.asked(ChoiceQuestion)
        await hangs(robot, 1, 2, 3)
        robot.session.poller.ask()
        await robot.link_is(Link.LOST)
        await answers_again(robot, 1, 2, 3)
        robot.session.poller.ask()
        await robot.link_is(Link.UP)
        await robot.takes("1")
        await robot.hears("the plan is not changed")
        assert robot.session.draft.plan is None


async def test_the_number_of_a_broker_goes_to_the_line_of_its_log() -> None:
    async with console(TWO_BRANCHES) as robot:
        await robot.press("c")
        await robot.asked(ChoiceQuestion)
        await robot.press("1", "enter")
        await robot.until(lambda: robot.session.draft.plan is not None, "a plan")
        assert robot.session.draft.plan is not None
        assert [row.leader for row in robot.session.draft.plan.rows] == [1]


class LateSurvey(SimulatorBackend):
    """A cluster whose logs are told late, once ``hold`` is set, as behind a slow network."""

    def __init__(self, name: str) -> None:
        super().__init__(scenario(name))
        self.hold = threading.Event()
        self.let = threading.Event()

    async def survey(self, request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        while self.hold.is_set() and not self.let.is_set():  # noqa: ASYNC110  # set by another thread
            await asyncio.sleep(0.01)
        return await super().survey(request, progress)


async def test_what_is_typed_before_a_question_has_opened_runs_no_command() -> None:
    """Whoever knows the question types its answer at once: each letter is also the key of a command."""
    backend = LateSurvey(LOST)
    async with console(LOST, make=gives(backend)) as robot:
        await robot.plans(1)
        await robot.arms()
        backend.hold.set()
        planned = robot.session.draft.partitions
        robot.hits("X", *"payments", "d", "1", "A", "q", "tab", "enter")
        await robot.until(lambda: robot.desk.busy, "the comparison under way")
        await robot.pilot.pause()
        robot.hits("d")
        await robot.hears("reading once more before asking: keys do nothing until this asks or is done")
        assert robot.desk.pane == "6" and robot.session.draft.partitions == planned
        assert robot.session.safety.armed and not robot.session.poller.state.schedule.paused
        backend.let.set()
        await robot.asked(Confirmation)
        assert all(not field.value for field in robot.app.screen.query(Input))
        await robot.press("escape")
        await robot.idle()
        await robot.press("1")
        await robot.until(lambda: robot.desk.pane == "1", "keys that act again")


async def test_a_task_that_opens_nothing_takes_no_keys() -> None:
    backend = LateSurvey(LOST)
    async with console(LOST, make=gives(backend)) as robot:
        await robot.plans(1)
        backend.hold.set()
        await robot.press("m")
        await robot.until(lambda: robot.desk.busy, "the comparison under way")
        await robot.opens("4")
        backend.let.set()
        await robot.idle()


async def test_stopping_before_anything_was_sent_sends_nothing(home: Path) -> None:
    backend = Slow(LOST, waits_from=1, heeds_stop=True)
    async with console(LOST, make=gives(backend)) as robot:
        await robot.plans(1)
        await robot.arms()
        await robot.asks_to_apply()
        await robot.confirms("payments", "drill")
        await robot.until(lambda: backend.sent == 1, "the batch, before it sends")
        await robot.press("escape")
        await robot.idle()
        assert robot.session.view.offline == 1
    sent = {"elect", "reorder"}
    assert not [line for lines in records(home) for line in lines if line.get("action") in sent]


async def test_stopping_midway_finishes_what_is_in_flight_and_the_rest_is_gone_on_with(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(election_requests, "PART", 2)
    monkeypatch.setattr(election_batches, "PARTS_AT_ONCE", 1)
    backend = Slow("zone-power-loss", waits_from=2)
    async with console("zone-power-loss", size=(120, 30), make=gives(backend)) as robot:
        await plans_everything(robot)
        rows = len(robot.session.draft.partitions)
        confirmation = await robot.asks_to_apply()
        await robot.confirms(confirmation.request.expected or "", "drill")
        await robot.until(lambda: backend.sent == 2, "the second part")
        await robot.press("escape")
        await robot.hears("what is in flight is finished")
        await robot.press("q")
        await robot.hears("applying the plan is under way")
        backend.let.set()
        await robot.idle()
        await robot.hears(f"stopped: 2 elected, {rows - 2} not sent")
        words = [outcome.word for outcome in robot.session.draft.outcomes.values()]
        assert sorted(words) == sorted(["elected"] * 2 + ["not sent"] * (rows - 2))
        await robot.until(lambda: robot.session.poller.idle, "the look after it")
        again = await robot.asks_to_apply()
        await robot.confirms(again.request.expected or "", "drill")
        await robot.idle()
        await robot.hears(f"{rows - 2} partitions have a leader")
    sent = [line for lines in records(home) for line in lines]
    assert all_ended(sent)


async def has_one_in_flight(robot: Robot, backend: Slow) -> None:
    """An election is confirmed, and does not come back until it is let."""
    await robot.plans(1)
    await robot.arms()
    await robot.asks_to_apply()
    await robot.confirms("payments", "drill")
    await robot.until(lambda: backend.sent, "an election in flight")


async def test_a_console_that_is_left_in_the_middle_of_an_election_ends_it_first(home: Path) -> None:
    backend = Slow(LOST, waits_from=1)
    async with console(LOST, make=gives(backend)) as robot:
        await has_one_in_flight(robot, backend)
        robot.app.leave()
        await robot.press("1", "c")
        assert robot.app.return_code is None
        backend.let.set()
        await robot.until(lambda: robot.app.return_code == 0, "the end")
    assert all_ended([line for lines in records(home) for line in lines])


async def test_another_cluster_is_opened_only_when_nothing_is_in_flight_any_more(home: Path) -> None:
    backend = Slow(LOST, waits_from=1)
    async with console(LOST, make=gives(backend)) as robot:
        await has_one_in_flight(robot, backend)
        before = robot.session
        closing = asyncio.create_task(robot.app.close_session())
        await robot.until(robot.app.is_leaving, "the way out")
        assert robot.app.session is before
        backend.let.set()
        await closing
    assert all_ended([line for lines in records(home) for line in lines])


def all_ended(lines: Sequence[dict[str, Any]]) -> bool:
    """Every request that went out has its answer beside it."""
    before = [line["entry"] for line in lines if line["kind"] == "before"]
    return before == [] or set(before) <= {line.get("entry") for line in lines if line["kind"] == "after"}


async def test_a_question_of_the_wizard_does_not_keep_a_console_that_is_left(home: Path) -> None:
    async with console(SCENARIO, size=(120, 40)) as robot:
        await robot.arms()
        await opens_the_wizard(robot)
        await robot.press("enter")
        await robot.sees("Enter: ")
        robot.app.leave()
        await robot.until(lambda: robot.app.return_code == 0, "the end")
        assert "unfinished" not in robot.app.last_line


@pytest.mark.long
async def test_the_wizard_is_left_and_come_back_to_as_fast_as_keys_come(home: Path) -> None:
    async with console(SCENARIO, size=(120, 40)) as robot:
        await robot.arms()
        await opens_the_wizard(robot)
        await robot.press("enter")
        await robot.sees("Enter: ")
        for _ in range(2):
            robot.hits("escape", "escape", "4", "M", "enter")
            await robot.pilot.pause()
            await comes_back(robot)
            await robot.opens("4")
            await robot.press("M")
            await robot.asked(WizardScreen)
            await robot.press("enter")
            await robot.sees("Enter: ")
        await comes_back(robot)


async def comes_back(robot: Robot) -> None:
    """To the desk, whatever the keys have opened, with nothing under way."""

    def is_back() -> bool:
        if robot.app.screen is not robot.desk:
            robot.hits("escape")
        return robot.app.screen is robot.desk and not robot.desk.busy

    await robot.until(is_back, "the desk, and nothing under way")


async def test_a_defect_in_drawing_is_told_and_looks_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_bar: TitleBar, _title: object) -> None:
        raise ValueError("a defect")

    async with console(LOST, crashes=True) as robot:
        with monkeypatch.context() as broken:
            broken.setattr(TitleBar, "update", fails)
            robot.session.poller.ask()
            await robot.hears("internal error (ValueError)")
        await robot.looks_again()
        assert robot.app.return_code is None
        assert reports()


async def test_keys_that_come_before_the_other_panes_are_there_act_once_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load = MainScreen._load_rest

    async def not_yet(_screen: MainScreen) -> None:
        pass

    monkeypatch.setattr(MainScreen, "_load_rest", not_yet)
    async with console(LOST, looked=False) as robot:
        await robot.sees("READ-ONLY", "Offline")
        robot.hits("4", "5")
        await robot.pilot.pause()
        assert robot.desk.pane == OFFLINE
        robot.desk.call_next(load, robot.desk)
        await robot.until(lambda: robot.desk.pane == DIRS, "the pane of the last key")
        await robot.sees("Log dirs")
        await robot.press("escape")
        await robot.until(lambda: robot.desk.pane == QUORUM, "the pane of the key before")
