"""The fleet of a running cluster's brokers, opened for one test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from backends.live.client.addresses import Address, parse_addresses
from backends.live.client.settings import ClientSettings
from backends.live.nodes.brokers import BrokerFleet
from testbed.kafka import KafkaCluster


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
