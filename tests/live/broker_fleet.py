"""The fleet of a running cluster's brokers, opened for one test, and the cluster that is asked most calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from backends.live.client.addresses import Address, parse_addresses
from backends.live.client.settings import ClientSettings
from backends.live.nodes.brokers import BrokerFleet
from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live.started_cluster import emptied

CLUSTER = ClusterSpec(controllers=3, log_dirs=2, broker_config={"max.request.partition.size.limit": "200"})
"""Modules with this very object follow one another on one cluster."""
ORDERS, ASSIGNMENTS = "orders", [[1, 2, 3], [2, 3, 1], [3, 1, 2]]


def create_orders(cluster: KafkaCluster) -> None:
    """The topic of these modules, for the first of them."""
    if len(cluster.metadata.partitions(ORDERS)) != len(ASSIGNMENTS):
        emptied(cluster).client.create_topic(ORDERS, ASSIGNMENTS, {"min.insync.replicas": "2"})


@asynccontextmanager
async def fleet_of(
    cluster: KafkaCluster, overrides: dict[int, Address] | None = None
) -> AsyncIterator[BrokerFleet]:
    fleet = BrokerFleet(ClientSettings(parse_addresses(cluster.bootstrap())), overrides)
    try:
        await fleet.open()
        yield fleet
    finally:
        await fleet.close()
