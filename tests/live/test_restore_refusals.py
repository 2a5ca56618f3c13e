"""What a topic refuses of rescued records is said before they are sent, and a topic that is made takes them.

Each topic took its records by another setting than it has now: timestamps in microseconds, records of 2 MB, records
without a key, records that were small as long as they were compressed. They stand on the disk of broker 2 alone,
which is down while it is read.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from testbed.kafka import KafkaCluster
from tests.live import incident_steps
from tests.live.command_runner import CommandRunner
from tests.live.started_cluster import TWO_DISKS, emptied

pytestmark = pytest.mark.long

CLUSTER = TWO_DISKS
MICROS, LARGE, KEYLESS, PACKED = "micros", "large", "keyless", "packed"
COUNTS = {MICROS: 50, LARGE: 3, KEYLESS: 20, PACKED: 3}
AGREED = ("--yes", "--reason", "a test")
REFUSED = {
    MICROS: (
        "50 records or more will be refused: further in the future than message.timestamp.after.max.ms of micros"
    ),
    LARGE: "3 records or more will be refused: larger than max.message.bytes",
    KEYLESS: "20 records or more will be refused: without a key, which cleanup.policy=compact of keyless",
    PACKED: "3 records or more will be refused: larger than max.message.bytes",
}
ANSWERS = {
    MICROS: "INVALID_TIMESTAMP",
    LARGE: "MESSAGE_TOO_LARGE",
    KEYLESS: "INVALID_RECORD",
    PACKED: "MESSAGE_TOO_LARGE",
}


@pytest.fixture(scope="module")
def rescued(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> CommandRunner:
    """The settings are today's again, and ``saved`` in its home holds what only broker 2 had."""
    emptied(cluster)
    settings = {
        MICROS: {"message.timestamp.after.max.ms": str(2**63 - 1)},
        LARGE: {"max.message.bytes": "5000000"},
        KEYLESS: {},
        PACKED: {},
    }
    for topic, config in settings.items():
        cluster.client.create_topic(topic, [[1, 2]], {"min.insync.replicas": "1", **config})
    producer = Producer(cluster.superuser_config() | {"message.max.bytes": 5_000_000, "acks": "all"})
    now = int(time.time() * 1000)
    for number in range(COUNTS[MICROS]):
        producer.produce(MICROS, f"m{number}", key="k", partition=0, timestamp=now * 1000 + number)
    for _ in range(COUNTS[LARGE]):
        producer.produce(LARGE, b"x" * 2_000_000, key="k", partition=0)
    for number in range(COUNTS[KEYLESS]):
        producer.produce(KEYLESS, f"n{number}", partition=0)
    packing = Producer(
        cluster.superuser_config()
        | {"message.max.bytes": 5_000_000, "acks": "all", "compression.type": "gzip"}
    )
    for number in range(COUNTS[PACKED]):
        packing.produce(PACKED, b"y" * 2_000_000, key=f"p{number}", partition=0)
    assert producer.flush(30) == 0 and packing.flush(30) == 0
    for topic in COUNTS:
        cluster.metadata.wait_isr(topic, 0, (1, 2))
    incident_steps.kill(cluster, 2)
    for topic, count in COUNTS.items():
        incident_steps.wait_all(cluster, [topic], lambda state: state.isr == (1,), "led by 1 alone")
        incident_steps.delete_records(cluster, topic, count)
    changes = [
        altered(MICROS, "message.timestamp.after.max.ms"),
        altered(LARGE, "max.message.bytes"),
        altered(KEYLESS, "cleanup.policy", "compact"),
        altered(PACKED, "compression.type", "uncompressed"),
    ]
    for done in cluster.admin.incremental_alter_configs(changes).values():
        done.result(60)
    cluster.metadata.wait_caught_up()
    console = CommandRunner(
        tmp_path_factory.mktemp("home"), cluster.bootstrap(), cluster.metadata.wait_caught_up
    )
    disks = [word for path in cluster.node(2).log_dirs for word in ("--from-disk", str(path))]
    topics = [word for topic in COUNTS for word in ("--topic", topic)]
    ended = console("rescue", "read", "--to", "saved", *disks, *topics)
    assert ended.status == 0, ended
    cluster.bring_all_up()
    return console


def altered(topic: str, name: str, value: str | None = None) -> ConfigResource:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(name, value, incremental_operation=operation)
    return ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])


def next_command(err: str) -> list[str]:
    (line,) = (line for line in err.splitlines() if line.startswith("next: ktriage restore"))
    return line.removeprefix("next: ktriage restore ").split(" --bootstrap-server")[0].split()


@pytest.mark.parametrize("topic", [MICROS, LARGE, PACKED])
def test_what_the_topic_refuses_is_said_before_and_the_next_command_writes_it(
    rescued: CommandRunner, cluster: KafkaCluster, topic: str
) -> None:
    source = ("restore", "saved", "--to-source", "--topic", topic)
    dry = rescued(*source, "--dry-run")
    assert REFUSED[topic] in dry.out + dry.err, dry
    written = rescued(*source, *AGREED)
    assert written.status == 1 and ANSWERS[topic] in written.err, written
    assert next_command(dry.err) == next_command(written.err)
    again = rescued("restore", *next_command(written.err), *AGREED)
    assert again.status == 0 and "next:" not in again.err, again
    cluster.metadata.wait_caught_up()
    assert len(cluster.client.consume(f"{topic}-rescued", 0)) == COUNTS[topic]


def test_a_compacted_topic_takes_no_record_without_a_key(
    rescued: CommandRunner, cluster: KafkaCluster, tmp_path: Path
) -> None:
    source = ("restore", "saved", "--to-source", "--topic", KEYLESS, "--only-keys-missing")
    dry = rescued(*source, "--dry-run")
    assert REFUSED[KEYLESS] in dry.out + dry.err, dry
    written = rescued(*source, *AGREED)
    assert written.status == 1 and ANSWERS[KEYLESS] in written.err, written
    status, told = rescued.json("restore", *next_command(written.err), *AGREED)
    assert status == 0, json.dumps(told)
    assert len(cluster.client.consume(f"{KEYLESS}-rescued", 0)) == COUNTS[KEYLESS]


def test_a_leader_without_enough_replicas_in_sync_is_said_before_and_after(
    rescued: CommandRunner, cluster: KafkaCluster
) -> None:
    """Only the return of a broker helps, so no command is printed as the next one."""
    changes = [altered(LARGE, "min.insync.replicas", "2"), altered(LARGE, "max.message.bytes", "5000000")]
    for change in changes:
        for done in cluster.admin.incremental_alter_configs([change]).values():
            done.result(60)
    cluster.metadata.wait_caught_up()
    incident_steps.kill(cluster, 2)
    source = ("restore", "saved", "--to-source", "--topic", LARGE)
    why = "min.insync.replicas is 2, and 1 of 2 replicas is in sync, broker 2 not: bring back who is missing"
    dry = rescued(*source, "--dry-run")
    assert f"{LARGE}-0 takes no record now: {why}" in dry.out + dry.err and "next:" not in dry.err, dry
    refused = rescued(*source, *AGREED)
    assert refused.status == 1 and why in refused.err and "next:" not in refused.err, refused
    cluster.bring_all_up()
    cluster.metadata.wait_isr(LARGE, 0, (1, 2))
    written = rescued(*source, *AGREED)
    assert written.status == 0, written
