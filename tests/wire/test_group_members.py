"""Members of consumer groups at the served simulator: librdkafka, aiokafka and Java's clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from backends.simulator.group_store import group_coordinator
from backends.simulator.scenario.files import read
from backends.simulator.served.served_cluster import ServedClusterOptions
from tests.wire.cluster_thread import WAIT, ClusterThread
from tests.wire.group_story import GROUP, GROUP_STORY, play_group
from tests.wire.test_clients import QUICK

SCENARIO = read(str(Path(__file__).parent / "scenarios" / "three-at-peace.yaml"))


class ServedGroupSide:
    """The served simulator as a side of the story."""

    def __init__(self, served: ClusterThread) -> None:
        self._served = served

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"bootstrap.servers": self._served.bootstrap, **QUICK}

    def create(self, topic: str, partitions: int = 1) -> None:
        admin = AdminClient(dict(self.settings))
        admin.create_topics([NewTopic(topic, partitions, 3)])[topic].result(WAIT)

    def kill_coordinator(self, broker: int) -> None:
        self._served.change(methodcaller("kill_broker", broker))
        self._served.until(
            lambda world: group_coordinator(world.image, GROUP) not in (broker, -1), "another coordinator"
        )


@pytest.fixture
def served() -> Iterator[ClusterThread]:
    with ClusterThread(SCENARIO, ServedClusterOptions(speed=3.0)) as found:
        yield found


def test_what_members_of_a_group_see(served: ClusterThread) -> None:
    seen = play_group(ServedGroupSide(served))
    assert list(seen) == list(GROUP_STORY)
    for step, wanted in GROUP_STORY.items():
        assert seen[step] == wanted, step
