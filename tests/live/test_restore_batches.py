"""Rescued batches of all kinds, written back to real brokers of two versions and read by a consumer."""

from __future__ import annotations

from pathlib import Path
from struct import pack_into

import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from confluent_kafka import Producer

from backends.log_segments.batch_header import HEADER_SIZE, parse_header
from console.provenance import now
from console.rescue_files.manifest import RescueHeader
from console.rescue_files.rescue_directory import RescueDirectory
from recovery import model
from recovery.model import EpochSpan
from recovery.rescue_branches import BranchPart, RescueBranch
from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live.command_runner import CommandRunner
from tests.live.rescued_records import consumed
from tests.unit.rescue.batches import batch
from tests.unit.rescue.test_restore import marker, rewritten

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
LEFT = (0, 4, 9)
"""What compaction left of ten records."""
ALL_REPLICAS = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
AGREED = ("--yes", "--reason", "a test")


pytestmark = [
    pytest.mark.long,
    pytest.mark.parametrize(
        "cluster",
        [
            ClusterSpec(version=version, controllers=1, brokers=1, elr=False, broker_config=ALL_REPLICAS)
            for version in ("4.3.1", "3.9.1")
        ],
        ids=("4.3.1", "3.9.1"),
        indirect=True,
        scope="module",
    ),
]


@pytest.fixture
def console(cluster: KafkaCluster, tmp_path: Path) -> CommandRunner:
    return CommandRunner(tmp_path, cluster.bootstrap(), cluster.metadata.wait_caught_up)


def thinned(codec: str) -> bytes:
    """A batch as the cleaner leaves it: three records of ten, compressed."""
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 16)
    for delta in LEFT:
        value = b"%s-%d" % (codec.encode(), delta)
        assert builder.append(delta, 1_700_000_000_000 + delta, b"k%d" % delta, value, [("h", b"1")])
    plain = bytes(builder.build())
    data = bytearray(plain[:HEADER_SIZE] + pa.compress(plain[HEADER_SIZE:], codec=codec, asbytes=True))
    pack_into(">i", data, 8, len(data) - 12)
    pack_into(">i", data, 12, 0)
    found = rewritten(bytes(data), CODECS[codec])
    assert parse_header(found).record_count == len(LEFT) and parse_header(found).last_offset_delta == LEFT[-1]
    return found


def rescue(
    directory: Path,
    cluster_id: str,
    *branches: tuple[bytes, ...],
    topic: str = "source",
    topic_id: str = NO_ID,
) -> None:
    """A rescue of the topic: one branch for each partition."""
    found = []
    for number, batches in enumerate(branches):
        span = EpochSpan(0, parse_header(batches[0]).base_offset, parse_header(batches[-1]).next_offset)
        tp = model.TopicPartition(topic, number)
        found.append(RescueBranch(tp, topic_id, 2, 1, BranchPart.TAIL, (span,)))
    header = RescueHeader(cluster_id, "plan", "digest", "now", "test", "1")
    saved = RescueDirectory(directory, header, found, (), now)
    for branch, batches in zip(found, branches, strict=True):
        writer = saved.writer(branch)
        writer.take(b"".join(batches))
        saved.whole(writer)
    saved.close()


def test_thinned_and_transactional_batches_come_back(
    cluster: KafkaCluster, console: CommandRunner, tmp_path: Path
) -> None:
    transactions = (
        batch(0, 5, 0),
        batch(5, 5, 0, producer=1, transactional=True),
        batch(10, 5, 0, producer=2, transactional=True),
        marker(15, 1, commit=True),
        batch(16, 4, 0, producer=1, transactional=True),
        marker(20, 2, commit=False),
    )
    rescue(tmp_path / "saved", cluster.cluster_id, *((thinned(codec),) for codec in CODECS), transactions)
    words = ("restore", "saved", "--to-topic", "kept", *AGREED)
    ended = console(*words)
    assert ended.status == 0 and "22 records written back; 22 counted" in ended.out, ended
    for number, codec in enumerate(CODECS):
        expected = [(f"k{n}", f"{codec}-{n}", 1_700_000_000_000 + n, ["h=1"]) for n in LEFT]
        assert consumed(cluster, "kept", number) == expected
    offsets = [value.split()[0] for _, value, _, _ in consumed(cluster, "kept", len(CODECS))]
    assert offsets == [str(offset) for offset in range(10)]
    again = console(*words)
    assert again.status == 0 and "nothing was sent" in again.out
    ended = console(*words, "--transactions", "open")
    assert ended.status == 0 and "4 records written back; 4 counted" in ended.out, ended
    offsets = [value.split()[0] for _, value, _, _ in consumed(cluster, "kept", len(CODECS))]
    assert offsets[10:] == ["16", "17", "18", "19"]


def test_marked_and_chosen_records_fit_a_topic_of_small_batches(
    cluster: KafkaCluster, console: CommandRunner, tmp_path: Path
) -> None:
    cluster.client.create_topic("small", [[1]], {"max.message.bytes": "1000"})
    rescue(tmp_path / "saved", cluster.cluster_id, (batch(100, 50, 0, size=100), batch(150, 10, 0, size=100)))
    ended = console("restore", "saved", "--to-topic", "small", *AGREED)
    assert ended.status == 0 and "60 records written back; 60 counted" in ended.out, ended
    assert [key for key, _, _, _ in consumed(cluster, "small")] == [f"k{n}" for n in range(100, 160)]
    chosen = ("--after-offset", "110", "--key", "k1.5", "--mark")
    ended = console("restore", "saved", "--to-topic", "chosen", *chosen, *AGREED)
    assert ended.status == 0, ended
    assert [(key, headers) for key, _, _, headers in consumed(cluster, "chosen")] == [
        (f"k{n}", [f"ktriage-rescued-from=source-0 offset {n} epoch 0 broker 1"])
        for n in (115, 125, 135, 145, 155)
    ]


def test_a_compacted_topic_gets_only_the_keys_that_have_no_newer_record(
    cluster: KafkaCluster, console: CommandRunner, tmp_path: Path
) -> None:
    """The logs part at offset 2. Since then k2 and k3 were written, k4 was deleted, and k5 was only aborted."""
    cluster.client.create_topic("customers", [[1]], {"cleanup.policy": "compact"})
    producer = Producer(cluster.superuser_config() | {"transactional.id": "t"})
    producer.init_transactions(30)
    for number, (key, value) in enumerate(
        [("k0", "old"), ("k1", "old"), ("k2", "new"), ("k3", "new"), ("k4", None), ("k5", "aborted")]
    ):
        producer.begin_transaction()
        producer.produce("customers", value, key)
        (producer.abort_transaction if number == 5 else producer.commit_transaction)(30)
    about = (cluster.node(1).log_dirs[0] / "customers-0" / "partition.metadata").read_text()
    topic_id = about.partition("topic_id: ")[2].strip()
    rescued = (batch(2, 4, 0),)  # k2 to k5
    rescue(tmp_path / "saved", cluster.cluster_id, rescued, topic="customers", topic_id=topic_id)
    words = ("restore", "saved", "--to-source", *AGREED)
    refused = console(*words)
    assert refused.status == 2 and "give --only-keys-missing" in refused.err
    ended = console(*words, "--only-keys-missing")
    assert ended.status == 0 and "1 record written back; 1 counted" in ended.out, ended
    newest = {key: value for key, value, _, _ in consumed(cluster, "customers")}
    assert newest == {"k0": "old", "k1": "old", "k2": "new", "k3": "new", "k4": "", "k5": "5 of 0 ..."}
    again = console(*words, "--only-keys-missing")
    assert again.status == 0 and "nothing was sent" in again.out


def test_what_a_topic_would_refuse_or_not_keep_is_said_before(
    cluster: KafkaCluster, console: CommandRunner, tmp_path: Path
) -> None:
    """The records are of 2023."""
    rescue(tmp_path / "saved", cluster.cluster_id, (batch(0, 7, 0),))
    day = str(24 * 3600 * 1000)
    cluster.client.create_topic("short", [[1]], {"retention.ms": day})
    cluster.client.create_topic("strict", [[1]], {"message.timestamp.before.max.ms": day})
    dry = console("restore", "saved", "--to-topic", "short", "--dry-run")
    assert (
        dry.status == 0 and "7 records may soon be deleted again: older than short's retention.ms" in dry.out
    )
    refused = console("restore", "saved", "--to-topic", "strict", *AGREED)
    assert refused.status == 1 and "7 records or more will be refused" in refused.out, refused
    assert "INVALID_TIMESTAMP" in refused.err
    # The broker says of a record which one it is and why.
    assert "record 0 of the batch, and 6 more records: Timestamp" in refused.err, refused.err
