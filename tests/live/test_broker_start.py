"""What Kafka does at its start with broken log dirs is what ``ktriage disk scan`` says before.

Broker 3 is killed, its dirs are changed in one way, scanned, and the broker is started. Then it gets its dirs back.
What ends it or takes a log dir offline is in test_start_effects.py.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_values import ENDS, RENAMED_TO_STRAY, StartEffect
from testbed.kafka import KafkaCluster, wait_until
from testbed.kafka.incidents import elect_unclean
from testbed.kafka.log_files import replica_directory
from testbed.kafka.node import Node
from tests.live import started_cluster
from tests.live.incident_steps import produce
from tests.unit.log_segments.segments import old_message

pytestmark = pytest.mark.long

CLUSTER = started_cluster.TWO_DISKS
BROKER, TOPIC = 3, "broken-dirs"


@pytest.fixture(scope="module")
def killed(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """Broker 3 has a replica in each log dir, and is down; a copy of its dirs is kept."""
    cluster.bring_all_up()
    cluster.client.create_topic(TOPIC, [[1, BROKER]] * 4, {"min.insync.replicas": "1"})
    produce(cluster, TOPIC, 40, "whole")
    for partition in range(4):
        cluster.metadata.wait_isr(TOPIC, partition, (1, BROKER))
    node = cluster.node(BROKER)
    node.kill()
    kept = tmp_path_factory.mktemp("kept")
    for number, path in enumerate(node.log_dirs):
        shutil.copytree(path, kept / str(number))
    yield node
    restore(node, kept)
    cluster.bring_all_up()


@pytest.fixture
def node(killed: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    kept = tmp_path_factory.mktemp("before")
    for number, path in enumerate(killed.log_dirs):
        shutil.copytree(path, kept / str(number))
    yield killed
    killed.kill()
    restore(killed, kept)


def restore(node: Node, kept: Path) -> None:
    for number, path in enumerate(node.log_dirs):
        shutil.rmtree(path)
        shutil.copytree(kept / str(number), path)


def replica_in(log_dir: Path) -> Path:
    return next(path for path in sorted(log_dir.iterdir()) if path.name.startswith(f"{TOPIC}-"))


def effects(node: Node) -> tuple[StartEffect, ...]:
    return scan_log_dirs([str(path) for path in node.log_dirs], "here", 0).at_start


def test_a_folder_becomes_a_stray_where_the_scan_says_so(cluster: KafkaCluster, node: Node) -> None:
    replica = replica_in(node.log_dirs[1])
    (replica / "partition.metadata").unlink()
    assert [one.effect for one in effects(node)] == [RENAMED_TO_STRAY]
    size = sum(path.stat().st_size for path in replica.glob("*.log"))
    node.start()
    cluster.metadata.wait_live([BROKER])
    (stray,) = node.log_dirs[1].glob(f"{replica.name}.*-stray")
    assert sum(path.stat().st_size for path in stray.glob("*.log")) == size, "nothing of it is lost"
    partition = int(replica.name.rpartition("-")[2])
    wait_until(lambda: replica_directory(node, TOPIC, partition).is_dir(), "a new log in its place", 60.0)


def test_a_copy_for_a_move_becomes_a_stray_and_the_replica_is_as_it_was(
    cluster: KafkaCluster, node: Node
) -> None:
    replica = replica_in(node.log_dirs[1])
    moved = node.log_dirs[0] / f"{replica.name}.{'0' * 32}-future"
    shutil.copytree(replica, moved)
    (moved / "partition.metadata").unlink()
    assert [(one.effect, one.where) for one in effects(node)] == [(RENAMED_TO_STRAY, str(moved))]
    node.start()
    cluster.metadata.wait_live([BROKER])
    (stray,) = node.log_dirs[0].glob(f"{replica.name}.*-stray")
    assert any(path.stat().st_size for path in stray.glob("*.log")), "nothing of it is lost"
    assert replica.is_dir() and not (node.log_dirs[0] / replica.name).exists(), "no empty log begins there"


def test_a_transaction_index_of_another_version_is_loaded_before_4_4(
    cluster: KafkaCluster, node: Node
) -> None:
    """The two bytes of its version are 0 and 1; brokers of 4.4 end at it (test_start_effects.py)."""
    index = replica_in(node.log_dirs[1]) / f"{0:020}.txnindex"
    index.write_bytes(b"\0\1" + bytes(32))
    (effect,) = effects(node)
    assert effect.effect == ENDS and "that Kafka 4.4 and later does not know" in effect.why
    node.start()
    cluster.metadata.wait_live([BROKER])


def test_checkpoints_of_0_bytes_are_no_remark_and_the_broker_starts(
    cluster: KafkaCluster, node: Node
) -> None:
    for name in ("log-start-offset-checkpoint", "recovery-point-offset-checkpoint"):
        (node.log_dirs[1] / name).write_bytes(b"")
    found = scan_log_dirs([str(path) for path in node.log_dirs], "here", 0)
    assert found.at_start == () and [one.remarks for one in found.dirs] == [(), ()]
    node.start()
    cluster.metadata.wait_live([BROKER])


def test_messages_of_an_old_format_are_no_lost_records_and_a_broker_serves_them(
    cluster: KafkaCluster, node: Node
) -> None:
    """Brokers of today write no message of format 1; those of an old cluster still lie on its disks."""
    replica = replica_in(node.log_dirs[1])
    partition = int(replica.name.rpartition("-")[2])
    (segment,) = replica.glob("*.log")
    count = len(cluster.client.consume(TOPIC, partition))
    values = [f"old-{number}" for number in range(count)]
    segment.write_bytes(
        b"".join(old_message(1, number, value.encode()) for number, value in enumerate(values))
    )
    for index in (*replica.glob("*.index"), *replica.glob("*.timeindex")):
        index.write_bytes(b"")
    found = scan_log_dirs([str(path) for path in node.log_dirs], "here", 0)
    (log,) = (
        log for one in found.dirs for log in one.logs if (log.topic, log.partition) == (TOPIC, partition)
    )
    assert (log.old_messages, log.log_end, log.lost_tail) == (count, count, None)
    cluster.node(1).kill()
    cluster.metadata.wait_offline(TOPIC, partition)
    node.start()
    cluster.metadata.wait_live([BROKER])
    elect_unclean(cluster, TOPIC, partition)
    try:
        assert [record.value for record in cluster.client.consume(TOPIC, partition)] == values
    finally:
        cluster.bring_all_up()
