"""A link between two nodes of a real cluster that is cut: those two do not hear each other, everybody else does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kio.schema.describe_client_quotas.v1.response import DescribeClientQuotasResponse

from testbed.kafka import ClusterSpec, KafkaCluster, metadata_barrier

pytestmark = pytest.mark.long

QUICKLY_BEHIND = {"replica.lag.time.max.ms": "2000", "replica.socket.timeout.ms": "3000"}
CLUSTER = ClusterSpec(controllers=1, brokers=3, cuttable_links=True, broker_config=QUICKLY_BEHIND)


@pytest.fixture(autouse=True)
def _mended(cluster: KafkaCluster) -> Iterator[None]:
    yield
    cluster.links.mend()


def test_a_follower_that_does_not_reach_its_leader_leaves_the_isr_and_stays_live(
    cluster: KafkaCluster,
) -> None:
    cluster.client.create_topic("orders", [[1, 2, 3]])
    cluster.client.produce("orders", 0, 10, acks="all")
    cluster.links.cut(1, 2)
    cluster.client.produce("orders", 0, 10, acks="1")  # a follower that lacks nothing stays in sync
    cluster.metadata.wait_isr("orders", 0, [1, 3])
    assert cluster.metadata.live_brokers() == {1, 2, 3}
    cluster.links.mend()
    cluster.metadata.wait_isr("orders", 0, [1, 2, 3])


def test_a_broker_that_does_not_reach_the_controller_is_fenced_and_still_answers(
    cluster: KafkaCluster,
) -> None:
    [controller] = cluster.controllers
    cluster.links.cut(3, controller)
    cluster.metadata.wait_fenced(3)
    answers = cluster.metadata.ask_all(metadata_barrier.read_request(), DescribeClientQuotasResponse)
    assert 3 in answers, "clients reach it as before"
    cluster.links.mend()
    cluster.metadata.wait_live([1, 2, 3])
