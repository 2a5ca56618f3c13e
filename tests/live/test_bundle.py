"""A plan that somebody made from a bundle, without access to the cluster, is applied to the real cluster."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from tests.live.command_runner import CommandRunner

pytestmark = pytest.mark.long

CLUSTER = ClusterSpec(controllers=1, brokers=3)
TOPIC = "orders"


def test_a_plan_from_a_bundle_elects_on_the_real_cluster(cluster: KafkaCluster, tmp_path: Path) -> None:
    homes = [tmp_path / name for name in ("operator", "colleague")]
    for home in homes:
        home.mkdir()
    operator = CommandRunner(homes[0], cluster.bootstrap())
    colleague = CommandRunner(homes[1], "127.0.0.1:1")
    cluster.client.create_topic(TOPIC, [[1, 2]], {"min.insync.replicas": "1"})
    cluster.client.produce(TOPIC, 0, 100)
    cluster.node(2).kill()
    wait_until(lambda: cluster.metadata.partitions(TOPIC)[0].isr == (1,), "2 to leave the ISR", 120)
    cluster.client.produce(TOPIC, 0, 50)
    cluster.node(1).kill()
    wait_until(lambda: cluster.metadata.partitions(TOPIC)[0].leader == -1, "nobody to lead", 120)
    cluster.node(2).start()
    wait_until(lambda: cluster.metadata.live_brokers() == {2, 3}, "2 to be back", 120)

    bundle = homes[0] / "incident.ktriage"
    made = operator("bundle", "--to", str(bundle))
    assert made.status == 1 and "not in it: logs of broker 1: not answered" in made.out
    plans = [homes[1] / "plan.json", homes[1] / "again.json"]
    for file in plans:
        words = ("plan", "--bundle", str(bundle), "--strategy", "aggressive", str(file))
        planned = colleague.without_cluster(*words)
        assert planned.status == 0, planned.err
    assert plans[0].read_bytes() == plans[1].read_bytes()
    assert operator("plan", "--strategy", "aggressive", str(homes[0] / "plan.json")).status == 0
    rows = [json.loads(file.read_text())["partitions"] for file in (plans[0], homes[0] / "plan.json")]
    assert rows[0] == rows[1] and rows[0][0]["designatedLeader"] == 2
    assert colleague.without_cluster("apply", "--bundle", str(bundle), str(plans[0])).status == 2
    timeline = colleague.without_cluster("timeline", "--bundle", str(bundle)).out
    assert timeline.splitlines()[1:] == operator("timeline").out.splitlines()[1:]
    for member in ZipFile(bundle).namelist():
        assert b"record-" not in ZipFile(bundle).read(member), "the content of records is in no bundle"

    applied = operator("apply", str(plans[0]), "--yes", "--reason", "planned from the bundle")
    assert applied.status in (0, 1), applied.err
    assert cluster.metadata.partitions(TOPIC)[0].leader == 2
    assert len(cluster.client.consume(TOPIC, 0)) == 100
