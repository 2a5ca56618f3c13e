"""Kafka 3.9: what differs, and that what it does not offer is said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from backends.live.calls.describe_cluster import cluster_info, describe_cluster
from backends.live.calls.describe_configs import describe_topic_configs
from backends.live.calls.describe_log_dirs import describe_log_dirs
from backends.live.calls.describe_partitions import describe_partitions
from backends.live.calls.elect_leaders import elect_leaders
from backends.live.calls.reassignments import list_reassignments, write_assignments
from backends.live.check import check
from backends.live.client.addresses import Address, parse_addresses
from backends.live.client.settings import ClientSettings
from backends.live.codec.offered_versions import capabilities
from backends.live.nodes.brokers import BrokerFleet
from recovery.model import TopicPartition, Unknown, Why
from testbed.kafka import ClusterSpec, KafkaCluster

CLUSTER = ClusterSpec(version="3.9.1", controllers=1, brokers=2)
TOPIC = "orders"


@asynccontextmanager
async def fleet_of(cluster: KafkaCluster) -> AsyncIterator[BrokerFleet]:
    fleet = BrokerFleet(ClientSettings(parse_addresses(cluster.bootstrap())))
    try:
        await fleet.open()
        yield fleet
    finally:
        await fleet.close()


@pytest.fixture(scope="module", autouse=True)
def topics(cluster: KafkaCluster) -> None:
    cluster.client.create_topic(TOPIC, [[1, 2], [2, 1]])


async def test_elr_and_fenced_brokers_are_not_offered_rather_than_empty(whole_cluster: KafkaCluster) -> None:
    async with fleet_of(whole_cluster) as fleet:
        conn = await fleet.connection(1)
        info = cluster_info(await describe_cluster(conn), 1, conn.features)
        partitions = await describe_partitions(conn, [TOPIC])
    assert info.elr_enabled is False
    assert info.release.startswith("3.9")
    assert {b.id: b.fenced for b in info.brokers} == {1: None, 2: None}
    assert {(s.elr, s.last_known_elr) for s in partitions.states} == {(None, None)}


async def test_every_other_call_answers(whole_cluster: KafkaCluster) -> None:
    first = TopicPartition(TOPIC, 0)
    async with fleet_of(whole_cluster) as fleet:
        conn = await fleet.connection(2)
        quorum = await fleet.describe_quorum(conn)
        dirs = await describe_log_dirs(conn)
        configs = await describe_topic_configs(conn, [TOPIC])
        written = await write_assignments(conn, {first: (2, 1)})
        restored = await write_assignments(conn, {first: (1, 2)})
        elected = await elect_leaders(conn, [first], preferred=False)
        under_way = await list_reassignments(conn)
    assert [key.directory_id for key in quorum.voters.keys] == [whole_cluster.node(100).directory_id]
    assert {r.tp.topic for d in dirs for r in d.replicas} == {TOPIC}
    assert not isinstance(configs[TOPIC], Unknown)
    assert written == restored == {first: None}
    refused = elected[first]
    assert refused is not None
    assert refused.not_needed
    assert under_way == ()


async def test_what_it_does_not_offer_is_said(whole_cluster: KafkaCluster) -> None:
    async with fleet_of(whole_cluster) as fleet:
        conns = [await fleet.connection(broker) for broker in (1, 2)]
        offered = capabilities({c.broker or -1: c.api_keys for c in conns}, conns[0].features)
    calls = {call.call: call.versions for call in offered.calls}
    assert calls["DescribeCluster"] == (0, 1)
    assert calls["AlterPartitionReassignments"] == (0, 0)
    native = calls["GetReplicaLogInfo"]
    assert isinstance(native, Unknown)
    assert native.why is Why.NOT_OFFERED
    assert "eligible.leader.replicas.version" not in offered.features
    assert offered.designated_elections == "reorder, elect, restore (emulated)"


async def test_a_fenced_broker_is_not_listed_and_its_address_is_remembered(
    whole_cluster: KafkaCluster,
) -> None:
    async with fleet_of(whole_cluster) as fleet:
        whole_cluster.node(2).pause()
        whole_cluster.metadata.wait_fenced(2)
        async with asyncio.timeout(20):
            while 2 in {b.id for b in (await fleet.refresh()).value.brokers}:
                pass
        assert fleet.address(2) == Address("127.0.0.1", whole_cluster.node(2).port)
    async with fleet_of(whole_cluster) as fleet:
        # Nobody lists it, and it is one of the bootstrap servers: the node itself says who it is.
        assert fleet.address(2) is None
        whole_cluster.node(2).resume()
        assert (await fleet.connection(2)).verified


async def test_check_says_what_an_older_cluster_lacks(whole_cluster: KafkaCluster) -> None:
    async with fleet_of(whole_cluster) as fleet:
        found = await check(fleet)
    assert {r.problem for r in found.reach} == {None}
    assert {r.fenced for r in found.reach} == {None}
    assert all(right.granted is True for right in found.rights)
