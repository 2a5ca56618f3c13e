"""The console on a real cluster: the main stories, driven by its keys.

The ISR of every partition of ``lost`` is dead; broker 3, which fell out of it before, is alive with an older log.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from console.app.session.view import Link
from console.target import resolve
from recovery.model import ReplicaLog, TopicPartition
from testbed.kafka import KafkaCluster
from testbed.kafka.incidents import isr_dead
from tests.console.robot import Robot, console, records
from tests.live.started_cluster import TWO_DISKS, emptied

CLUSTER = TWO_DISKS
LOST = "lost"
PARTITIONS = 6
SURVIVOR = 3


@pytest.fixture(scope="module")
def disaster(cluster: KafkaCluster) -> KafkaCluster:
    emptied(cluster)
    cluster.client.create_topic(LOST, [[1, 2, 3]] * PARTITIONS, {"min.insync.replicas": "2"})
    isr_dead(cluster, LOST, range(PARTITIONS), survivor=SURVIVOR)
    return cluster


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lost(partition: int) -> TopicPartition:
    return TopicPartition(LOST, partition)


async def leader(cluster: KafkaCluster, partition: int) -> int:
    states = await asyncio.to_thread(lambda: cluster.metadata.wait_caught_up().partitions(LOST))
    return int(states[partition].leader)


def answered(robot: Robot, partition: int, broker: int) -> bool:
    """Whether the picture has the broker's log, and that it may be elected: the test before had it hang."""
    survey = robot.session.view.surveys.get(lost(partition))
    replicas = () if survey is None else survey.replicas
    return any(one.broker == broker and one.electable and isinstance(one.log, ReplicaLog) for one in replicas)


async def puts_into_the_plan(robot: Robot, partition: int, broker: int) -> None:
    await robot.opens("1")
    await robot.until(lambda: answered(robot, partition, broker), f"{broker} has answered")
    await robot.puts_the_cursor_on(lost(partition))
    await robot.chooses(broker)


async def test_one_partition_is_recovered_from_the_keyboard(disaster: KafkaCluster, home: Path) -> None:
    async with console(resolve(disaster.bootstrap(), None, None, None), size=(120, 40)) as robot:
        await robot.sees("READ-ONLY", "LIVE", "lost-0", "OFFLINE", "wait for 1 or 2")
        await puts_into_the_plan(robot, 0, SURVIVOR)
        await robot.opens("6")
        await robot.arms()
        await robot.applies(LOST, "both disks are gone")
        await robot.hears("leads lost-0. acks=all is refused until replicas are back")
        assert await leader(disaster, 0) == SURVIVOR
        await robot.press("V")
        await robot.hears("1 of 1 led as planned")
    (lines,) = records(home)
    assert lines[0]["reason"] == "both disks are gone"
    assert lines[-1]["kind"] == "end"


@pytest.mark.long
async def test_the_only_broker_hangs_and_comes_back(disaster: KafkaCluster, home: Path) -> None:
    async with console(resolve(disaster.bootstrap(), None, None, None), size=(120, 40)) as robot:
        await robot.arms()
        node = disaster.node(SURVIVOR)
        node.pause()
        try:
            await robot.press("r")
            await robot.link_is(Link.LOST)
            await robot.sees("CLUSTER LOST", "lost-4")
            await robot.opens("3")
            await robot.opens("1")
        finally:
            node.resume()
        await robot.press("r")
        await robot.link_is(Link.UP)
        assert not robot.session.safety.armed
