"""The metadata log on the disks of a real cluster, record by record as Kafka's own tool reads it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from backends.live.client.addresses import parse_address
from backends.live.client.settings import ClientSettings
from backends.live.metadata_log import LiveMetadataLog
from backends.live.nodes.controllers import ControllerConnections
from backends.metadata_log.directory import DIRECTORY, DirectoryReading, log_files, read_directory
from recovery.metadata_log.history import MetadataHistory, fold
from recovery.metadata_log.log_changes import MetadataLogRecord, PartitionSubject
from recovery.metadata_log.partition_states import EventKind
from recovery.metadata_log.record_codec import decode
from recovery.metadata_log.timeline import events
from testbed.kafka import KafkaCluster, wait_until
from tests.live import disk_incident
from tests.live.disk_incident import MOVED, ORDERS
from tests.unit.cli.command_process import command_line, environment
from tests.unit.metadata_log.dump import every_record, only_idle_left_out, read_dump

pytestmark = pytest.mark.long

CLUSTER = disk_incident.CLUSTER


@pytest.fixture(scope="module")
def after_incident(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> KafkaCluster:
    return disk_incident.played(cluster, tmp_path_factory.mktemp("incident"))


def metadata_dir(cluster: KafkaCluster, node: int) -> Path:
    return cluster.node(node).log_dirs[0] / DIRECTORY


def read(path: Path) -> tuple[list[MetadataLogRecord], DirectoryReading]:
    reading = DirectoryReading(path)
    return list(read_directory(reading)), reading


def history_of(path: Path) -> MetadataHistory:
    return fold(read(path)[0])


@pytest.mark.parametrize("node", [1, 100])
def test_every_record_of_a_running_node_is_what_kafkas_tool_prints(
    after_incident: KafkaCluster, node: int
) -> None:
    path = metadata_dir(after_incident, node)
    # A broker that starts after the controller's first snapshot takes the snapshot, and its log begins there.
    segment = log_files(path)[0][0][1]
    dumped = read_dump(
        after_incident.tools("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(segment)).stdout
    )
    records, reading = read(path)
    assert reading.problem is None
    # The node goes on writing: what the tool saw first is the beginning of what is there now.
    assert len(dumped) > 100
    assert every_record(segment.read_bytes())[: len(dumped)] == dumped
    assert only_idle_left_out(dumped, records)


def test_a_simulated_clusters_log_is_what_kafkas_tool_prints(cluster: KafkaCluster, tmp_path: Path) -> None:
    argv = command_line("ktriage", "simulate", "run", "stale-long-tail", "--metadata-dir", str(tmp_path))
    subprocess.run(argv, env=environment(tmp_path / "home"), capture_output=True, check=True)
    records, reading = read(tmp_path / DIRECTORY)
    assert reading.problem is None
    shown = cluster.tools("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(reading.segments[0]))
    assert [(r.offset, r.time_ms, decode(r.value)) for r in records] == read_dump(shown.stdout)
    assert len(records) >= 30
    assert "LeaderChange" in shown.stdout


def test_the_log_ends_with_what_the_cluster_describes(after_incident: KafkaCluster) -> None:
    shown = after_incident.metadata.wait_caught_up().partition(ORDERS, 0)
    history = history_of(metadata_dir(after_incident, 100))
    now = history.intervals(subject(history, ORDERS))[-1].registration
    assert (now.leader, now.leader_epoch) == (shown.leader, shown.leader_epoch)
    assert (now.replicas, now.isr, now.elr) == (shown.replicas, shown.isr, shown.elr)


def subject(history: MetadataHistory, topic: str) -> PartitionSubject:
    (topic_id,) = history.topic_ids(topic)
    return PartitionSubject(topic_id, 0)


def test_the_timeline_holds_what_was_done(after_incident: KafkaCluster) -> None:
    history = history_of(metadata_dir(after_incident, 1))
    kinds = {event.kind for event in events(history)}
    assert kinds >= {
        EventKind.TOPIC_CREATED,
        EventKind.TOPIC_DELETED,
        EventKind.CONFIG_CHANGED,
        EventKind.REASSIGNMENT,
        EventKind.CONTROLLED_SHUTDOWN,
        EventKind.BROKER_FENCED,
        EventKind.OFFLINE,
        EventKind.UNCLEAN_ELECTION,
    }
    assert history.counts.unknown == {}
    assert history.counts.malformed == 0


def test_a_snapshot_alone_tells_the_state_at_its_offset(after_incident: KafkaCluster, tmp_path: Path) -> None:
    path = metadata_dir(after_incident, 100)
    newest = wait_until(lambda: max(path.glob("0*[1-9]*-*.checkpoint"), default=None), "a snapshot", 60)
    end = int(newest.name[:20])
    (tmp_path / newest.name).write_bytes(newest.read_bytes())
    assert list(events(history_of(tmp_path))) == []
    alone, whole = history_of(tmp_path), fold(r for r in read(path)[0] if r.offset < end)
    for topic in (ORDERS, MOVED):
        states = [h.intervals(subject(h, topic))[-1].registration for h in (alone, whole)]
        assert states[0] == states[1]


async def test_the_active_controller_tells_the_same_as_its_disk(after_incident: KafkaCluster) -> None:
    (address,) = (parse_address(a) for a in after_incident.bootstrap_controllers.split(","))
    controllers = ControllerConnections(ClientSettings((address,)), (address,))
    try:
        log = LiveMetadataLog(controllers)
        while await log.read():
            pass
    finally:
        await controllers.close()
    disk = fold(r for r in read(metadata_dir(after_incident, 100))[0] if r.offset < log.next_offset)
    assert list(log.history.rows()) == list(disk.rows())
    assert log.next_offset == log.high_watermark
    assert log.snapshot_offset == 0
