"""The contract of ``backends.base``, held by the live adapter against the served simulator,
with the native calls hidden as on today's clusters."""

from __future__ import annotations

import pytest

from tests.contract.broken_brokers import BrokenBrokerTests, DeadBrokerTests
from tests.contract.healthy_cluster import HealthyClusterTests
from tests.contract.missing_permissions import MissingPermissionTests
from tests.contract.offline_partitions import OfflinePartitionTests
from tests.wire.served_cluster_driver import ServedClusterDriver


@pytest.fixture(scope="class")
def driver() -> ServedClusterDriver:
    return ServedClusterDriver(without="GetReplicaLogInfo,ElectLeaders:3")


class TestHealthy(HealthyClusterTests): ...


class TestRights(MissingPermissionTests): ...


class TestWithADeadBroker(DeadBrokerTests): ...


class TestWithBrokenParts(BrokenBrokerTests): ...


class TestOffline(OfflinePartitionTests): ...
