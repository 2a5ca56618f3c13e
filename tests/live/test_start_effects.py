"""Each thing that ``ktriage disk scan`` says of a start, tried on the Kafka whose classes were read in their jars.

Broker 1 holds every replica and is down. Its log dirs are broken in one way, scanned, and the broker is started: it
ends, takes a log dir offline, cuts a log, sets a folder aside or deletes it. Then it gets its dirs back.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_values import (
    BEGINS_EMPTY,
    CUT_OFF,
    DELETES,
    DIR_OFFLINE,
    ENDS,
    RENAMED_TO_STRAY,
    StartEffect,
)
from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from testbed.kafka.node import Node
from tests.live.incident_steps import produce
from tests.unit.log_segments.segments import batch

pytestmark = pytest.mark.long

CLUSTER = ClusterSpec(
    version="4.4.0",
    brokers=1,
    log_dirs=2,
    broker_config={"log.segment.delete.delay.ms": "1000", "log.initial.task.delay.ms": "1000"},
)
TOPIC, PARTITIONS, RECORDS = "broken-dirs", 8, 10
LOST = "0" * 32


@pytest.fixture(scope="module")
def down(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> tuple[Node, Path]:
    """Broker 1 was killed; a copy of its dirs is kept."""
    cluster.client.create_topic(TOPIC, [[1]] * PARTITIONS)
    produce(cluster, TOPIC, RECORDS, "whole")
    node = cluster.node(1)
    node.kill()
    kept = tmp_path_factory.mktemp("kept")
    for number, path in enumerate(node.log_dirs):
        shutil.copytree(path, kept / str(number))
    return node, kept


@pytest.fixture
def node(down: tuple[Node, Path]) -> Iterator[Node]:
    node, kept = down
    yield node
    node.kill()
    for number, path in enumerate(node.log_dirs):
        shutil.rmtree(path)
        shutil.copytree(kept / str(number), path)


def effects(node: Node) -> tuple[StartEffect, ...]:
    return scan_log_dirs([str(path) for path in node.log_dirs], "here", 0).at_start


def replicas(node: Node) -> list[Path]:
    """Of the second log dir: the first holds the metadata log."""
    return sorted(path for path in node.log_dirs[1].iterdir() if path.name.startswith(f"{TOPIC}-"))


def replica(node: Node) -> Path:
    return replicas(node)[0]


def write(name: str, data: bytes) -> Callable[[Node], None]:
    """Into the folder of a replica."""

    def broken(node: Node) -> None:
        (replica(node) / name).write_bytes(data)

    return broken


def write_in_dir(name: str, data: bytes) -> Callable[[Node], None]:
    def broken(node: Node) -> None:
        (node.log_dirs[1] / name).write_bytes(data)

    return broken


def properties(name: str, value: str | None, number: int = 1) -> Callable[[Node], None]:
    """meta.properties with another value, or without the key."""

    def broken(node: Node) -> None:
        file = node.log_dirs[number] / "meta.properties"
        lines = [line for line in file.read_text().splitlines() if not line.startswith(f"{name}=")]
        file.write_text("\n".join([*lines, *([f"{name}={value}"] if value is not None else []), ""]))

    return broken


def folder(name: str) -> Callable[[Node], None]:
    def broken(node: Node) -> None:
        (node.log_dirs[1] / name).mkdir()

    return broken


def two_copies(node: Node) -> None:
    shutil.copytree(replica(node), node.log_dirs[0] / replica(node).name)


def two_future_copies(node: Node) -> None:
    for number in (1, 2):
        shutil.copytree(replica(node), node.log_dirs[0] / f"{replica(node).name}.{LOST[1:]}{number}-future")


def one_directory_twice(node: Node) -> None:
    shutil.copy(node.log_dirs[0] / "meta.properties", node.log_dirs[1] / "meta.properties")


def two_metadata_logs(node: Node) -> None:
    shutil.copytree(node.log_dirs[0] / "__cluster_metadata-0", node.log_dirs[1] / "__cluster_metadata-0")


def no_meta_properties(node: Node) -> None:
    (node.log_dirs[1] / "meta.properties").unlink()


def quorum_state(node: Node) -> None:
    (node.log_dirs[0] / "__cluster_metadata-0" / "quorum-state").write_bytes(b"")


def stray_without_bytes(node: Node) -> None:
    stray = node.log_dirs[1] / f"{TOPIC}-0.{LOST}-stray"
    stray.mkdir()
    (stray / "partition.metadata").write_bytes(b"")


@pytest.mark.parametrize(
    "broken",
    [
        write("partition.metadata", b""),
        write("partition.metadata", b"version: 0\n"),
        write("partition.metadata", b"version: 0\ntopic_id: zz\n"),
        write("leader-epoch-checkpoint", b"0\n1\nx y\n"),
        write(f"{0:020}-old.log", b""),
        write("abc.timeindex", b""),
        write("abc.snapshot", b""),
        write(f"{0:020}.txnindex", b"\0\1" + bytes(32)),
        folder("lost+found"),
        folder(f"{TOPIC}-0-stray"),
        stray_without_bytes,
        two_copies,
        two_future_copies,
        one_directory_twice,
        two_metadata_logs,
        no_meta_properties,
        quorum_state,
        write_in_dir("meta.properties", b""),
        properties("version", "2", 0),
        properties("cluster.id", "AAAAAAAAAAAAAAAAAAAAAQ"),
        properties("directory.id", "AAAAAAAAAAAAAAAAAAAAAQ"),
    ],
)
def test_the_broker_ends_where_the_scan_says_so(node: Node, broken: Callable[[Node], None]) -> None:
    assert ENDS not in {one.effect for one in effects(node)}
    broken(node)
    assert ENDS in {one.effect for one in effects(node)}
    node.start()
    assert node.wait_exit(90.0) != 0


@pytest.mark.parametrize(
    "broken",
    [
        write_in_dir("recovery-point-offset-checkpoint", b"0\n7\n"),
        write_in_dir("log-start-offset-checkpoint", b"0\n7\n"),
        write_in_dir("replication-offset-checkpoint", b"0\n7\n"),
        write("leader-epoch-checkpoint", b"0\n2\n0 0\n"),
        write("partition.metadata", b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n"),
        write("partition.metadata", b"version: 0\ntopic_id: " + b"A" * 22 + b"\n"),
        properties("version", "2"),
        properties("node.id", "x"),
        properties("node.id", "1 "),
        properties("cluster.id", None),
        properties("cluster.id", "\\u12"),
        properties("directory.id", "foo"),
    ],
)
def test_a_log_dir_goes_offline_where_the_scan_says_so(
    cluster: KafkaCluster, node: Node, broken: Callable[[Node], None]
) -> None:
    broken(node)
    assert {one.effect for one in effects(node)} - {BEGINS_EMPTY} == {DIR_OFFLINE}
    node.start()
    cluster.metadata.wait_live([1])
    wait_until(lambda: offline(cluster, node), "the log dir to be offline", 60.0)


def offline(cluster: KafkaCluster, node: Node) -> bool:
    return f"{node.log_dirs[1]}" in "".join(
        line
        for line in node.log_file.read_text().splitlines()
        if "offline" in line or "Stopping serving" in line
    )


def test_an_empty_log_begins_beside_a_lone_stray_of_a_partition_that_is_assigned(
    cluster: KafkaCluster, node: Node
) -> None:
    lost, kept = replicas(node)[:2]
    for folder in (lost, kept):
        folder.rename(node.log_dirs[1] / f"{folder.name}.{LOST}-stray")
    assert {(one.effect, Path(one.where).name) for one in effects(node)} == {
        (BEGINS_EMPTY, f"{folder.name}.{LOST}-stray") for folder in (lost, kept)
    }
    # Its repair.
    (node.log_dirs[1] / f"{kept.name}.{LOST}-stray").rename(kept)
    node.start()
    cluster.metadata.wait_live([1])
    numbers = [int(folder.name.rpartition("-")[2]) for folder in (lost, kept)]
    for number in numbers:
        cluster.metadata.wait_leader(TOPIC, number, 1)
    assert [len(cluster.client.consume(TOPIC, number)) for number in numbers] == [0, RECORDS]


def test_what_the_broker_deletes_cuts_and_sets_aside(cluster: KafkaCluster, node: Node) -> None:
    """One start shows them all. A -delete folder that was renamed to end in -stray stays, as its repair says."""
    stray, cut, behind, swept = replicas(node)[:4]
    (stray / "partition.metadata").unlink()
    segment = cut / f"{0:020}.log"
    whole = segment.read_bytes()
    segment.write_bytes(whole + batch(RECORDS, 10)[:-1] + b"?")
    later = cut / f"{20:020}.log"
    later.write_bytes(batch(20, 10))
    starts = node.log_dirs[1] / "log-start-offset-checkpoint"
    topic, _, partition = behind.name.rpartition("-")
    starts.write_text(f"0\n1\n{topic} {partition} 5000\n")
    swept_segment = swept / f"{100:020}.log.deleted"
    swept_segment.write_bytes(batch(100, 10))
    deleted = node.log_dirs[1] / f"gone-7.{LOST}-delete"
    shutil.copytree(swept, deleted)
    (deleted / swept_segment.name).unlink()
    renamed = node.log_dirs[1] / f"gone-8.{LOST}-stray"
    shutil.copytree(deleted, renamed)
    moved = node.log_dirs[0] / f"{swept.name}.{LOST}-future"
    shutil.copytree(swept, moved)
    (moved / swept_segment.name).unlink()
    (moved / "partition.metadata").unlink()
    told = {(one.effect, Path(one.where).name) for one in effects(node)}
    assert told == {
        (RENAMED_TO_STRAY, stray.name),
        (RENAMED_TO_STRAY, moved.name),
        (CUT_OFF, cut.name),
        (CUT_OFF, behind.name),
        (DELETES, swept_segment.name),
        (DELETES, deleted.name),
        (BEGINS_EMPTY, renamed.name),  # of a topic that does not exist
    }
    (why,) = (one.why for one in effects(node) if one.where == str(deleted))
    assert f"offsets 0 to {RECORDS - 1} of gone-7" in why
    node.start()
    cluster.metadata.wait_live([1])
    wait_until(lambda: not deleted.exists(), "the -delete folder to be deleted", 90.0)
    assert not swept_segment.exists()
    assert (renamed / segment.name).exists()
    assert len([*node.log_dirs[1].glob(f"{stray.name}.*-stray")]) == 1
    (set_aside,) = node.log_dirs[0].glob(f"{swept.name}.*-stray")
    assert (set_aside / segment.name).read_bytes() == (swept / segment.name).read_bytes() != b""
    assert not moved.exists() and not (node.log_dirs[0] / swept.name).exists(), "no empty log begins there"
    assert segment.read_bytes() == whole
    wait_until(lambda: not later.exists(), "the segment behind the damaged place to be deleted", 60.0)
    wait_until(
        lambda: (behind / f"{5000:020}.log").exists() and not (behind / f"{0:020}.log").exists(),
        "the log to begin at its checkpointed start",
        60.0,
    )
