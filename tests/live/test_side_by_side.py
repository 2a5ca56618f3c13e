"""Incidents played by a real cluster and by the simulator: after each step both come to the same state."""

from __future__ import annotations

import pytest

from testbed.kafka import KafkaCluster
from tests.repetitions import soaking
from tests.side_by_side.both_clusters import SPEC, RealSide, SimulatedSide
from tests.side_by_side.comparison import compare, simulate
from tests.side_by_side.script import names, read

pytestmark = pytest.mark.long

CLUSTER = SPEC
SHOWN_BY_OTHERS = {
    "failed-disk": "failed-disk-under-reassignment, and test_disks",
    "kill-one-after-the-other": "four-brokers-min-isr-3, with a larger ELR",
    "last-replica-standing": "power-loss, which begins so",
    "lone-leader": "clean-shutdowns and four-brokers-min-isr-3 elect from the ELR, unclean elections truncate",
    "min-isr-of-a-running-partition": "offline-partitions-changed",
    "preferred-election": "test_wire_java",
    "reassignments": "offline-partitions-changed and failed-disk-under-reassignment",
    "stale-long-tail": "designated-election, and test_designate",
}
"""Scripts that only ``make soak`` plays on real Kafka, and where ``make test`` has the same rules meet it. The
simulator plays all of them in tests/unit.
"""


@pytest.mark.parametrize("name", [name for name in names() if soaking() or name not in SHOWN_BY_OTHERS])
async def test_real_kafka_comes_to_what_the_simulator_comes_to(
    whole_cluster: KafkaCluster, name: str
) -> None:
    script = read(name)
    simulated = SimulatedSide()
    points = await simulate(script, simulated)
    assert await compare(name, script, points, RealSide(whole_cluster, simulated.placements)) == []
