"""The contract of ``backends.base``, held by the live adapter at a real cluster."""

from __future__ import annotations

import pytest

from testbed.kafka import KafkaCluster
from tests.contract.broken import WithADeadBroker, WithBrokenParts
from tests.contract.healthy import Healthy
from tests.contract.offline import Offline
from tests.contract.real import SPEC, RealStage
from tests.contract.rights import Rights

CLUSTER = SPEC


@pytest.fixture(scope="module")
def stage(cluster: KafkaCluster) -> RealStage:
    return RealStage(cluster)


class TestHealthy(Healthy): ...


class TestRights(Rights): ...


class TestWithADeadBroker(WithADeadBroker): ...


class TestWithBrokenParts(WithBrokenParts): ...


class TestOffline(Offline): ...
