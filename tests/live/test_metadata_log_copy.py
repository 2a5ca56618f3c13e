"""``ktriage metadata-log copy`` of a real cluster: the controller's own bytes, which Kafka's tool reads."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest

from backends.metadata_log.directory import DIRECTORY, DirectoryReading, read_directory
from pipeline.watch.shipped_log import ShippedLog
from recovery.metadata_log.log_changes import MetadataLogRecord
from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from testbed.kafka.incidents import stale_long_tail
from tests.unit.cli.command_process import invoke
from tests.unit.metadata_log.dump import every_record, only_idle_left_out, read_dump

pytestmark = pytest.mark.long

SMALL_SEGMENTS = {
    "metadata.log.max.record.bytes.between.snapshots": "1000",
    "internal.metadata.log.segment.bytes": "16384",
    "metadata.max.retention.bytes": "1024",
    "metadata.max.idle.interval.ms": "50",
}
CLUSTER = ClusterSpec(controllers=1, brokers=3, controller_config=SMALL_SEGMENTS)
TOPIC = "orders"


@pytest.fixture(scope="module")
def after_incident(cluster: KafkaCluster) -> KafkaCluster:
    cluster.client.create_topic(TOPIC, [[1, 2, 3]], {"min.insync.replicas": "2"})
    stale_long_tail(cluster, TOPIC)
    return cluster


def copied(cluster: KafkaCluster, home: Path) -> dict[str, object]:
    to = ("--bootstrap-controller", cluster.bootstrap_controllers, "--to", "copy", "--output", "json")
    ended = invoke(home, "ktriage", "metadata-log", "copy", *to)
    assert ended.status == 0, ended
    found: dict[str, object] = json.loads(ended.out)
    return found


def files(path: Path, pattern: str) -> list[Path]:
    return sorted((path / DIRECTORY).glob(pattern))


def read(path: Path) -> tuple[list[MetadataLogRecord], DirectoryReading]:
    reading = DirectoryReading(path / DIRECTORY)
    return list(read_directory(reading)), reading


def log_dir(cluster: KafkaCluster) -> Path:
    return cluster.node(100).log_dirs[0]


class OwnFiles:
    """The controller's own files, those included that it removes while they are compared."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._directory = log_dir(cluster)
        self._seen: dict[str, bytes] = {}
        self.look()

    def look(self) -> None:
        for path in files(self._directory, "*[gt]"):
            with suppress(FileNotFoundError):  # the controller removes files at any moment
                self._seen[path.name] = path.read_bytes()

    def require_equal(self, copy: Path) -> None:
        """Every batch of the copy stands in them, byte for byte, and so does its snapshot."""
        self.look()
        log = b"".join(data for name, data in sorted(self._seen.items()) if name.endswith(".log"))
        assert files(copy, "*.log")
        assert b"".join(path.read_bytes() for path in files(copy, "*.log")) in log
        for path in files(copy, "*.checkpoint"):
            assert path.read_bytes() == self._seen[path.name]


def test_the_copy_is_the_controllers_own_log_and_kafkas_tool_reads_it(
    after_incident: KafkaCluster, tmp_path: Path
) -> None:
    """Copied twice, the second time behind a batch that was torn."""
    own, copy = OwnFiles(after_incident), tmp_path / "copy"
    copied(after_incident, tmp_path)
    own.look()
    last = files(copy, "*.log")[-1]
    os.truncate(last, last.stat().st_size - 7)
    told = copied(after_incident, tmp_path)
    own.require_equal(copy)
    records, reading = read(copy)
    assert (reading.problem, reading.end_offset) == (None, told["nextOffset"])
    dumped = after_incident.tools("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(last))
    shown = read_dump(dumped.stdout)
    assert len(shown) > 100
    assert every_record(last.read_bytes()) == shown
    assert only_idle_left_out(shown, records)
    end = ShippedLog(copy / DIRECTORY).latest(None, 1 << 30)
    assert (end.problem, end.offset) == (None, told["nextOffset"])


def test_what_the_cluster_removes_before_it_is_copied_is_a_snapshot_and_no_silent_gap(
    after_incident: KafkaCluster, tmp_path: Path
) -> None:
    told = copied(after_incident, tmp_path)
    copy, controllers = tmp_path / "copy", log_dir(after_incident)
    wait_until(
        lambda: int(min(path.stem for path in files(controllers, "*.log"))) > int(str(told["nextOffset"])),
        "the controller to remove what was copied",
        150,
    )
    own = OwnFiles(after_incident)
    again = copied(after_incident, tmp_path)
    own.require_equal(copy)
    assert again["snapshots"] == 1
    (older,) = copy.glob("before-*")
    records, reading = read(older)
    assert (reading.problem, reading.end_offset) == (None, told["nextOffset"])
    assert records
    _, reading = read(copy)
    assert (reading.problem, reading.end_offset) == (None, again["nextOffset"])
    assert ShippedLog(copy / DIRECTORY).latest(None, 1 << 30).problem is None
