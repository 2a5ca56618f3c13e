"""The contract of ``backends.base``, held by the live adapter against the served simulator,
with the native calls hidden as on today's clusters."""

from __future__ import annotations

import pytest

from tests.contract.broken import WithADeadBroker, WithBrokenParts
from tests.contract.healthy import Healthy
from tests.contract.offline import Offline
from tests.contract.rights import Rights
from tests.wire.stage import ServedStage


@pytest.fixture(scope="class")
def stage() -> ServedStage:
    return ServedStage(without="GetReplicaLogInfo,ElectLeaders:3")


class TestHealthy(Healthy): ...


class TestRights(Rights): ...


class TestWithADeadBroker(WithADeadBroker): ...


class TestWithBrokenParts(WithBrokenParts): ...


class TestOffline(Offline): ...
