"""The id of a simulated cluster, and what it tells."""

from __future__ import annotations

import pytest

from backends.base.simulated_clusters import Rehearsal, is_simulated, rehearsal
from backends.simulator.topology import cluster_id
from console.jobs.elect.plan_views import rehearsed


@pytest.mark.parametrize("name", ["zone-power-loss", "/home/op/my scenario.yaml", "a.b.c.yaml"])
def test_what_a_simulated_cluster_was_made_of_is_found_by_its_id(name: str) -> None:
    found = cluster_id(name, 12)
    made = rehearsal(found)
    assert is_simulated(found) and made is not None and made.seed == 12
    file = name if name == "zone-power-loss" else "FILE.yaml"
    assert rehearsed(found) == ("--simulate", file, "--seed", "12")


@pytest.mark.parametrize(
    "real", ["4L6g3nShT-eMCtK--X86sw", "", "simulated", "simulated.", "simulated.x", "simulated..3"]
)
def test_a_real_cluster_was_made_of_nothing(real: str) -> None:
    assert rehearsal(real) is None
    assert rehearsed(real) is None


def test_a_name_may_hold_a_number() -> None:
    assert rehearsal("simulated.offline-2000.1") == Rehearsal("offline-2000", 1)
