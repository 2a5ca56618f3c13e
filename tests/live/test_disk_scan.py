"""A broker's disk, read without the broker: as the broker answers, as kafka-dump-log prints, and as evidence."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from backends.base.answers import Depth
from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_script import scan_script
from backends.disk_scan.scan_values import ScanDepth, ScannedLog
from backends.log_segments.segment_reader import Batch, SegmentReader
from backends.log_segments.segment_source import SegmentFile
from recovery.model import Lineage, ReplicaLog, TopicPartition
from testbed.kafka import KafkaCluster
from testbed.kafka.log_files import cut_log
from tests.live import disk_incident, incident_steps
from tests.live.command_runner import CommandRunner
from tests.live.disk_incident import CODECS, ORDERS, PACKED, SHORTER
from tests.live.live_backend import open_backend, survey

pytestmark = pytest.mark.long

CLUSTER = disk_incident.CLUSTER
DEFAULT_DEPTH = ScanDepth()


@pytest.fixture(scope="module")
def after_incident(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> KafkaCluster:
    return disk_incident.played(cluster, tmp_path_factory.mktemp("incident"))


def scans(
    cluster: KafkaCluster, broker: int, depth: ScanDepth = DEFAULT_DEPTH
) -> dict[TopicPartition, ScannedLog]:
    dirs = [str(path) for path in cluster.node(broker).log_dirs]
    found = scan_log_dirs(dirs, "here", 0, depth)
    assert [one.problem for one in found.dirs] == [None, None]
    assert {(one.cluster_id, one.node_id) for one in found.dirs} == {(cluster.cluster_id, broker)}
    return {TopicPartition(log.topic, log.partition): log for one in found.dirs for log in one.logs}


def scanned(cluster: KafkaCluster, broker: int, topic: str) -> ScannedLog:
    return scans(cluster, broker)[TopicPartition(topic, 0)]


async def answers(cluster: KafkaCluster, broker: int) -> dict[TopicPartition, ReplicaLog]:
    async with open_backend(cluster) as backend:
        found = await survey(backend, (ORDERS, PACKED, SHORTER), depth=Depth.FULL)
    return {tp: log for tp, one in found.items() if (log := one.log(broker)) is not None}


def by_script(cluster: KafkaCluster, broker: int) -> str:
    """The JSON of the script, as its host's Python writes it."""
    argv = [sys.executable, "-I", "-S", "-", *map(str, cluster.node(broker).log_dirs)]
    return subprocess.run(argv, input=scan_script(), capture_output=True, text=True, check=True).stdout


def compare(told: dict[TopicPartition, ReplicaLog], disk: dict[TopicPartition, ScannedLog]) -> None:
    for tp, log in told.items():
        assert isinstance(log.lineage, Lineage)
        read = disk[tp]
        assert (read.log_start, read.log_end) == (log.log_start_offset, log.log_end_offset), tp
        assert read.spans == log.lineage.spans, tp
        assert read.last_epoch == log.lineage.last_epoch, tp
        assert read.high_watermark <= log.high_watermark, tp
        assert (read.lost_tail, read.remarks) == (None, ()), tp


@pytest.mark.parametrize("broker", [1, 2])
async def test_a_running_brokers_disk_is_what_the_broker_answers(
    after_incident: KafkaCluster, broker: int
) -> None:
    told = await answers(after_incident, broker)
    assert len(told) == (1 if broker == 1 else 3)
    compare(told, scans(after_incident, broker))


async def test_a_killed_brokers_disk_is_what_the_broker_answered(after_incident: KafkaCluster) -> None:
    told = await answers(after_incident, 2)
    incident_steps.kill(after_incident, 2)
    try:
        disk = scans(after_incident, 2)
        compare(told, disk)
        assert disk[TopicPartition(ORDERS, 0)].spans == ((0, 0, 1000), (2, 1000, 1300))
        assert disk[TopicPartition("__cluster_metadata", 0)].log_end > 100
        piped = by_script(after_incident, 2)
        rows = {(row["topic"], row["partition"]): row for row in json.loads(piped)["partitions"]}
        assert {key: row["logEndOffset"] for key, row in rows.items()} == {
            tuple(tp): log.log_end for tp, log in disk.items()
        }
    finally:
        incident_steps.start(after_incident, 2)


def test_flushed_batches_that_are_skipped_have_the_epochs_that_the_batches_tell(
    after_incident: KafkaCluster,
) -> None:
    """A broker that stopped cleanly has flushed everything."""
    after_incident.node(2).stop()
    try:
        skipping, every = scans(after_incident, 2), scans(after_incident, 2, ScanDepth(every_batch=True))
        assert {tp: (log.spans, log.log_end, log.defect, log.remarks) for tp, log in skipping.items()} == {
            tp: (log.spans, log.log_end, log.defect, log.remarks) for tp, log in every.items()
        }
        assert skipping[TopicPartition(PACKED, 0)].skipped > 1 << 20
        assert not any(log.skipped for log in every.values())
    finally:
        incident_steps.start(after_incident, 2)


_DUMPED = re.compile(
    r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*?producerId: (-?\d+) .*?partitionLeaderEpoch: (-?\d+)"
    r" isTransactional: (\w+) isControl: (\w+) .*?position: (\d+) .*?size: (\d+) magic: 2 compresscodec: (\w+)"
    r" crc: (\d+) isvalid: true",
    re.MULTILINE,
)


def as_dumped(batch: Batch) -> tuple[str, ...]:
    header = batch.header
    flags = (str(header.is_transactional).lower(), str(header.is_control).lower())
    start = (header.base_offset, header.last_offset, header.record_count, header.producer_id)
    end = (batch.position, header.size, header.compression, header.crc)
    return tuple(map(str, (*start, header.leader_epoch, *flags, *end)))


@pytest.mark.parametrize("topic", [ORDERS, PACKED])
def test_every_batch_is_what_kafka_dump_log_prints(after_incident: KafkaCluster, topic: str) -> None:
    dirs = after_incident.node(3).log_dirs
    segments = [str(path) for one in dirs for path in sorted(one.glob(f"{topic}-0/*.log"))]
    shown = after_incident.tools("kafka-dump-log", "--files", ",".join(segments)).stdout
    found: list[tuple[str, ...]] = []
    for segment in segments:
        with SegmentFile(segment) as source:
            reader = SegmentReader(source)
            found += map(as_dumped, reader)
            assert reader.defect is None
    assert found == _DUMPED.findall(shown)
    assert found
    if topic == PACKED:
        assert len(segments) > 1
        assert {batch[9] for batch in found} == set(CODECS)


def test_the_disk_of_the_dead_broker_is_evidence_until_it_runs_again(
    after_incident: KafkaCluster, tmp_path: Path
) -> None:
    """3 alone led last; what 2 would lose is unknown before its disk is read."""
    console = CommandRunner(tmp_path, after_incident.bootstrap(), after_incident.metadata.wait_caught_up)
    (tmp_path / "broker-3.json").write_text(by_script(after_incident, 3))
    wanted = ("--topic", ORDERS, "--strategy", "aggressive")
    assert console("plan", *wanted, "without.json").status == 0
    told = console("plan", *wanted, "--evidence", "broker-3.json", "with.json")
    assert told.status == 0, told
    assert "1 log of broker 3 counts as answered" in told.out
    assert "evidence refused" not in told.out
    bounds = [
        next(c for c in row["candidates"] if c["broker"] == row["designatedLeader"])["loss"]["atMost"]
        for name in ("without.json", "with.json")
        for row in json.loads((tmp_path / name).read_text())["partitions"]
    ]
    assert bounds == [None, 500]
    incident_steps.start(after_incident, 3)
    after_incident.metadata.wait_leader(ORDERS, 0, 3)
    incident_steps.kill(after_incident, 3)
    _status, again = console.json("replicas", "--topic", ORDERS, "--evidence", "broker-3.json")
    (refusal,) = again["evidence"]["refused"]
    assert refusal["broker"] == 3
    assert re.search("registered again after its disk was read|the broker ran after", refusal["reason"])


def test_a_disk_that_lost_its_tail_in_a_power_loss_says_so(after_incident: KafkaCluster) -> None:
    before = scanned(after_incident, 3, PACKED)
    assert before.lost_tail is None
    directory = next(one for one in after_incident.node(3).log_dirs if (one / f"{PACKED}-0").is_dir())
    first = sorted((directory / f"{PACKED}-0").glob("*.log"))[0]
    with SegmentFile(first) as source:
        ends = [batch.header.next_offset for batch in SegmentReader(source)]
    cut_log(after_incident.node(3), PACKED, 0, ends[0])
    after = scanned(after_incident, 3, PACKED)
    assert after.log_end == ends[0]
    assert after.lost_tail is not None
