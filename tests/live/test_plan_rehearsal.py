"""A plan that is rehearsed on a copy of a real cluster ends there as it then ends on the cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from tests.live.command_runner import CommandRunner

pytestmark = pytest.mark.long

CLUSTER = ClusterSpec(controllers=1, brokers=3)
TOPIC = "orders"


def test_a_copy_has_the_logs_of_the_cluster_and_a_rehearsal_ends_as_the_real_elections(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    run = CommandRunner(tmp_path, cluster.bootstrap())
    cluster.client.create_topic(TOPIC, [[1, 2], [3, 2]], {"min.insync.replicas": "1"})
    for partition in (0, 1):
        cluster.client.produce(TOPIC, partition, 100)
    cluster.node(2).kill()
    wait_until(
        lambda: all(2 not in one.isr for one in cluster.metadata.partitions(TOPIC).values()),
        "2 to leave",
        120,
    )
    cluster.client.produce(TOPIC, 0, 50)
    cluster.node(1).kill()
    wait_until(lambda: cluster.metadata.partitions(TOPIC)[0].leader == -1, "nobody to lead", 120)
    cluster.node(2).start()
    wait_until(lambda: cluster.metadata.live_brokers() == {2, 3}, "2 to be back", 120)
    wait_until(lambda: 2 in cluster.metadata.partitions(TOPIC)[1].isr, "2 to be in sync again", 120)

    copy = tmp_path / "copy.yaml"
    made = run("simulate", "from", str(copy))
    assert made.status == 0, made.err
    assert "assumed: 1 log of broker 1 not read" in made.out
    words = ("replicas", "--topic", TOPIC, "--output", "json")
    real, simulated = (
        json.loads(one.out) for one in (run(*words), run.without_cluster(*words, "--simulate", str(copy)))
    )
    assert _state(real) == _state(simulated)
    assert [one["partition"] for one in _state(real)] == [0, 1]

    plan = tmp_path / "plan.json"
    assert run("plan", "--strategy", "aggressive", str(plan)).status == 0
    applied = run("apply", str(plan), "--rehearse", "--yes", "--reason", "rehearsed", "--output", "json")
    assert applied.status in (0, 1), applied.err
    rehearsal = json.loads(applied.out)["rehearsal"]
    assert rehearsal == [
        "1 of 1 elected as planned on a simulated copy of this cluster, where everything is allowed.",
        "If broker 2 drops out in the middle: 0 of 1 have a leader then, and every replica order is put back.",
    ]
    assert cluster.metadata.partitions(TOPIC)[0].leader == 2
    assert cluster.metadata.partitions(TOPIC)[0].replicas == (1, 2)


def _state(result: Mapping[str, Any]) -> list[Any]:
    """What a copy has in common with its cluster."""
    of_partition = (
        "partition",
        "leader",
        "leaderEpoch",
        "isr",
        "elr",
        "replicas",
        "offlineReplicas",
        "minIsr",
    )
    of_log = ("broker", "standing", "lastEpoch", "logEndOffset", "logStartOffset", "leaderEpoch", "lineage")
    return [
        {
            **{name: one[name] for name in of_partition},
            "logs": [{name: log.get(name) for name in of_log} for log in one["logs"]],
        }
        for one in result["partitions"]
    ]
