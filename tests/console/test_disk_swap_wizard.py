"""A broker's disk has failed: pane 5 leads through its replacement, and knows what must be recovered before."""

from __future__ import annotations

from typing import Any

import pytest

from console.app.base.question_dialogs import ChoiceQuestion
from console.jobs.disks import screen as swap_screen
from console.jobs.disks.screen import DiskSwapScreen
from recovery.disks.disk_swap import SwapSituation, SwapStepKind, already_swapped, current_step, swap
from recovery.disks.values import LogDirPlace
from recovery.model import TopicPartition
from tests.console.faults import happens, passes
from tests.console.robot import Robot, console
from tests.unit.disks.clusters import A, cluster, state

PLACE = LogDirPlace(2, "/kafka/1")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swap_screen, "READ_EVERY", 0.05)


async def opens_the_wizard(robot: Robot) -> DiskSwapScreen:
    await robot.opens("5")
    await robot.puts_the_cursor_on(tuple(PLACE))
    await robot.press("M")
    await robot.asked(DiskSwapScreen)
    screen = robot.app.screen
    assert isinstance(screen, DiskSwapScreen)
    await robot.until(lambda: screen.last is not None, "a look at the disks")
    return screen


async def step_is(robot: Robot, kind: SwapStepKind | None) -> None:
    screen = robot.app.screen
    assert isinstance(screen, DiskSwapScreen)
    await robot.until(lambda: (None if screen.step is None else screen.step.kind) is kind, f"the step {kind}")
    await robot.pilot.pause()


@pytest.mark.long
async def test_a_disk_is_replaced_by_the_wizard_and_nothing_elects_the_empty_one() -> None:
    async with console("disk-failure", size=(120, 40)) as robot:
        await robot.arms()
        await opens_the_wizard(robot)
        await step_is(robot, SwapStepKind.READ)
        await robot.sees("ktriage disk scan --output json")
        await answers_whether_it_was_read(robot, "down")
        await step_is(robot, SwapStepKind.RECOVER)
        await robot.sees("it held 7 replicas", "NO OTHER COPY of sessions-1, sessions-3")
        await robot.sees("archive-1: 2 is the last known leader", "do not start the broker before")
        await robot.press("enter")
        await robot.asked(ChoiceQuestion)
        await robot.sees("elects 0; 2 refused: the disk of broker 2 failed")
        await robot.press("down", "down", "enter")
        await robot.until(lambda: robot.desk.pane == "6", "the plan")
        await robot.idle()
        assert robot.session.draft.partitions == {TopicPartition("archive", 1), TopicPartition("archive", 3)}
        await robot.applies("2", "the disk of broker 2 is lost")
        await opens_the_wizard(robot)
        await step_is(robot, SwapStepKind.STOP)
        await robot.sees("kafka-server-stop.sh --process-role=broker --node-id=2")
        await happens(robot, lambda b: b.simulation.world.kill_broker(2))
        await step_is(robot, SwapStepKind.DISK)
        await robot.press("d")
        await step_is(robot, SwapStepKind.FORMAT)
        await robot.sees("--cluster-id simulated.disk-failure.1")
        await robot.press("enter")
        await robot.sees("press d when this step is done, not Enter")
        await robot.press("d")
        await step_is(robot, SwapStepKind.START)
        await robot.press("d")
        await robot.sees("this step is done when the cluster shows it")
        await happens(robot, lambda b: b.simulation.world.replace_log_dir(2, 1))
        await happens(robot, lambda b: b.simulation.world.start_broker(2))
        await passes(robot, 30)
        await step_is(robot, SwapStepKind.WAIT)
        await robot.sees("sessions-1, sessions-3: no", "5 of 7 replicas in the ISR")
        await robot.press("d")
        await step_is(robot, SwapStepKind.LEADERS)
        await robot.sees("ktriage elect --election-type preferred")
        await robot.press("d")
        await step_is(robot, None)
        await robot.sees("all steps are done")


async def answers_whether_it_was_read(robot: Robot, *keys: str) -> None:
    """``d``, then the answer that so many keys lead to."""
    await robot.press("d")
    await robot.asked(ChoiceQuestion)
    await robot.sees("Was this done?", "► not yet", "it was read, and the file is kept", "it cannot be read")
    await robot.press(*keys, "enter")
    await robot.asked(DiskSwapScreen)


@pytest.mark.long
async def test_the_only_copy_is_marked_as_read_by_an_answer_which_can_be_taken_back() -> None:
    async with console("disk-failure", size=(120, 40)) as robot:
        await opens_the_wizard(robot)
        await step_is(robot, SwapStepKind.READ)
        assert "take back" not in robot.screen
        await answers_whether_it_was_read(robot)
        await step_is(robot, SwapStepKind.READ)
        await answers_whether_it_was_read(robot, "down", "down")
        await step_is(robot, SwapStepKind.RECOVER)
        await robot.sees("!  1. not done   cannot be read, as was said: read the old disk")
        assert "✓" not in robot.screen
        await robot.sees("u take back the last step")
        await robot.press("u")
        await step_is(robot, SwapStepKind.READ)
        await robot.sees("taken back: this step is not done")
        await answers_whether_it_was_read(robot, "down")
        await robot.sees("✓  1. done")


async def test_a_disk_that_works_is_said_to_work_before_its_broker_is_stopped() -> None:
    async with console("disk-failure", size=(120, 40)) as robot:
        await robot.opens("5")
        await robot.puts_the_cursor_on((1, "/kafka/0"))
        await robot.press("M")
        await robot.asked(DiskSwapScreen)
        await step_is(robot, SwapStepKind.STOP)
        await robot.sees("! This disk has not failed: broker 1 runs and lists /kafka/0 as healthy.")
        await happens(robot, lambda b: b.simulation.world.kill_broker(1))
        await robot.until(lambda: shown(robot).step.kind is not SwapStepKind.STOP, "another step")
        await robot.sees("the cluster shows it: the broker stopped")
        assert "has not failed" not in robot.screen


async def test_leaving_keeps_what_was_seen_a_broker_that_stopped_is_not_stopped_again() -> None:
    async with console("disk-failure", size=(120, 40)) as robot:
        await robot.opens("5")
        await robot.puts_the_cursor_on((1, "/kafka/0"))
        await robot.press("M")
        await robot.asked(DiskSwapScreen)
        await step_is(robot, SwapStepKind.STOP)
        await robot.press("d")
        await robot.sees("this step is done when the cluster shows it")
        await happens(robot, lambda b: b.simulation.world.kill_broker(1))
        await robot.until(lambda: shown(robot).step.kind is not SwapStepKind.STOP, "another step")
        await robot.press("escape")
        await robot.until(lambda: robot.app.screen is robot.desk, "the desk")
        await robot.idle()
        await happens(robot, lambda b: b.simulation.world.start_broker(1))
        await passes(robot, 20)
        await robot.press("M")
        await robot.asked(DiskSwapScreen)
        await robot.until(lambda: shown(robot).last.now.back, "the broker is back")
        assert shown(robot).step.kind is not SwapStepKind.STOP


def shown(robot: Robot) -> Any:
    screen = robot.app.screen
    assert isinstance(screen, DiskSwapScreen)
    return screen


def test_what_must_be_recovered_comes_before_everything_else() -> None:
    steps = swap(cluster(state(0)), LogDirPlace(1, A), [TopicPartition("orders", 0)]).steps
    fresh = SwapSituation(dangers=0, stopped=False, back=True, left=0, replicas=1)
    assert current_step(steps, fresh).kind is SwapStepKind.STOP  # type: ignore[union-attr]  # there is one
    stopped = fresh._replace(stopped=True, back=False, left=1)
    assert current_step(steps, stopped).kind is SwapStepKind.DISK  # type: ignore[union-attr]
    said = stopped._replace(said=frozenset({SwapStepKind.DISK, SwapStepKind.FORMAT}))
    assert current_step(steps, said).kind is SwapStepKind.START  # type: ignore[union-attr]
    assert current_step(steps, said._replace(back=True)).kind is SwapStepKind.WAIT  # type: ignore[union-attr]
    assert current_step(steps, said._replace(back=True, left=0)).kind is SwapStepKind.LEADERS  # type: ignore[union-attr]


def test_a_disk_that_was_replaced_before_anybody_looked_is_not_stopped_again() -> None:
    assert already_swapped(3, failed=False, back=True)
    assert not already_swapped(0, failed=False, back=True), "nothing happened yet"
    assert not already_swapped(3, failed=True, back=False)
