"""``N`` in pane 8 on a real cluster: a broker that is gone for good is healed from the keyboard."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from console.target import resolve
from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from tests.console.robot import console, records
from tests.live import incident_steps
from widgets.dialogs.confirmation import Confirmation

CLUSTER = ClusterSpec(controllers=1, brokers=4)
TOPIC, RECORDS = "orders", 100
ASSIGNMENT = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
GONE, TAKES = 3, 4


def full_strength(cluster: KafkaCluster) -> bool:
    states = cluster.metadata.partitions(TOPIC).values()
    return all(set(state.isr) == set(state.replicas) == {1, 2, TAKES} for state in states)


async def test_a_broker_that_is_gone_for_good_is_healed_from_the_keyboard(
    cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    cluster.client.create_topic(TOPIC, ASSIGNMENT, {"min.insync.replicas": "2"})
    sent = [
        cluster.client.produce(TOPIC, partition, RECORDS, prefix="before").acknowledged
        for partition in range(len(ASSIGNMENT))
    ]
    await asyncio.to_thread(incident_steps.kill, cluster, GONE)
    async with console(resolve(cluster.bootstrap(), None, None, None), size=(120, 40)) as robot:
        await robot.looked()
        await robot.opens("8")
        await robot.puts_the_cursor_on(1)
        await robot.arms()
        await robot.press("N")
        await robot.idle()
        await robot.hears("broker 1 is up")
        await robot.puts_the_cursor_on(GONE)
        await robot.press("N")
        await robot.asked(Confirmation)
        await robot.sees(f"New replicas for 3 partitions in place of broker {GONE}?", "[ Move ]")
        await robot.confirms("3", "its host burned down")
        await robot.idle()
        await robot.hears("3 partitions: 3 moved")
    await asyncio.to_thread(wait_until, lambda: full_strength(cluster), "every replica in sync")
    (lines,) = [run for run in records(tmp_path) if any(line.get("kind") == "before" for line in run)]
    assert lines[0]["reason"] == "its host burned down"
    for partition, values in enumerate(sent):
        read = {record.value for record in cluster.client.consume(TOPIC, partition)}
        assert read.issuperset(values), "nothing is lost"
