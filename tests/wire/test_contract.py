"""The contract of ``backends.base``, held by the live adapter over the native calls of the served simulator."""

from __future__ import annotations

import pytest

from tests.contract.broken import WithADeadBroker, WithBrokenParts
from tests.contract.healthy import Healthy
from tests.contract.offline import Offline
from tests.contract.rights import Rights
from tests.wire.stage import ServedStage


@pytest.fixture(scope="class")
def stage() -> ServedStage:
    return ServedStage()


class TestHealthy(Healthy): ...


class TestRights(Rights): ...


class TestWithADeadBroker(WithADeadBroker): ...


class TestWithBrokenParts(WithBrokenParts): ...


class TestOffline(Offline): ...
