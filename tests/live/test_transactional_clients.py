"""librdkafka's transactional producers and members of groups on a real cluster see what they see on the served
simulator.

The stories and what has to be seen are in tests/wire/transaction_story.py and tests/wire/group_story.py; tests/wire
plays them on the simulator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live import incident_steps
from tests.wire.group_story import GROUP_STORY, play_group
from tests.wire.transaction_story import STORY, play

pytestmark = pytest.mark.long

OFFSETS = "__consumer_offsets"
CLUSTER = ClusterSpec(
    controllers=1,
    brokers=4,
    broker_config={"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"},
)


class RealSide:
    """A real cluster as a side of the story."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster

    @property
    def settings(self) -> Mapping[str, Any]:
        return self._cluster.superuser_config()

    def create(self, topic: str, partitions: int = 1) -> None:
        replicas = [[1, 2, 3]] * partitions
        self._cluster.client.create_topic(topic, replicas, {"min.insync.replicas": "1"})

    def kill(self, *brokers: int) -> None:
        incident_steps.kill(self._cluster, *brokers)

    def start(self, *brokers: int) -> None:
        incident_steps.start(self._cluster, *brokers)

    def wait_isr(self, topic: str, isr: set[int]) -> None:
        incident_steps.wait_all(self._cluster, (topic,), lambda state: set(state.isr) == isr, f"ISR {isr}")

    def elect_unclean(self, topic: str, leader: int) -> None:
        incident_steps.elect_unclean(self._cluster, (topic,), leader)

    def kill_coordinator(self, broker: int) -> None:
        self.wait_isr(OFFSETS, {3, 4})
        self.kill(broker)
        incident_steps.wait_all(
            self._cluster, (OFFSETS,), lambda state: state.leader not in (broker, -1), "coordinated"
        )


@pytest.fixture(scope="module")
def coordinated(cluster: KafkaCluster) -> KafkaCluster:
    """Broker 4 coordinates; broker 3 may take the groups over."""
    for topic, replicas in (("__transaction_state", [4]), (OFFSETS, [4, 3])):
        cluster.client.create_topic(topic, [replicas], {"cleanup.policy": "compact"})
    return cluster


def test_what_a_transactional_producer_and_its_consumers_see(coordinated: KafkaCluster) -> None:
    seen = play(RealSide(coordinated))
    assert list(seen) == list(STORY)
    for step, wanted in STORY.items():
        assert seen[step] == wanted, step


def test_what_members_of_a_group_see(coordinated: KafkaCluster) -> None:
    coordinated.bring_all_up()
    seen = play_group(RealSide(coordinated))
    assert list(seen) == list(GROUP_STORY)
    for step, wanted in GROUP_STORY.items():
        assert seen[step] == wanted, step
