"""Leaders that are cut off from the controllers, on a real cluster and in the simulator: both come to the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.kafka import KafkaCluster
from tests.side_by_side.both_clusters import SPEC, RealSide, SimulatedSide
from tests.side_by_side.comparison import compare, simulate
from tests.side_by_side.script import names, read

pytestmark = pytest.mark.long

CLUSTER = replace(SPEC, controllers=1, cuttable_links=True)


@pytest.mark.parametrize("name", names(cuts=True))
async def test_a_leader_that_is_cut_off_does_what_the_simulated_one_does(
    whole_cluster: KafkaCluster, name: str
) -> None:
    script = read(name)
    simulated = SimulatedSide()
    points = await simulate(script, simulated)
    assert await compare(name, script, points, RealSide(whole_cluster, simulated.placements)) == []
