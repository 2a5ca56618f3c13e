"""``ktriage status`` as a process, on a cluster that loses brokers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from testbed.kafka import KafkaCluster
from tests.command_server import Ended
from tests.live import broker_fleet
from tests.live.started_cluster import emptied
from tests.unit.cli.command_process import invoke

CLUSTER = broker_fleet.CLUSTER
TOPIC = "orders"


@pytest.fixture(scope="module", autouse=True)
def nothing_else(cluster: KafkaCluster) -> None:
    emptied(cluster)


def status(cluster: KafkaCluster, *words: str) -> Ended:
    return invoke(cluster.directory, "ktriage", "status", "--bootstrap-server", cluster.bootstrap(), *words)


def told(cluster: KafkaCluster) -> tuple[int, Any]:
    done = status(cluster, "--output", "json")
    return done.status, json.loads(done.out)


def test_from_a_healthy_cluster_to_one_with_a_partition_lost(whole_cluster: KafkaCluster) -> None:
    cluster = whole_cluster
    cluster.client.create_topic(TOPIC, [[1, 2, 3]], {"min.insync.replicas": "2"})
    cluster.client.produce(TOPIC, 0, 20)

    code, seen = told(cluster)
    assert (code, seen["unknown"]) == (0, [])
    assert seen["counts"]["offline"] == seen["counts"]["unreachable"] == 0
    row = seen["partitions"][0]
    assert [(log["lastEpoch"], log["logEndOffset"]) for log in row["logs"]] == [(0, 20)] * 3
    assert {(found["broker"], found["error"]) for found in seen["logDirs"]} == {
        (1, None),
        (2, None),
        (3, None),
    }
    assert {voter["id"] for voter in seen["quorum"]["voters"]} == {100, 101, 102}

    for broker in (1, 2):
        cluster.node(broker).kill()
        cluster.metadata.wait_fenced(broker)
    done = status(cluster)
    assert done.status == 1, done.err
    assert done.out.startswith("brokers 1, 2 down · 1 under min ISR · no partition offline\n")
    assert "2 fenced, 2 unreachable from here" in done.out
    assert "0 offline, 1 more under min ISR, 1 not fully replicated, 1 with ELR in use" in done.out

    # Before 1 is back: it would return into the ISR of 3.
    cluster.node(3).kill()
    cluster.node(1).start()
    cluster.metadata.wait_live([1])
    cluster.metadata.wait_fenced(3)
    code, seen = told(cluster)
    assert code == 1
    assert seen["counts"]["offline"] == 1
    row = seen["partitions"][0]
    assert (row["leader"], row["elr"]) == (-1, [2, 3])
    assert [log.get("logEndOffset", log.get("unknown")) for log in row["logs"]] == [
        20,
        "not answered",
        "not answered",
    ]
    assert "ktriage plan" in status(cluster).err


def test_a_broker_that_only_we_do_not_reach_is_neither_waited_for_nor_called_down(
    whole_cluster: KafkaCluster,
) -> None:
    """Nothing listens where this side of a tunnel looks for it; a limit of an hour would be a test that fails."""
    whole_cluster.client.create_topic("reached", [[3, 1], [1, 3]])
    done = status(whole_cluster, "--broker", "3=127.0.0.1:1", "--recovery-duration-ms", "3600000")
    assert done.status == 1
    assert "broker 3 not reached from here; the controller says that it is up" in done.out.splitlines()[0]
    assert "gone-for-good" not in done.out + done.err
    assert "broker 3 at 127.0.0.1:1: connection refused" in done.err
    elsewhere = f"3=127.0.0.1:{whole_cluster.node(2).port}"
    done = status(
        whole_cluster, "--broker", elsewhere, "--recovery-duration-ms", "3600000", "--output", "json"
    )
    health = json.loads(done.out)["health"]
    assert (health["brokersDown"], health["brokersUnreached"]) == ([], [3])


def test_a_broker_that_hangs_though_it_should_be_up_is_named(whole_cluster: KafkaCluster) -> None:
    whole_cluster.node(2).pause()
    done = status(whole_cluster, "--recovery-duration-ms", "1500")
    assert done.status == 1
    first = done.out.splitlines()[0]
    assert "broker 2 not reached" in first or "broker 2 down" in first, "down once it is fenced"
    # Once the controller has fenced it, its silence is a finding and no failure of the question.
    assert "unknown: broker 2 at" in done.err or "1 fenced" in done.out


def test_what_watch_writes_of_a_cluster_is_read_by_prometheus_own_parser(
    whole_cluster: KafkaCluster, tmp_path: Path
) -> None:
    """It ends at once, because the broker that it waits for is there."""
    whole_cluster.client.create_topic("measured", [[3, 1], [1, 3]])
    file = tmp_path / "kafka.prom"
    words = ("--broker-id", "1", "--interval-ms", "200", "--metrics-file", str(file))
    cluster = ("--bootstrap-server", whole_cluster.bootstrap())
    done = invoke(whole_cluster.directory, "ktriage", "watch", *cluster, *words)
    assert done.status == 0, done.err
    families = {one.name: one for one in text_string_to_metric_families(file.read_text())}
    values = {name: [sample.value for sample in family.samples] for name, family in families.items()}
    assert values["ktriage_up"] == values["ktriage_current"] == [1]
    assert values["ktriage_brokers"] == values["ktriage_quorum_voters"] == [3]
    assert values["ktriage_partitions"][0] >= 2 and values["ktriage_partitions_offline"] == [0]
    assert values["ktriage_quorum_leader"][0] in {100, 101, 102}
    assert values["ktriage_log_dirs_failed"] == [0, 0, 0]
    labels = families["ktriage_up"].samples[0].labels
    assert labels == {"cluster": whole_cluster.bootstrap(), "cluster_id": whole_cluster.cluster_id}
