"""librdkafka's transactional producers on a real cluster see what they see on the served simulator.

The story and what has to be seen are in tests/wire/transaction_story.py; tests/wire plays it on the simulator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live import incident_steps
from tests.wire.transaction_story import STORY, play

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

    def create(self, topic: str) -> None:
        self._cluster.client.create_topic(topic, [[1, 2, 3]], {"min.insync.replicas": "1"})

    def kill(self, *brokers: int) -> None:
        incident_steps.kill(self._cluster, *brokers)

    def start(self, *brokers: int) -> None:
        incident_steps.start(self._cluster, *brokers)

    def wait_isr(self, topic: str, isr: set[int]) -> None:
        incident_steps.wait_all(self._cluster, (topic,), lambda state: set(state.isr) == isr, f"ISR {isr}")

    def elect_unclean(self, topic: str, leader: int) -> None:
        incident_steps.elect_unclean(self._cluster, (topic,), leader)


def test_what_a_transactional_producer_and_its_consumers_see(cluster: KafkaCluster) -> None:
    for topic in ("__transaction_state", "__consumer_offsets"):
        cluster.client.create_topic(topic, [[4]], {"cleanup.policy": "compact"})
    seen = play(RealSide(cluster))
    assert list(seen) == list(STORY)
    for step, wanted in STORY.items():
        assert seen[step] == wanted, step
