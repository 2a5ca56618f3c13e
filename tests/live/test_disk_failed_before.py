"""A disk failed, its broker is down, and this host looks for the first time: nobody lists what was on that disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from recovery.model import NO_LEADER
from testbed.kafka import ClusterSpec, KafkaCluster
from testbed.kafka.incidents import failed_disk
from tests.live import incident_steps as steps
from tests.live.command_runner import CommandRunner

pytestmark = pytest.mark.long

CLUSTER = ClusterSpec(log_dirs=2)
"""Its own: a topic whose min.insync.replicas was changed while it had an ELR must not be deleted. 4.3.1 forgets no
such member: its broker's next unclean registration then fails, and the controller resigns at each attempt ("existed
in isrMembers, but not in the topics map").
"""
BROKER, PARTITIONS, RECORDS = 2, 6, 20
HEARD, UNHEARD = "heard", "unheard"
YES = ("--yes", "--reason", "the disk is dead")


@pytest.fixture
def looks(cluster: KafkaCluster, tmp_path: Path) -> CommandRunner:
    """Commands of a host that has never seen this cluster."""
    return CommandRunner(tmp_path, cluster.bootstrap(), cluster.metadata.wait_caught_up)


def swap(cluster: KafkaCluster) -> tuple[str, str]:
    return "--swap", f"{BROKER}:{cluster.node(BROKER).log_dirs[1]}"


def in_sync(cluster: KafkaCluster, topic: str, *brokers: int) -> None:
    cluster.metadata.wait_topic(
        topic, PARTITIONS, each=lambda state: set(state.isr) == set(brokers), what=f"in sync on {brokers}"
    )


def readable(cluster: KafkaCluster, topic: str) -> list[int]:
    return [len(cluster.client.consume(topic, number)) for number in range(PARTITIONS)]


def test_an_empty_disk_takes_nothing_away_where_the_swap_is_followed_as_it_is_printed(
    cluster: KafkaCluster, looks: CommandRunner
) -> None:
    """The broker and its disk died together: no controller heard of the disk, and its log has assignments only."""
    cluster.client.create_topic(UNHEARD, [[2, 1, 3]] * PARTITIONS, {"min.insync.replicas": "2"})
    cluster.client.produce_each(UNHEARD, range(PARTITIONS), RECORDS)
    in_sync(cluster, UNHEARD, 1, 2, 3)
    steps.kill(cluster, 1)
    steps.kill(cluster, 3)
    in_sync(cluster, UNHEARD, BROKER)
    steps.kill(cluster, BROKER)
    cluster.node(BROKER).remove_log_dir(1)
    steps.start(cluster, 1, 3)
    steps.wait_offline(cluster, [UNHEARD])

    status, swapped = looks.json("log-dirs", *swap(cluster))
    assert status == 1, "what cannot be listed is not known to be safe"
    every = set(range(PARTITIONS))
    assert {row["partition"] for row in swapped["recoverFirst"] if row["topic"] == UNHEARD} == every
    assert swapped["steps"][1].startswith("recover first"), swapped["steps"]
    plan = looks(
        "plan", "--topic", UNHEARD, "--accept-unchecked", "--reason", "its disk is dead", "plan.json"
    )
    assert plan.status == 0 and "6 to elect" in plan.out, plan
    applied = looks("apply", "plan.json", *YES)
    assert applied.status == 0, applied
    cluster.replace_log_dir(BROKER, 1)
    cluster.node(BROKER).start()
    waited = looks("log-dirs", *swap(cluster), "--wait")
    assert waited.status == 0, waited
    in_sync(cluster, UNHEARD, 1, 2, 3)
    assert readable(cluster, UNHEARD) == [RECORDS] * PARTITIONS


def test_what_was_on_a_failed_disk_is_not_promised_and_the_empty_log_on_a_new_one_is_no_answer(
    cluster: KafkaCluster, looks: CommandRunner, tmp_path: Path
) -> None:
    """The controllers heard that the disk failed, before its broker died. Broker 1 has the first half only."""
    node, kept = cluster.node(BROKER), tmp_path / "old-disk"
    cluster.bring_all_up()
    cluster.client.create_topic(HEARD, [[2, 1]] * PARTITIONS, {"min.insync.replicas": "1"})
    cluster.client.produce_each(HEARD, range(PARTITIONS), RECORDS)
    in_sync(cluster, HEARD, 1, 2)
    steps.kill(cluster, 1)
    in_sync(cluster, HEARD, BROKER)
    cluster.client.produce_each(HEARD, range(PARTITIONS), RECORDS)
    shutil.copytree(node.log_dirs[1], kept)
    names = failed_disk(cluster, BROKER)
    lost = {int(name.rpartition("-")[2]) for name in names if name.startswith(f"{HEARD}-")}
    whole = set(range(PARTITIONS)) - lost
    assert lost and whole
    for number in lost:
        cluster.metadata.wait_offline(HEARD, number)
    steps.kill(cluster, BROKER)
    steps.start(cluster, 1)
    steps.wait_offline(cluster, [HEARD])

    seen = looks("status")
    assert "The disk of broker 2 FAILED: choose a leader before it returns" in seen.out, seen
    assert f": {len(whole)} get a leader." in seen.out, seen
    planned = looks.json("plan", "--topic", HEARD, "first.json")[1]["notElected"]
    assert {row["partition"] for row in planned if "FAILED" in row["reason"]} == lost, planned
    assert {row["partition"] for row in planned if row["waitsFor"] == [BROKER]} == whole, planned
    status, swapped = looks.json("log-dirs", *swap(cluster))
    first = {row["partition"] for row in swapped["recoverFirst"] if row["topic"] == HEARD}
    assert status == 1 and lost <= first, swapped

    # Somebody changes min.insync.replicas: it empties the ELR, so that Kafka elects nobody by itself.
    steps.alter_topic(cluster, 1, HEARD, "min.insync.replicas", "2")
    steps.wait_all(cluster, [HEARD], lambda state: not (state.elr or state.last_known_elr), "without an ELR")
    cluster.replace_log_dir(BROKER, 1)
    steps.start(cluster, BROKER)
    seen = looks("status")
    assert "What would decide it: the disk of broker 2" in seen.out, seen
    balanced = looks.json("plan", "--topic", HEARD, "second.json")[1]
    refused = {row["partition"]: row["reason"] for row in balanced["notElected"]}
    assert set(refused) == lost, balanced["notElected"]
    for reason in refused.values():
        assert (
            "the disk of broker 2 was replaced, and the new one is EMPTY: keep and read the old one" in reason
        )
    applied = looks("apply", "second.json", *YES)
    assert applied.status == 0, applied
    led = {number: state.leader for number, state in cluster.metadata.partitions(HEARD).items()}
    assert led == dict.fromkeys(whole, BROKER) | dict.fromkeys(lost, NO_LEADER)

    # The old disk is put back.
    node.stop()
    shutil.rmtree(node.log_dirs[1])
    shutil.copytree(kept, node.log_dirs[1])
    steps.start(cluster, BROKER)
    last = looks("plan", "--topic", HEARD, "last.json")
    assert last.status == 0 and f"{len(lost)} to elect" in last.out, last
    applied = looks("apply", "last.json", *YES)
    assert applied.status == 0, applied
    assert readable(cluster, HEARD) == [2 * RECORDS] * PARTITIONS
