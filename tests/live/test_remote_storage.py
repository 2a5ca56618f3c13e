"""What remote storage holds after an election that cut off an uploaded tail: both branches, until retention deletes
them, and the old one can be read and written back.

The dead leader had uploaded the records that it took alone. Kafka leaves these segments where they are, refers to
them no more, and uploads the new leader's segments of the same offsets beside them.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from testbed.kafka import KafkaCluster, wait_until
from testbed.kafka.jars import fetch_tiered_storage
from tests.live import incident_steps, test_kept_log_of_tiered_topic
from tests.live.command_runner import CommandRunner
from tests.live.rescued_records import values

pytestmark = pytest.mark.long

ONE_MORE = {
    **test_kept_log_of_tiered_topic.CLUSTER.broker_config,
    "rlmm.config.remote.log.metadata.topic.replication.factor": "4",
}
CLUSTER = replace(test_kept_log_of_tiered_topic.CLUSTER, brokers=4, broker_config=ONE_MORE)
"""Broker 4 has no replica of the topic; with it the topic of the remote log metadata is at min ISR without 1 and 2:
else the leader that is left alone uploads nothing.
"""
TOPIC = "tiered"
COMMON, UPLOADED = 500, 300
EARLIEST_MS = 1_790_000_000_000
AGREED = ("--yes", "--reason", "a test")


@pytest.fixture(scope="module", autouse=True)
def storage_jars() -> None:
    fetch_tiered_storage()


def uploaded(cluster: KafkaCluster) -> dict[int, list[Path]]:
    """The segments of the topic in the remote storage, by their first offset."""
    segments: dict[int, list[Path]] = {}
    for path in sorted(cluster.directory.glob(f"**/kafka-tiered-storage/{TOPIC}-0-*/*.log")):
        segments.setdefault(int(path.name[:20]), []).append(path)
    return segments


def write_segments(cluster: KafkaCluster, prefix: str, first: int, count: int) -> None:
    """``count`` times 100 records; each hundred is a second younger than the one before, and so begins a segment
    of its own (``segment.ms``), and all but the newest are uploaded.
    """
    producer = Producer(cluster.superuser_config() | {"acks": "all"})
    for number in range(first, first + count):
        for record in range(100):
            value = f"{prefix}-{number}-{record}"
            producer.produce(TOPIC, value, partition=0, timestamp=EARLIEST_MS + number * 1000)
        assert producer.flush(60) == 0


def wait_uploaded(cluster: KafkaCluster, at: int, branches: int = 1) -> None:
    wait_until(lambda: len(uploaded(cluster).get(at, ())) >= branches, f"{branches} segments at {at}", 90.0)


@pytest.fixture(scope="module")
def incident(cluster: KafkaCluster) -> KafkaCluster:
    """3 led alone, uploaded ``UPLOADED`` records of that time, and is dead; 1 and 2 do not have them."""
    config = {
        "min.insync.replicas": "1",
        "remote.storage.enable": "true",
        "segment.ms": "200",
        "local.retention.ms": "-2",
        "retention.ms": "-1",
    }
    cluster.client.create_topic(TOPIC, [[3, 1, 2]], config)
    write_segments(cluster, "common", 0, COMMON // 100)
    wait_uploaded(cluster, COMMON - 200)
    incident_steps.wait_all(cluster, [TOPIC], lambda state: len(state.isr) == 3, "with all in the ISR")
    incident_steps.kill(cluster, 1, 2)
    incident_steps.wait_all(cluster, [TOPIC], lambda state: state.isr == (3,), "with 3 alone in the ISR")
    write_segments(cluster, "alone", COMMON // 100, UPLOADED // 100 + 1)  # the newest is not uploaded
    wait_uploaded(cluster, COMMON + UPLOADED - 100)
    incident_steps.kill(cluster, 3)
    incident_steps.start(cluster, 1, 2)
    incident_steps.wait_offline(cluster, [TOPIC])
    return cluster


def laid_out(cluster: KafkaCluster, segments: list[Path], to: Path) -> Path:
    """The segments as the log dir of a broker that nobody has, by the steps of docs/tiered-storage.md."""
    folder = to / f"{TOPIC}-0"
    folder.mkdir(parents=True)
    for path in segments:
        shutil.copy(path, folder / f"{path.name[:20]}.log")
    topic_id = segments[0].parent.name.removeprefix(f"{TOPIC}-0-")
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    (to / "meta.properties").write_text(f"version=1\ncluster.id={cluster.cluster_id}\nnode.id=9999\n")
    return to


def test_both_branches_lie_in_the_remote_storage_and_the_old_one_is_written_back(
    incident: KafkaCluster, tmp_path: Path
) -> None:
    cluster = incident
    old = [paths[0] for at, paths in uploaded(cluster).items() if at >= COMMON]
    assert len(old) == UPLOADED // 100
    console = CommandRunner(tmp_path, cluster.bootstrap(), cluster.metadata.wait_caught_up)
    planned = console("plan", "--topic", TOPIC, "--strategy", "aggressive", "plan.json")
    assert planned.status == 0, planned
    status, applied = console.json("apply", "plan.json", *AGREED)
    assert status in (0, 1) and applied["elected"]["outcomes"] == {"elected": 1}, applied
    write_segments(cluster, "after", COMMON // 100, 3)
    wait_uploaded(cluster, COMMON + 100, branches=2)
    assert all(path.exists() for path in old), "Kafka deleted what it no longer refers to"
    before = values(cluster, TOPIC)
    assert not [value for value in before if value.startswith("alone")]

    log_dir = laid_out(cluster, old, tmp_path / "from-remote")
    words = ("rescue", "read", "--to", "saved", "--topic", TOPIC, "--from-disk", str(log_dir))
    status, read = console.json(*words)
    (branch,) = read["branches"]
    assert (branch["startOffset"], branch["endOffset"]) == (COMMON, COMMON + UPLOADED), read
    unread = console("status")
    assert f"{TOPIC}-0" in unread.out and "read the disk of broker 3" in unread.out.lower(), unread.out
    restored = console("restore", "saved", "--to-source", *AGREED)
    assert restored.status == 0, restored
    alone = Counter({value: 1 for value in values(cluster, TOPIC) if value.startswith("alone")})
    assert sum(alone.values()) == UPLOADED
