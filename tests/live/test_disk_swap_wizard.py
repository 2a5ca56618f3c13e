"""A disk is removed under a running broker; the console leads through its replacement, and pane 8 follows."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from console.app.base.question_dialogs import ChoiceQuestion
from console.jobs.disks.screen import DiskSwapScreen
from console.target import resolve
from recovery.disks.disk_swap import SwapStepKind
from recovery.model import TopicPartition
from testbed.kafka import KafkaCluster
from testbed.kafka.incidents import failed_disk
from tests.console.robot import Robot, console
from tests.live.started_cluster import TWO_DISKS, emptied

pytestmark = pytest.mark.long

CLUSTER = TWO_DISKS
TOPIC = "edge"
PARTITIONS = 6
BROKER, OTHER = 1, 2


async def step_is(robot: Robot, kind: SwapStepKind | None) -> None:
    screen = robot.app.screen
    assert isinstance(screen, DiskSwapScreen)

    def reached() -> bool:
        return screen.last is not None and (None if screen.step is None else screen.step.kind) is kind

    await robot.until(reached, f"the step {kind}")
    await robot.pilot.pause()


async def opens_the_wizard(robot: Robot, path: str) -> None:
    await robot.opens("5")
    await robot.puts_the_cursor_on((BROKER, path))
    await robot.press("M")
    await robot.asked(DiskSwapScreen)


async def says_that_it_was_read(robot: Robot) -> None:
    await robot.press("d")
    await robot.asked(ChoiceQuestion)
    await robot.press("down", "enter")
    await robot.asked(DiskSwapScreen)


def led_by_broker_alone(cluster: KafkaCluster) -> None:
    cluster.node(OTHER).kill()
    cluster.metadata.wait_topic(TOPIC, PARTITIONS, each=lambda s: s.isr == (BROKER,), what="led by 1 alone")


def the_other_returns(cluster: KafkaCluster, lost: set[int]) -> None:
    """It fell out of the ISR before the disk failed, so that nobody may lead what was on that disk."""
    for number in lost:
        cluster.metadata.wait_offline(TOPIC, number)
    cluster.node(OTHER).start()
    cluster.metadata.wait_live([OTHER])


async def test_the_wizard_leads_through_a_disk_swap_and_the_empty_disk_leads_nothing(
    cluster: KafkaCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    emptied(cluster).client.create_topic(TOPIC, [[BROKER, OTHER]] * PARTITIONS, {"min.insync.replicas": "1"})
    cluster.client.produce_each(TOPIC, list(range(PARTITIONS)), 20)
    path = str(cluster.node(BROKER).log_dirs[1])
    async with console(resolve(cluster.bootstrap(), None, None, None), size=(120, 40)) as robot:
        await robot.opens("5")  # keeps what each disk holds
        await robot.until(lambda: robot.desk.table.counts.rows >= 4, "every disk")
        await asyncio.to_thread(led_by_broker_alone, cluster)
        await robot.opens("8")
        await robot.looks_again()
        await robot.puts_the_cursor_on(OTHER)
        await robot.sees("1 FENCED", "The controller has fenced it", "It does not answer")
        names = await asyncio.to_thread(failed_disk, cluster, BROKER, 1)
        lost = {int(name.rpartition("-")[2]) for name in names if name.startswith(TOPIC)}
        assert lost
        await asyncio.to_thread(the_other_returns, cluster, lost)
        await robot.looks_again()
        await robot.puts_the_cursor_on(BROKER)
        await robot.sees("disk FAILED", "1 log dir on it failed: pane 5")

        await robot.arms()
        await opens_the_wizard(robot, path)
        await step_is(robot, SwapStepKind.READ)
        await robot.sees("ktriage disk scan --output json")
        await says_that_it_was_read(robot)
        await step_is(robot, SwapStepKind.RECOVER)
        await robot.sees(f"it held {len(names)} replica", "do not start the broker before")
        await robot.press("enter")
        await robot.asked(ChoiceQuestion)
        await robot.press("down", "down", "enter")
        await robot.until(lambda: robot.desk.pane == "6", "the plan")
        await robot.idle()
        assert robot.session.draft.partitions == {TopicPartition(TOPIC, number) for number in lost}
        await robot.applies(TOPIC if len(lost) == 1 else str(len(lost)), "the disk of broker 1 is lost")
        await opens_the_wizard(robot, path)
        await step_is(robot, SwapStepKind.STOP)
        await robot.sees(f"--node-id={BROKER}")
        await asyncio.to_thread(cluster.node(BROKER).stop)
        await step_is(robot, SwapStepKind.DISK)
        await robot.press("d")
        await step_is(robot, SwapStepKind.FORMAT)
        await robot.press("d")
        await step_is(robot, SwapStepKind.START)
        await asyncio.to_thread(cluster.bring_all_up)
        await step_is(robot, SwapStepKind.LEADERS)
        await robot.sees("elect --election-type preferred")
        await robot.press("d")
        await robot.sees("all steps are done")
    for number in lost:
        cluster.metadata.wait_leader(TOPIC, number, OTHER)
        assert len(cluster.client.consume(TOPIC, number)) == 20
