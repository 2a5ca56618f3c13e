"""The contract of ``backends.base``, held by the simulator."""

from __future__ import annotations

import pytest

from tests.contract.broken_brokers import BrokenBrokerTests, DeadBrokerTests
from tests.contract.healthy_cluster import HealthyClusterTests
from tests.contract.missing_permissions import MissingPermissionTests
from tests.contract.offline_partitions import OfflinePartitionTests
from tests.contract.simulated_cluster_driver import SimulatedClusterDriver


@pytest.fixture(scope="class")
def driver() -> SimulatedClusterDriver:
    return SimulatedClusterDriver()


class TestHealthy(HealthyClusterTests): ...


class TestRights(MissingPermissionTests): ...


class TestWithADeadBroker(DeadBrokerTests): ...


class TestWithBrokenParts(BrokenBrokerTests): ...


class TestOffline(OfflinePartitionTests): ...
