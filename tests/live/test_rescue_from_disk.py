"""What only a dead broker's disk holds is read from that disk and written back, on a real cluster.

Broker 1 has the stale long tail of every topic, and is dead. Broker 2 is elected.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from testbed.kafka import KafkaCluster
from tests.live import incident_steps, rescue_incident
from tests.live.command_runner import CommandRunner
from tests.live.rescue_incident import COPIED, COUNTS, EARLY, LATE
from tests.live.rescued_records import expected, values

pytestmark = pytest.mark.long

CLUSTER = rescue_incident.CLUSTER
AGREED = ("--yes", "--reason", "a test")


@pytest.fixture(scope="module")
def incident(cluster: KafkaCluster) -> KafkaCluster:
    rescue_incident.played(cluster)
    incident_steps.kill(cluster, 1)
    return cluster


@pytest.fixture
def console(incident: KafkaCluster, tmp_path: Path) -> CommandRunner:
    return CommandRunner(tmp_path, incident.bootstrap(), incident.metadata.wait_caught_up)


def disk(cluster: KafkaCluster, broker: int) -> list[str]:
    return [word for path in cluster.node(broker).log_dirs for word in ("--from-disk", str(path))]


def plan(console: CommandRunner, topic: str, *options: str) -> None:
    ended = console("plan", "--topic", topic, "--strategy", "aggressive", *options, "plan.json")
    assert ended.status == 0, ended


def elect(console: CommandRunner) -> None:
    ended = console("apply", "plan.json", *AGREED)
    assert ended.status == 0, ended


def accept_one_replica(cluster: KafkaCluster, topic: str) -> None:
    """min.insync.replicas=1: of three replicas one is alive.

    By a client of its own: one that was connected to the dead brokers may not find the controller in time.
    """
    entry = ConfigEntry("min.insync.replicas", "1", incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient(dict(cluster.superuser_config()))
    for done in admin.incremental_alter_configs([change]).values():
        done.result(15)


def restored(console: CommandRunner, cluster: KafkaCluster, topic: str) -> Counter[str]:
    """What a consumer reads after the rescue was written back to its source."""
    accept_one_replica(cluster, topic)
    verified = console("rescue", "verify", "saved")
    assert verified.status == 0, verified
    ended = console("restore", "saved", "--to-source", *AGREED)
    assert ended.status == 0 and "500 records written back; 500 counted" in ended.out, ended
    return values(cluster, topic)


def test_a_dead_brokers_disk_is_read_before_the_election(
    console: CommandRunner, incident: KafkaCluster
) -> None:
    plan(console, EARLY)
    words = ("rescue", "read", "plan.json", "--to", "saved")
    status, told = console.json(*words, *disk(incident, 1), *disk(incident, 3))
    assert status == 0, told
    (branch,) = told["branches"]
    assert (branch["broker"], branch["startOffset"], branch["endOffset"]) == (1, 1000, 1500)
    assert branch["logDir"] in map(str, incident.node(1).log_dirs)
    assert told["unread"] == [], "the disk of 3 has nothing that 2 has not"
    elect(console)
    refused = console("restore", "saved", "--to-source", *AGREED)
    assert refused.status == 1 and "min.insync.replicas is 2, and 1 of 3 replicas is in sync" in refused.err
    assert "brokers 1 and 3 not: bring back who is missing, or set min.insync.replicas" in refused.err
    assert restored(console, incident, EARLY) == expected(COUNTS[EARLY])


def test_a_disk_that_turns_up_after_the_election_is_compared_with_the_leader(
    console: CommandRunner, incident: KafkaCluster
) -> None:
    plan(console, LATE)
    elect(console)
    words = ("rescue", "read", "--to", "saved", "--topic", LATE)
    ended = console(*words, *disk(incident, 1), *disk(incident, 3))
    assert ended.status == 0 and "1 of 1 branch read as a whole" in ended.out, ended
    assert restored(console, incident, LATE) == expected(COUNTS[LATE])


def test_a_plan_with_the_disk_as_evidence_is_applied_while_the_disk_keeps_its_records(
    console: CommandRunner, incident: KafkaCluster
) -> None:
    """And a copy of that disk is read after its broker came back and cut its log off."""
    dirs = [console.home / path.name for path in incident.node(1).log_dirs]
    for path, copy in zip(incident.node(1).log_dirs, dirs, strict=True):
        shutil.copytree(path, copy)
    scanned = console.without_cluster("disk", "scan", "--output", "json", *map(str, dirs))
    (console.home / "broker-1.json").write_text(scanned.out)
    plan(console, COPIED, "--evidence", "broker-1.json")
    ended = console("apply", "plan.json", "--rescue", "before", *AGREED)
    assert ended.status == 0, ended
    incident_steps.start(incident, 1)
    incident.metadata.wait_isr(COPIED, 0, (1, 2))
    from_copy = [word for path in dirs for word in ("--from-disk", str(path))]
    ended = console("rescue", "read", "--to", "saved", "--topic", COPIED, *from_copy)
    assert ended.status == 0, ended
    assert restored(console, incident, COPIED) == expected(COUNTS[COPIED])


def test_the_disk_of_another_cluster_is_refused(
    console: CommandRunner, incident: KafkaCluster, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(incident.node(1).log_dirs[0], other)
    properties = other / "meta.properties"
    properties.write_text(properties.read_text().replace(incident.cluster_id, "another-cluster-id"))
    ended = console("rescue", "read", "--to", "saved", "--from-disk", str(other))
    assert ended.status == 2 and "is evidence of cluster another-cluster-id" in ended.err
    assert not (tmp_path / "saved").exists()
