"""A controller's disk is gone: the console leads through its replacement, step by step."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backends.simulator.adapter import SimulatorBackend
from backends.simulator.membership import SimulatedMembership
from backends.simulator.network import OPERATOR, controller
from console.app.base.question_dialogs import ChoiceQuestion
from console.app.base.record_screen import RecordScreen
from console.app.session.safety import IDLE_SECONDS
from console.jobs.quorum.wizard_screens.screen import WizardScreen
from console.simulator_backend import scenario
from console.target import Target
from recovery.membership.quorum import Quorum
from tests.console.faults import happens, passes
from tests.console.robot import Robot, console, records
from widgets.bars.message_bars import MessageBar
from widgets.dialogs.confirmation import Confirmation

SCENARIO = "controller-disk-failure"
NODE = 102


def voters(robot: Robot) -> tuple[str, ...]:
    quorum = robot.session.view.quorum
    assert isinstance(quorum, Quorum)
    return tuple(str(key) for key in quorum.voters.keys if key.id == NODE)


async def opens_the_wizard(robot: Robot) -> WizardScreen:
    """From the quorum pane: the voter whose disk is gone."""
    await robot.opens("4")
    quorum = robot.session.view.quorum
    assert isinstance(quorum, Quorum)
    key = next(key for key in quorum.voters.keys if key.id == NODE)
    await robot.puts_the_cursor_on((key.id, key.directory_id))
    await robot.press("M")
    await robot.sees(f"Why is controller {NODE} replaced?", "disk:")
    await robot.press("enter")
    await robot.asked(WizardScreen)
    screen = robot.app.screen
    assert isinstance(screen, WizardScreen)
    return screen


async def allows(robot: Robot) -> str:
    """Reads what is to be sent, and types the node's id; returns what was read."""
    await robot.sees("Enter: ")
    await robot.press("enter")
    await robot.asked(Confirmation)
    confirmation = robot.app.screen
    assert isinstance(confirmation, Confirmation)
    await robot.sees(f"the node id ({NODE})")
    read = " ".join(robot.screen.replace("┃", " ").split())
    confirmation.query_one("#expected").value = str(NODE)  # type: ignore[attr-defined]  # an Input
    button = confirmation.query_one("#confirm")
    await robot.until(lambda: not button.disabled, "a complete confirmation")
    button.focus()
    await robot.until(lambda: button.has_focus, "the button in focus")
    await robot.press("enter")
    await robot.until(lambda: robot.app.screen is not confirmation, "the wizard again")
    return read


async def silences(robot: Robot) -> None:
    """The newcomer's endpoint does not answer the one who asks: its addition is held back."""
    await happens(robot, lambda b: b.simulation.world.network.cut([OPERATOR], [controller(NODE)]))


async def hears_again(robot: Robot) -> None:
    await happens(robot, lambda b: b.simulation.world.network.heal([OPERATOR], [controller(NODE)]))


async def test_a_controller_gets_its_new_disk_into_the_quorum_by_the_wizard(home: Path) -> None:
    async with console(SCENARIO, size=(120, 40)) as robot:
        before = voters(robot)
        await robot.arms()
        await opens_the_wizard(robot)
        await robot.sees("Replace a controller (disk)", "Enter begins")
        await robot.press("enter")
        asked = await allows(robot)
        # The wizard is seen beside the question, so that its words may stand between those of the question.
        words = (
            "Remove",
            "voter",
            rf"{NODE}-\S+",
            "and",
            "then",
            "add",
            "voter",
            rf"{NODE}-\S+",
            "in",
            "its",
            r"place\?",
        )
        assert re.search(r"\b.*?\b".join(words), asked), asked
        assert "the addition follows without another question" in asked
        # Whoever looks away now leaves no set with a voter too few.
        await robot.sees("the replacement is done", "Esc back to the panes")
        await robot.press("escape")
        await robot.until(lambda: robot.app.screen is robot.desk, "the desk")
        assert robot.said == "the replacement is done"
        await robot.looks_again()
        assert len(voters(robot)) == 1
        assert voters(robot) != before
    (lines,) = records(home)
    assert [line["action"] for line in lines if line["kind"] == "before"][1:] == ["remove-voter", "add-voter"]
    assert lines[-1]["status"] == 0


async def test_why_a_controller_is_not_replaced_is_read_to_its_end_before_anything_is_asked(
    home: Path,
) -> None:
    """At 80 columns: the end of the refusal is the way that is left."""
    async with console("controller-node-failure", size=(80, 24)) as robot:
        await happens(robot, lambda b: b.simulation.world.kill_broker(3))
        await passes(robot, 30)
        await robot.opens("4")
        await robot.looks_again()
        quorum = robot.session.view.quorum
        assert isinstance(quorum, Quorum)
        key = next(key for key in quorum.voters.keys if key.id == NODE)
        await robot.puts_the_cursor_on((key.id, key.directory_id))
        await robot.press("M")
        await robot.asked(RecordScreen)
        await robot.sees("Not replaced", "give --not-rebuilt")
        read = " ".join(robot.screen.replace("│", " ").split())
        assert f"Do not replace, format or wipe {NODE}: a rebuild on another host" in read, read
        assert "broker 3 is not seen to follow controller" in read, read


async def test_a_read_only_console_plans_a_replacement_and_sends_nothing(home: Path) -> None:
    async with console(SCENARIO, size=(120, 40), read_only=True) as robot:
        await opens_the_wizard(robot)
        await robot.press("enter")
        await robot.sees("stays read-only")
    assert records(home) == []


@pytest.mark.long
async def test_a_replacement_that_was_left_is_gone_on_with(home: Path) -> None:
    async with console(SCENARIO, size=(120, 40)) as robot:
        await robot.arms()
        await opens_the_wizard(robot)
        await robot.press("enter")
        await robot.sees("Enter: remove", "Enter send it")
        await silences(robot)
        await allows(robot)
        await robot.sees("5. NOW", "Not yet: ")
        await robot.press("ctrl+c")
        await robot.sees("Esc leaves this", "5. NOW")
        await robot.press("escape")
        await robot.until(lambda: robot.app.screen is robot.desk, "the desk")
        await robot.until(lambda: not robot.app.stop.flights, "the end of the run")
        await hears_again(robot)
        await robot.press("M")
        await robot.asked(WizardScreen)
        await robot.sees("4. done", "5. NOW")
        await robot.press("enter")
        await allows(robot)
        await robot.sees("the replacement is done")
    assert len(records(home)) == 2


class Unopened:
    """A quorum that tells whose it is once it was opened, as one behind brokers; a mock: a simulated one always
    knows.
    """

    def __init__(self, within: SimulatedMembership) -> None:
        self._within = within
        self._opened = False

    async def open(self) -> str:
        self._opened = True
        return await self._within.open()

    async def describe(self) -> Quorum:
        found = await self._within.describe()
        return found if self._opened else replace(found, cluster_id="")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._within, name)


class Behind(SimulatorBackend):
    """A cluster whose quorum is :class:`Unopened` to each console that is opened on it."""

    def __init__(self, name: str) -> None:
        super().__init__(scenario(name))
        self._quorum: Unopened | None = None

    @property
    def membership(self) -> Any:
        if self._quorum is None:
            self._quorum = Unopened(super().membership)
        return self._quorum


@pytest.mark.long
async def test_another_console_goes_on_with_what_the_first_left(home: Path) -> None:
    def make(_target: Target, _say: object) -> SimulatorBackend:
        return Behind(SCENARIO)

    async with console(SCENARIO, size=(120, 40), make=make) as robot:
        await robot.arms()
        await opens_the_wizard(robot)
        await robot.press("enter")
        await robot.sees("Enter: remove")
        await silences(robot)
        await allows(robot)
        await robot.sees("5. NOW", "Not yet: ")
        await robot.press("escape")
        await robot.until(lambda: not robot.app.stop.flights, "the end of the run")
    async with console(SCENARIO, size=(120, 40), make=make) as robot:
        await robot.arms()
        await robot.opens("4")
        await robot.press("M")
        await robot.asked(WizardScreen)
        await robot.press("enter")
        await allows(robot)  # its simulation is another: there the voter is still to be taken out
        await robot.sees("the replacement is done")


@pytest.mark.long
async def test_why_a_step_is_not_sent_stands_as_long_as_it_holds(home: Path) -> None:
    async with console(SCENARIO, size=(120, 40)) as robot:
        await robot.arms()
        await opens_the_wizard(robot)
        await robot.press("enter")
        await robot.sees("Enter: remove")
        await silences(robot)
        await allows(robot)
        await robot.sees("5. NOW", "Not yet: ", "does not answer")
        robot.app.screen.query_one(MessageBar).clear_message()
        await robot.sees("Not yet: ", "does not answer")
        await hears_again(robot)
        # The voters are as they were agreed to, one is missing: nobody is asked a second time.
        await robot.sees("the replacement is done")


async def test_a_console_that_lapsed_in_between_asks_before_it_adds(home: Path) -> None:
    clock = Clock()
    async with console(SCENARIO, size=(120, 40), clock=clock) as robot:
        await robot.arms()
        await opens_the_wizard(robot)
        await robot.press("enter")
        await robot.sees("Enter: remove")
        await silences(robot)
        await allows(robot)
        await robot.sees("5. NOW", "Not yet: ")
        clock.now += IDLE_SECONDS
        robot.session.tick()
        await hears_again(robot)
        await robot.sees("Enter: add voter")
        await robot.press("enter")
        await robot.sees("the console is read-only")
    (lines,) = records(home)
    assert "add-voter" not in [line.get("action") for line in lines]
    assert lines[-1]["status"] == 1


async def test_steps_that_are_done_are_shown_as_done_before_anything_is_begun(home: Path) -> None:
    """The new disk runs and has caught up: the removal of the old voter is what comes now."""
    async with console(SCENARIO, size=(120, 60)) as robot:
        await opens_the_wizard(robot)
        await robot.sees("3. done", "4. NOW")
    assert records(home) == []


async def opens_the_swap(robot: Robot) -> WizardScreen:
    """Of a static voter that does not lead: its disk is replaced by the operator, and nothing is sent."""
    await robot.arms()
    await robot.opens("4")
    quorum = robot.session.view.quorum
    assert isinstance(quorum, Quorum)
    voters = {key.id for key in quorum.voters.keys} - {quorum.leader.id}
    row = next(tuple(key) for key in quorum.voters.keys if key.id in voters)
    await robot.puts_the_cursor_on(row)
    await robot.press("M")
    await robot.sees(f"Why is controller {row[0]} replaced?")
    await robot.press("enter")
    await robot.asked(WizardScreen)
    screen = robot.app.screen
    assert isinstance(screen, WizardScreen)
    return screen


@pytest.mark.long
async def test_enter_twice_never_says_that_a_disk_was_replaced(home: Path) -> None:
    clock = Clock()
    async with console("static-quorum-upgrade", size=(120, 40), clock=clock) as robot:
        await opens_the_swap(robot)
        await robot.sees("Enter begin", "1. NOW")
        assert "step is done" not in robot.screen
        await robot.press("d")
        await robot.sees("nothing is under way: Enter begins")
        await robot.press("enter")
        await robot.sees("d step is done", "press d when it is done, not Enter")
        robot.app.screen.query_one(MessageBar).clear_message()
        await robot.press("enter", "enter")
        await robot.sees("press d when it is done, not Enter")
        await robot.press("d")
        await robot.sees("step 1 has only just begun")
        assert confirmed(home) == []
        clock.now += 2
        await robot.press("d")
        await robot.sees("the replacement is done", "Esc back to the panes")
    assert confirmed(home) == [[1]]


async def test_a_step_that_is_held_or_a_console_that_lapsed_is_not_said_to_be_done(home: Path) -> None:
    clock = Clock()
    async with console("static-quorum-upgrade", size=(120, 40), clock=clock) as robot:
        screen = await opens_the_swap(robot)
        await robot.press("enter")
        await robot.sees("d step is done")
        wanted = screen.planned.plan.wanted
        busy = {wanted.leader, *wanted.joining}
        other = next(voter.key.id for voter in wanted.voters if voter.key.id not in busy)
        await happens(robot, lambda b: b.simulation.world.kill_controller(other))
        await robot.sees("Not yet: another voter is down")
        clock.now += 2
        await robot.press("d")
        await robot.sees("step 1 does not count as done: another voter is down")
        await happens(robot, lambda b: b.simulation.world.start_controller(other))
        await robot.until(lambda: "Not yet" not in robot.screen, "a step that is not held")
        clock.now += IDLE_SECONDS
        robot.session.tick()
        await robot.press("d")
        await robot.sees("the console is read-only")
    assert confirmed(home) == []


def confirmed(home: Path) -> list[list[int]]:
    """The steps that were said to be done, as the journal has them."""
    return [
        line["detail"]["steps"]
        for lines in records(home)
        for line in lines
        if line["kind"] == "before" and line["action"] == "confirm-steps"
    ]


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.long
async def test_a_plan_that_was_left_to_arm_the_console_is_come_back_to(home: Path) -> None:
    async with console(SCENARIO, size=(120, 60)) as robot:
        first = await opens_the_wizard(robot)
        await robot.press("enter")
        await robot.sees("the console is read-only: A arms it")
        await robot.press("A")
        await robot.sees("ARMED")
        await robot.press("escape")
        await robot.until(lambda: robot.app.screen is robot.desk, "the desk")
        await robot.press("M")
        await robot.asked(WizardScreen)
        again = robot.app.screen
        assert isinstance(again, WizardScreen)
        assert again.planned == first.planned
    assert len(plans(home)) == 1


@pytest.mark.long
async def test_a_plan_that_was_left_before_it_was_begun_is_offered_again(home: Path) -> None:
    async with console(SCENARIO, size=(120, 60)) as robot:
        first = await opens_the_wizard(robot)
        await robot.press("escape")
        await robot.until(lambda: robot.app.screen is robot.desk, "the desk")
        await robot.hears(f"M on controller {NODE} offers this plan again")
        await robot.press("M")
        await robot.asked(ChoiceQuestion)
        await robot.sees(f"continue plan {first.planned.plan.header.plan_id[:8]} (disk)", "host: its host")
        await robot.press("enter")
        await robot.asked(WizardScreen)
        again = robot.app.screen
        assert isinstance(again, WizardScreen)
        assert again.planned == first.planned
    assert len(plans(home)) == 1


async def test_of_static_voters_only_the_disk_is_replaced_and_the_leader_is_a_voter(home: Path) -> None:
    async with console("static-quorum-upgrade", size=(120, 60)) as robot:
        await robot.opens("4")
        quorum = robot.session.view.quorum
        assert isinstance(quorum, Quorum)
        upgrade = "upgrade the feature kraft.version first: ktriage quorum upgrade"
        await robot.puts_the_cursor_on(
            (103, next(p.key.directory_id for p in quorum.progress if p.key.id == 103))
        )
        await robot.press("M")
        await robot.hears(upgrade)
        assert robot.app.screen is robot.desk, "an observer cannot be replaced: nothing is asked"
        await robot.puts_the_cursor_on((quorum.leader.id, quorum.leader.directory_id))
        await robot.press("M")
        await robot.asked(ChoiceQuestion)
        await robot.sees("shrink: it leaves, and no voter is added (upgrade kraft.version first)")
        assert upgrade in " ".join(robot.screen.replace("│", " ").split())
        await robot.press("enter")
        await robot.asked(WizardScreen)
        await robot.sees(f"replace the disk of controller {quorum.leader.id}")


def plans(home: Path) -> list[Path]:
    return list(home.rglob("replace-disk-*.json"))


async def test_a_replacement_begun_for_the_wrong_reason_is_given_up_and_begun_anew(home: Path) -> None:
    """What was begun would be offered for ever otherwise: M has nothing else while it is half done."""
    async with console(SCENARIO, size=(120, 40)) as robot:
        await robot.arms()
        await opens_the_wizard(robot)
        await robot.press("enter")
        await robot.sees("Enter: remove")
        await robot.press("escape")
        await robot.until(lambda: not robot.desk.busy, "the end of the run")
        await robot.press("M")
        await robot.asked(WizardScreen)
        await robot.sees("G give up")
        await robot.press("G")
        await robot.until(lambda: robot.app.screen is robot.desk, "the panes")
        await robot.hears("given up: the voters stay as they are; M plans anew")
        await robot.until(lambda: not robot.desk.busy, "the end of the task")
        await robot.press("M")
        await robot.sees(f"Why is controller {NODE} replaced?")
    begun = next(run for run in records(home) if run)
    assert begun[0]["reason"] == "disk: its metadata disk is lost or replaced; the same node comes back"
