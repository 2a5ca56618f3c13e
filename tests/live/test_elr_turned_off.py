"""What a place in an ELR says of a broker that was killed, while the feature is off and while it is on.

A verdict takes it for a clean stop, and needs no condition then; wrong, it would call lost records safe.
"""

from __future__ import annotations

import pytest

from backends.base.metadata_log import MetadataLogSource
from recovery.controller.registration import PartitionChange
from recovery.controller.rules import ELR_FEATURE
from recovery.metadata_log.log_changes import BrokerSubject, PartitionSubject
from recovery.metadata_log.records import RegisterBrokerRecord
from recovery.model import Unknown
from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live.live_backend import open_backend

pytestmark = pytest.mark.long

CLUSTER = ClusterSpec()
KILLED, STOPPED = 2, 3


@pytest.mark.parametrize("level", [0, 1])
async def test_a_killed_broker_stays_in_the_elr_only_while_the_feature_is_off(
    cluster: KafkaCluster, level: int
) -> None:
    topic = f"killed-{level}"
    cluster.client.create_topic(topic, [[1, KILLED, STOPPED]], {"min.insync.replicas": "2"})
    cluster.client.produce(topic, 0, 10)
    cluster.node(STOPPED).stop()
    cluster.metadata.wait_fenced(STOPPED)
    cluster.node(KILLED).kill()
    cluster.metadata.wait_fenced(KILLED)
    if not level:
        cluster.tools("kafka-features", "downgrade", "--feature", f"{ELR_FEATURE}=0")
    cluster.node(KILLED).start()
    cluster.metadata.wait_live([KILLED])
    async with open_backend(cluster) as backend:
        source = MetadataLogSource()
        assert await source.read(backend) is None
        history = source.history
        assert not isinstance(history, Unknown)
        (state,) = [one for one in (await backend.partitions()).states if one.topic == topic]
        started = [
            row for row in history.of(BrokerSubject(KILLED)) if isinstance(row.change, RegisterBrokerRecord)
        ][-1]
        subject = PartitionSubject(state.topic_id, 0)
        before = [one for one in history.intervals(subject) if one.offset < started.batch]
        left = [
            row.change.elr
            for row in history.of(subject)
            if row.batch == started.batch and isinstance(row.change, PartitionChange)
        ]
    print(before[-1], left)
    assert KILLED in before[-1].registration.elr
    assert left == ([()] if level else [])
    cluster.node(STOPPED).start()
    cluster.metadata.wait_live([STOPPED])
    if not level:
        cluster.tools("kafka-features", "upgrade", "--feature", f"{ELR_FEATURE}=1")
