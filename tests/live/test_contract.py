"""The contract of ``backends.base``, held by the live adapter at a real cluster."""

from __future__ import annotations

import pytest

from testbed.kafka import KafkaCluster
from tests.contract.broken_brokers import BrokenBrokerTests, DeadBrokerTests
from tests.contract.healthy_cluster import HealthyClusterTests
from tests.contract.missing_permissions import MissingPermissionTests
from tests.contract.offline_partitions import OfflinePartitionTests
from tests.contract.real_cluster_driver import SPEC, RealClusterDriver

pytestmark = pytest.mark.long

CLUSTER = SPEC


@pytest.fixture(scope="module")
def driver(cluster: KafkaCluster) -> RealClusterDriver:
    return RealClusterDriver(cluster)


class TestHealthy(HealthyClusterTests): ...


class TestRights(MissingPermissionTests): ...


class TestWithADeadBroker(DeadBrokerTests): ...


class TestWithBrokenParts(BrokenBrokerTests): ...


class TestOffline(OfflinePartitionTests): ...
