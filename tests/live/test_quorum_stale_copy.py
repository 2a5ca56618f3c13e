"""The only controller is lost for good, and the copy that is left is a broker's that had died before two leader
changes and before a topic was made. What brokers' disks hold is kept: every acknowledged record, and no leader
epoch is used twice.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection

from backends.disk_scan.checkpoint_files import read_epochs
from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from testbed.kafka.jars import cache_directory
from tests.live.command_runner import CommandRunner
from tests.live.quorum_replacement import QuorumWatcher

pytestmark = pytest.mark.long

CLUSTER = ClusterSpec(controllers=1, brokers=3)
YES = ("--yes", "--reason", "a test")
TOPIC, LATER = "orders", "made-later"


def topic_ids(cluster: KafkaCluster) -> dict[str, str]:
    found = cluster.admin.describe_topics(TopicCollection([TOPIC, LATER]))
    # Kafka's tools and ktriage write ids in the URL-safe alphabet.
    safe = str.maketrans("+/", "-_")
    return {name: str(answer.result(30).topic_id).translate(safe) for name, answer in found.items()}


def epochs_on_disk(cluster: KafkaCluster, topic: str) -> dict[int, list[int]]:
    """The leader epochs in the checkpoint of partition 0, by broker."""
    return {
        node: [epoch for epoch, _ in read_epochs(path) or ()]
        for node, broker in cluster.brokers.items()
        if (path := broker.log_dirs[0] / f"{topic}-0" / "leader-epoch-checkpoint").exists()
    }


def newest_epochs(cluster: KafkaCluster, topic: str) -> dict[int, int]:
    return {broker: max(epochs, default=-1) for broker, epochs in epochs_on_disk(cluster, topic).items()}


def wait_for_epochs_beyond(cluster: KafkaCluster, topic: str, epoch: int) -> None:
    """A broker writes the checkpoint some time after it has appended the records."""
    wait_until(
        lambda: min(newest_epochs(cluster, topic).values()) > epoch,
        f"leader epochs of {topic} beyond {epoch} in each checkpoint",
    )


def lead_elsewhere(cluster: KafkaCluster, leader: int, other: int) -> None:
    """The leader fails and comes back; the other one leads then."""
    cluster.node(leader).kill()
    cluster.metadata.wait_leader(TOPIC, 0, other)
    cluster.node(leader).start()
    cluster.metadata.wait_isr(TOPIC, 0, {1, 2})


def start_again(cluster: KafkaCluster) -> None:
    cluster.node(100).start()
    QuorumWatcher(cluster).until(lambda quorum: quorum if quorum.leader.id == 100 else None, "100 to lead")
    for broker in (1, 2, 3):
        cluster.node(broker).start()
    cluster.metadata.wait_live((1, 2, 3), 90)
    cluster.metadata.wait_isr(TOPIC, 0, {1, 2})
    cluster.metadata.wait_isr(LATER, 1, {1, 2})


def test_a_stale_copy_loses_no_record_and_uses_no_leader_epoch_twice(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    console, plan = CommandRunner(tmp_path, cluster.bootstrap()), tmp_path / "rebuild.json"
    acknowledged: list[str] = []

    def produce(topic: str, count: int, prefix: str) -> None:
        produced = cluster.client.produce(topic, 0, count, prefix=prefix).acknowledged
        assert len(produced) == count
        acknowledged.extend(produced)

    cluster.client.create_topic(TOPIC, [[1, 2]], {"min.insync.replicas": "1"})
    produce(TOPIC, 100, "before")
    cluster.metadata.wait_caught_up()
    cluster.node(3).kill()
    lead_elsewhere(cluster, 1, 2)
    produce(TOPIC, 100, "second-leader")
    lead_elsewhere(cluster, 2, 1)
    produce(TOPIC, 100, "third-leader")
    cluster.client.create_topic(LATER, [[2, 1], [1, 2]], {"min.insync.replicas": "1"})
    produce(LATER, 100, "later")
    before = topic_ids(cluster)
    cluster.node(100).kill()
    cluster.node(100).wipe_log_dir()

    controller = cluster.node(100)
    cluster.format_again(100)
    dirs = {node: str(cluster.node(node).log_dirs[0]) for node in (1, 2, 3)}
    words = ["--from", dirs[3], "--into", str(controller.log_dirs[0])]
    words += ["--voter", f"100@127.0.0.1:{controller.port}", "--dead", "100"]
    for broker in (1, 2, 3):
        words += ["--data", dirs[broker]]
    words += ["--accept-loss-of", "1", "--accept-loss-of", "2", "--plan-out", str(plan)]

    refused = console.without_cluster("quorum", "rebuild", *words)
    assert "brokers 1, 2 run, and the copy lacks what they have applied" in refused.err, refused
    assert f"topics whose ids the copy does not know: {LATER} ({before[LATER]})" in refused.err
    cluster.node(1).kill()
    cluster.node(2).kill()
    on_disk = {topic: newest_epochs(cluster, topic) for topic in (TOPIC, LATER)}
    planned = console.without_cluster("quorum", "rebuild", *words, "--keep-strays")
    assert planned.status == 0, planned
    assert f"{TOPIC}-0 ({before[TOPIC]}): the copy knows epoch 0, the disks" in planned.out, planned
    rehearsal = ("--rehearse", "--kafka-dir", str(cache_directory(cluster.spec.version)))
    for step in (rehearsal, YES):
        done = console.without_cluster("quorum", "rebuild", str(plan), *step)
        assert done.status == 0, done
    written = {p["topic"]: p for p in json.loads(plan.read_text())["partitions"]}
    assert written[TOPIC]["leaderEpoch"] > max(on_disk[TOPIC].values())

    start_again(cluster)
    produce(TOPIC, 50, "afterwards")
    produce(LATER, 50, "later-afterwards")
    consumed = [record.value for topic in (TOPIC, LATER) for record in cluster.client.consume(topic, 0)]
    assert sorted(consumed) == sorted(acknowledged)
    assert topic_ids(cluster) == before
    for topic in (TOPIC, LATER):
        wait_for_epochs_beyond(cluster, topic, max(on_disk[topic].values()))
        for broker, epochs in epochs_on_disk(cluster, topic).items():
            assert epochs == sorted(set(epochs)), (topic, broker, epochs)
    assert not [stray for path in dirs.values() for stray in Path(path).glob("*-stray")]
