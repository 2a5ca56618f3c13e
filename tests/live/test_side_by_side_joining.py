"""Controllers that join by themselves, on a real quorum and on the simulated one: both come to the same voters."""

from __future__ import annotations

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster
from tests.side_by_side.both_clusters import RealSide
from tests.side_by_side.quorum import RealHosts, joining, play
from tests.side_by_side.script import names, read

pytestmark = pytest.mark.long

CLUSTER = ClusterSpec(
    controllers=3, brokers=1, controller_config={"controller.quorum.auto.join.enable": "true"}
)


@pytest.mark.parametrize("name", names(quorum=True, auto_join=True))
async def test_real_controllers_join_as_the_simulated_ones_do(whole_cluster: KafkaCluster, name: str) -> None:
    script = read(name)
    side, hosts = joining()
    wanted = await play(script, side, hosts)
    found = await play(script, RealSide(whole_cluster, {}), RealHosts(whole_cluster), wanted)
    assert found == wanted
