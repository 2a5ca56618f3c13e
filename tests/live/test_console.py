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
async def test_many_are_recovered_at_once_and_the_number_is_typed(disaster: KafkaCluster, home: Path) -> None:
    async with console(resolve(disaster.bootstrap(), None, None, None), size=(120, 40)) as robot:
        for partition in (1, 2, 3):
            await robot.puts_the_cursor_on(lost(partition))
            await robot.press("space")
        await robot.press("c")
        await robot.sees("elects 3")
        await robot.press("down", "down", "enter")
        await robot.until(lambda: len(robot.session.draft.partitions) == 3, "three rows in the plan")
        await robot.opens("6")
        await robot.arms()
        confirmation = await robot.asks_to_apply()
        assert confirmation.request.expected == "3"
        await robot.confirms("3", "drill")
        await robot.idle()
        await robot.hears(
            "3 partitions have a leader. acks=all is refused until replicas are back for 3 of them"
        )
    assert [await leader(disaster, partition) for partition in (1, 2, 3)] == [SURVIVOR] * 3
    assert len(records(home)) == 1


@pytest.mark.long
async def test_a_broker_that_is_dead_cannot_be_designated(disaster: KafkaCluster, home: Path) -> None:
    async with console(resolve(disaster.bootstrap(), None, None, None), size=(120, 40)) as robot:
        await puts_into_the_plan(robot, 4, SURVIVOR)
        await robot.opens("6")
        await robot.press("e")
        await robot.picks_in_vain(1)
        await robot.press("escape")
        row = robot.session.draft.row(lost(4))
        assert row is not None
        assert row.leader == SURVIVOR
    assert records(home) == []


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


@pytest.mark.long
async def test_a_partition_that_goes_online_while_the_confirmation_is_open_is_left_alone(
    disaster: KafkaCluster, home: Path
) -> None:
    async with console(resolve(disaster.bootstrap(), None, None, None), size=(120, 40)) as robot:
        await puts_into_the_plan(robot, 5, SURVIVOR)
        await robot.opens("6")
        await robot.arms()
        await robot.asks_to_apply()
        for broker in (1, 2):
            await asyncio.to_thread(disaster.node(broker).start)
        await robot.until_slowly(lambda: leader(disaster, 5), "somebody of the ISR leading")
        await robot.confirms(LOST, "in vain")
        await robot.idle()
        await robot.until(lambda: lost(5) in robot.session.draft.outcomes, "an outcome")
        assert robot.session.draft.outcomes[lost(5)].word == "online"
    (lines,) = records(home)
    assert not [line for line in lines if line.get("action") in ("elect", "reorder")]
