"""A controller's disk is gone: the console leads through its replacement, step by step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from backends.simulator.adapter import SimulatorBackend
from backends.simulator.network import OPERATOR, controller
from backends.simulator.operate.membership import SimulatedMembership
from console.app.wizard_screen import WizardScreen
from console.simulated import scenario
from console.target import Target
from recovery.membership.quorum import Quorum
from tests.console.faults import happens
from tests.console.robot import Robot, console, records
from widgets.dialogs.confirm import Confirmation
from widgets.frame.bottom import Say

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


async def allows(robot: Robot) -> None:
    """Reads what is to be sent, and types the node's id."""
    await robot.sees("Enter: ")
    await robot.press("enter")
    await robot.asked(Confirmation)
    confirmation = robot.app.screen
    assert isinstance(confirmation, Confirmation)
    confirmation.query_one("#expected").value = str(NODE)  # type: ignore[attr-defined]  # an Input
    button = confirmation.query_one("#confirm")
    await robot.until(lambda: not button.disabled, "a complete confirmation")
    button.focus()
    await robot.until(lambda: button.has_focus, "the button in focus")
    await robot.press("space")
    await robot.until(lambda: robot.app.screen is not confirmation, "the wizard again")


async def test_a_controller_gets_its_new_disk_into_the_quorum_by_the_wizard(home: Path) -> None:
    async with console(SCENARIO, size=(120, 40)) as robot:
        before = voters(robot)
        await robot.arms()
        await opens_the_wizard(robot)
        await robot.sees("Replace a controller (disk)", "Enter begins")
        await robot.press("enter")
        await allows(robot)
        await allows(robot)
        await robot.sees("the replacement is done", "Esc back to the panes")
        await robot.press("escape")
        await robot.until(lambda: robot.app.screen is robot.desk, "the desk")
        assert robot.said == "the replacement is done"
        await robot.looks_again()
        assert len(voters(robot)) == 1
        assert voters(robot) != before
    (lines,) = records(home)
    assert [line["action"] for line in lines if line["kind"] == "before"][1:] == ["remove-voter", "add-voter"]


async def test_a_read_only_console_plans_a_replacement_and_sends_nothing(home: Path) -> None:
    async with console(SCENARIO, size=(120, 40), read_only=True) as robot:
        await opens_the_wizard(robot)
        await robot.press("enter")
        await robot.sees("stays read-only")
    assert records(home) == []


async def test_a_replacement_that_was_left_is_gone_on_with(home: Path) -> None:
    async with console(SCENARIO, size=(120, 40)) as robot:
        await robot.arms()
        await opens_the_wizard(robot)
        await robot.press("enter")
        await allows(robot)
        await robot.sees("Enter: add", "Enter send it")
        await robot.press("ctrl+c")
        await robot.sees("Esc leaves this", "5. NOW")
        await robot.press("escape")
        await robot.until(lambda: robot.app.screen is robot.desk, "the desk")
        await robot.until(lambda: not robot.app.stop.flights, "the end of the run")
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


async def test_another_console_goes_on_with_what_the_first_left(home: Path) -> None:
    def make(_target: Target, _say: object) -> SimulatorBackend:
        return Behind(SCENARIO)

    async with console(SCENARIO, size=(120, 40), make=make) as robot:
        await robot.arms()
        await opens_the_wizard(robot)
        await robot.press("enter")
        await allows(robot)
        await robot.sees("Enter: add")
        await robot.press("escape")
        await robot.until(lambda: not robot.app.stop.flights, "the end of the run")
    async with console(SCENARIO, size=(120, 40), make=make) as robot:
        await robot.arms()
        await robot.opens("4")
        await robot.press("M")
        await robot.asked(WizardScreen)
        await robot.press("enter")
        await allows(robot)  # its simulation is another: there the voter is still to be taken out
        await robot.sees("5. NOW")
        await allows(robot)
        await robot.sees("the replacement is done")


async def test_why_a_step_is_not_sent_stands_as_long_as_it_holds(home: Path) -> None:
    """The newcomer's endpoint does not answer the one who asks."""
    async with console(SCENARIO, size=(120, 40)) as robot:
        await robot.arms()
        await opens_the_wizard(robot)
        await robot.press("enter")
        await robot.sees("Enter: remove")
        await happens(robot, lambda b: b.simulation.world.network.cut([OPERATOR], [controller(NODE)]))
        await allows(robot)
        await robot.sees("5. NOW", "Not yet: ", "does not answer")
        robot.app.screen.query_one(Say).clear_said()
        await robot.sees("Not yet: ", "does not answer")
        await happens(robot, lambda b: b.simulation.world.network.heal([OPERATOR], [controller(NODE)]))
        await allows(robot)
        await robot.sees("the replacement is done")


async def test_steps_that_are_done_are_shown_as_done_before_anything_is_begun(home: Path) -> None:
    """The new disk runs and has caught up: the removal of the old voter is what comes now."""
    async with console(SCENARIO, size=(120, 60)) as robot:
        await opens_the_wizard(robot)
        await robot.sees("3. done", "4. NOW")
    assert records(home) == []


async def test_a_plan_that_was_left_to_arm_the_console_is_come_back_to(home: Path) -> None:
    async with console(SCENARIO, size=(120, 60)) as robot:
        first = await opens_the_wizard(robot)
        await robot.press("enter")
        await robot.sees("then M comes back here")
        await robot.press("escape")
        await robot.until(lambda: robot.app.screen is robot.desk, "the desk")
        await robot.arms()
        await robot.press("M")
        await robot.asked(WizardScreen)
        again = robot.app.screen
        assert isinstance(again, WizardScreen)
        assert again.planned == first.planned
    assert len(plans(home)) == 1


def plans(home: Path) -> list[Path]:
    return list(home.rglob("replace-disk-*.json"))
