"""Incidents played by a real cluster and by the simulator: after each step both come to the same state."""

from __future__ import annotations

import pytest

from testbed.kafka import KafkaCluster
from tests.side_by_side.both_clusters import SPEC, RealSide, SimulatedSide
from tests.side_by_side.comparison import compare, simulate
from tests.side_by_side.quorum import RealHosts, SimulatedHosts, play
from tests.side_by_side.script import names, read

CLUSTER = SPEC


@pytest.mark.parametrize("name", names())
async def test_real_kafka_comes_to_what_the_simulator_comes_to(
    whole_cluster: KafkaCluster, name: str
) -> None:
    script = read(name)
    simulated = SimulatedSide()
    points = await simulate(script, simulated)
    assert await compare(name, script, points, RealSide(whole_cluster, simulated.placements)) == []


@pytest.mark.parametrize("name", names(quorum=True))
async def test_the_real_quorum_comes_to_what_the_simulated_one_comes_to(
    whole_cluster: KafkaCluster, name: str
) -> None:
    script = read(name)
    simulated = SimulatedSide()
    wanted = await play(script, simulated, SimulatedHosts(simulated.world))
    found = await play(script, RealSide(whole_cluster, {}), RealHosts(whole_cluster), wanted)
    assert found == wanted
