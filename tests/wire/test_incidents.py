"""Random incidents, recovered by the tool through sockets while more happens (``make soak`` runs thousands)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.repetitions import repetitions
from tests.wire.incident_pool import incidents
from tests.wire.random_incidents import IncidentResult

pytestmark = pytest.mark.long

SEEDS = range(1, 1 + repetitions(2, 30))
AT_ONCE = 2


@pytest.fixture(scope="module")
def told() -> Mapping[int, IncidentResult]:
    """All of them: what they wait for is waited for together."""
    return {one.seed: one for one in incidents(SEEDS, AT_ONCE)}


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_promised_is_kept(seed: int, told: Mapping[int, IncidentResult]) -> None:
    assert not told[seed].wrong, told[seed]
