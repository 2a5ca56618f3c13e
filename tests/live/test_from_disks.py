"""Every process of a cluster was killed: what ``status --metadata-dir`` reads from the disks, and whom it says to
start, is what Kafka then does.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from testbed.kafka.connection import NoAnswer
from tests.live.command_runner import CommandRunner

pytestmark = pytest.mark.long

CLUSTER = ClusterSpec(controllers=1, brokers=3)
TOPIC = "orders"


@pytest.fixture
def console(tmp_path: Path, cluster: KafkaCluster) -> CommandRunner:
    return CommandRunner(tmp_path, cluster.bootstrap())


def state(cluster: KafkaCluster) -> tuple[int, tuple[int, ...]]:
    found = cluster.metadata.partitions(TOPIC)[0]
    return found.leader, found.isr


def scanned(console: CommandRunner, cluster: KafkaCluster, brokers: tuple[int, ...]) -> list[str]:
    """The options that give the scans of these brokers' disks."""
    words = []
    for broker in brokers:
        dirs = map(str, cluster.node(broker).log_dirs)
        file = console.home / f"broker-{broker}.json"
        file.write_text(console.without_cluster("disk", "scan", "--output", "json", *dirs).out)
        words += ["--evidence", str(file)]
    return words


def test_whom_to_start_in_a_cluster_of_which_nothing_runs(
    cluster: KafkaCluster, console: CommandRunner
) -> None:
    cluster.client.create_topic(TOPIC, [[1, 2, 3]], {"min.insync.replicas": "2"})
    cluster.client.produce(TOPIC, 0, 100)
    cluster.node(3).kill()
    wait_until(lambda: set(state(cluster)[1]) == {1, 2}, "3 to leave the ISR")
    acknowledged = cluster.client.produce(TOPIC, 0, 50).acknowledged
    assert len(acknowledged) == 50
    cluster.node(2).kill()
    wait_until(lambda: state(cluster) == (1, (1,)), "2 to leave the ISR")
    cluster.node(1).kill()
    cluster.node(100).kill()

    metadata = ("--metadata-dir", str(cluster.node(100).log_dirs[0]))
    ended = console.without_cluster("status", *metadata, *scanned(console, cluster, (1, 2, 3)))
    assert ended.status == 1
    first, *_ = ended.out.splitlines()
    assert first.startswith("FROM DISKS, as of ") and ", nothing asked · 1 offline" in first
    assert "Start the controllers with their old disks" in ended.out
    assert "Start brokers 1 and 2, all with their old disks: 1 partition gets a leader." in ended.out
    assert "3 logs" not in ended.out and "1 log of broker 1 counts as answered" in ended.out
    assert "none, 1 led" in ended.out
    replicas = console.without_cluster("replicas", *metadata, *scanned(console, cluster, (1, 2, 3)))
    assert "50 or more" in replicas.out  # what electing 3 would lose

    # It is so: 1 alone, which led last, is not elected as long as 2 is away.
    cluster.node(100).start()
    cluster.node(1).start()
    wait_until(lambda: state(cluster) == (-1, ()), "1 to be there and not to lead", 120, passing=(NoAnswer,))
    cluster.node(2).start()
    wait_until(lambda: state(cluster)[0] in (1, 2), "a leader", 120)
    assert len(cluster.client.consume(TOPIC, 0)) == 150
