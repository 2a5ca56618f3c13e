"""``status`` and ``replicas`` with ``--metadata-dir`` and no cluster: what the disks tell of a cluster of which
nothing runs.

The stale long tail: 1 holds 0 to 1499 in epoch 0, 2 holds 1000 to 1299 in epoch 2, nobody led when the log ended.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from backends.from_disks import DisksBackend
from backends.metadata_log.copied_log import CopiedMetadataLog
from recovery.metadata_log.history import fold
from recovery.metadata_log.log_changes import MetadataLogRecord
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import (
    ConfigRecord,
    MetadataRecord,
    RemoveTopicRecord,
    ResourceType,
    TopicRecord,
)
from recovery.model import Unknown
from tests.command_server import Ended
from tests.unit.cli.command_process import invoke
from tests.unit.disk_scan.evidence_files import evidence_file, scanned_log

CLUSTER = "simulated.stale-long-tail.1"
LEADERLESS = "payments"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("home")
    invoke(found, "ktriage", "simulate", "run", "stale-long-tail", "--metadata-dir", str(found / "log"))
    return found


def from_disks(home: Path, name: str, *words: str) -> Ended:
    return invoke(home, "ktriage", name, "--metadata-dir", str(home / "log"), *words)


def test_the_head_says_that_nothing_was_asked_and_no_count_says_otherwise(home: Path) -> None:
    ended = from_disks(home, "status")
    assert ended.status == 1
    first, second, *_ = ended.out.splitlines()
    assert first.startswith("FROM DISKS, as of T+") and first.endswith(" offline if nothing runs")
    assert second.startswith("Read from disks: ")
    assert "none asked" in ended.out and "quorum: not asked: " in ended.out
    assert "down" not in first and "unreachable" not in ended.out and "fenced" not in ended.out
    assert "unknown:" not in ended.err


def test_the_controllers_and_the_scans_come_first_where_no_disk_was_read(home: Path) -> None:
    document = json.loads(from_disks(home, "status", "--output", "json").out)
    assert document["health"]["quorum"] == "not asked"
    assert document["cluster"]["readFromDisksMs"] > 0
    assert {step["kind"] for step in document["steps"]}
    assert "Do first: Start the controllers with their old disks" in from_disks(home, "status").out


def test_a_scanned_disk_is_the_answer_of_its_broker_and_the_next_command_has_it(home: Path) -> None:
    told = json.loads(from_disks(home, "replicas", "--topic", LEADERLESS, "--output", "json").out)
    log = scanned_log(LEADERLESS, told["partitions"][0]["topicId"], ((0, 0, 1500),), 3)
    file = evidence_file(home / "broker-1.json", 1, CLUSTER, log)
    ended = from_disks(home, "status", "--evidence", str(file))
    assert "1 log of broker 1 counts as answered" in ended.out
    assert f"next: ktriage replicas --all-offline-partitions --evidence {file} --metadata-dir" in ended.err
    told = json.loads(
        from_disks(home, "replicas", "--topic", LEADERLESS, "--evidence", str(file), "--output", "json").out
    )
    logs = {one["broker"]: one for one in told["partitions"][0]["logs"]}
    assert (logs[1]["logEndOffset"], logs[1]["standing"]) == (1500, "not asked")
    assert logs[2]["unknown"] == "not asked"


def test_another_clusters_disk_and_a_log_without_an_id_are_refused_in_one_line(
    home: Path, tmp_path: Path
) -> None:
    file = evidence_file(tmp_path / "other.json", 1, "other", scanned_log(LEADERLESS, "x", ((0, 0, 1),), 3))
    ended = from_disks(home, "status", "--evidence", str(file))
    assert ended.status == 2 and "is evidence of cluster other" in ended.err and not ended.out
    (home / "log" / "meta.properties").rename(home / "kept")
    try:
        ended = from_disks(home, "status")
    finally:
        (home / "kept").rename(home / "log" / "meta.properties")
    assert ended.status == 2 and "the cluster's id is not known: copy meta.properties to" in ended.err


def test_a_torn_metadata_log_is_read_as_far_as_it_is_whole_and_that_is_said(
    home: Path, tmp_path: Path
) -> None:
    log = shutil.copytree(home / "log", tmp_path / "log")
    (file,) = (log / "__cluster_metadata-0").glob("*.log")
    file.write_bytes(file.read_bytes()[:-10])
    ended = invoke(home, "ktriage", "status", "--metadata-dir", str(log))
    assert ended.out.startswith("FROM DISKS, as of ")
    assert "was read up to offset 30: " in ended.err and "is cut short" in ended.err


def test_what_needs_a_broker_asks_for_a_cluster(home: Path) -> None:
    ended = from_disks(home, "recover")
    assert ended.status == 2 and "no cluster is named" in ended.err


def test_plan_says_whom_to_start_as_status_does_and_names_no_command_that_cannot_succeed(
    tmp_path: Path,
) -> None:
    """Of partitions that were led to the end of the log all of ISR and ELR; Kafka elects none of them alone."""
    log, file = str(tmp_path / "log"), tmp_path / "plan.json"
    invoke(tmp_path, "ktriage", "simulate", "run", "zone-power-loss", "--metadata-dir", log)
    status = invoke(tmp_path, "ktriage", "status", "--metadata-dir", log).out
    ended = invoke(tmp_path, "ktriage", "plan", "--metadata-dir", log, str(file))
    steps = [line.partition(": ")[2] for line in status.splitlines() if line.startswith("Then: ")]
    assert steps[0] == "Start brokers 3 and 4, all with their old disks: 4 get a leader."
    assert [line.partition(": ")[2] for line in ended.out.splitlines() if ": Start " in line] == steps
    assert "nothing runs: start brokers 3 and 4, all of them (ISR or ELR)" in ended.out
    assert "bring back" not in ended.out and "next:" not in ended.err
    assert ended.err.splitlines()[-1].startswith("nothing runs: plan again when")
    assert ended.status == 1 and not file.exists()


def test_a_topic_that_was_made_again_has_no_configuration_of_the_one_before() -> None:
    """Kafka drops the configuration of a topic with the topic: no record says so."""
    ids = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
    values: tuple[MetadataRecord, ...] = (
        TopicRecord(LEADERLESS, ids[0]),
        ConfigRecord(ResourceType.TOPIC, LEADERLESS, "cleanup.policy", "compact"),
        RemoveTopicRecord(ids[0]),
        TopicRecord(LEADERLESS, ids[1]),
    )
    records = [MetadataLogRecord(at, 1, at, encode(value)) for at, value in enumerate(values)]
    for count, known in ((2, {"cleanup.policy": "compact"}), (4, None)):
        copy = CopiedMetadataLog(Path(), CLUSTER, fold(records[:count]), 1, 1, None)
        (config,) = asyncio.run(DisksBackend(copy).topic_configs([LEADERLESS])).values()
        assert config == known if known else isinstance(config, Unknown)
