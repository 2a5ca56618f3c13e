"""A dead broker's disk is moved, and the broker is started there: nothing is lost, on a real Kafka."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from recovery.model import NO_LEADER
from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live import incident_steps
from tests.live.command_runner import CommandRunner

CLUSTER = ClusterSpec(controllers=1, log_dirs=2)
ALONE, SHARED = "alone", "shared"


def test_a_broker_whose_log_dirs_were_moved_is_elected_with_everything_it_had(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    """``alone`` has its only replica there; of ``shared`` the last 300 records are on that broker only."""
    for topic, replicas in ((ALONE, [3]), (SHARED, [2, 3])):
        cluster.client.create_topic(topic, [replicas], {"min.insync.replicas": "1"})
        incident_steps.produce(cluster, topic, 500, "before")
    incident_steps.kill(cluster, 2)
    incident_steps.wait_all(cluster, [SHARED], lambda state: state.isr == (3,), "with 3 alone in the ISR")
    for topic in (ALONE, SHARED):
        incident_steps.produce(cluster, topic, 300, "after")
    incident_steps.kill(cluster, 3)
    incident_steps.start(cluster, 2)
    incident_steps.wait_offline(cluster, [ALONE, SHARED])

    node = cluster.node(3)
    moved = tuple(tmp_path / "another-host" / f"disk-{number}" for number in range(len(node.log_dirs)))
    (tmp_path / "another-host").mkdir()
    for old, new in zip(node.log_dirs, moved, strict=True):
        shutil.move(old, new)
    console = CommandRunner(tmp_path, cluster.bootstrap(), cluster.metadata.wait_caught_up)
    paths = [str(path) for path in moved]
    scanned = console.without_cluster("disk", "scan", *paths)
    assert scanned.status == 0 and "0 with records missing at the end" in scanned.out, scanned
    assert "Try first: run broker 3 with this disk again. Mount it here, or move it" in scanned.err
    found = json.loads(console.without_cluster("disk", "scan", "--output", "json", *paths).out)
    ends = {
        one["topic"]: one["logEndOffset"] for one in found["partitions"] if one["topic"] in (ALONE, SHARED)
    }
    assert ends == {ALONE: 800, SHARED: 800}

    node.change_properties({"log.dirs": ",".join(paths)})
    node.start()
    led = dict.fromkeys((ALONE, SHARED), 3)
    incident_steps.wait_all(
        cluster, [ALONE, SHARED], lambda state: state.leader != NO_LEADER, "with a leader"
    )
    assert {topic: cluster.metadata.partitions(topic)[0].leader for topic in led} == led
    for topic in led:
        values = [record.value for record in cluster.client.consume(topic, 0)]
        assert len(values) == len(set(values)) == 800
    cluster.metadata.wait_isr(SHARED, 0, [2, 3])
