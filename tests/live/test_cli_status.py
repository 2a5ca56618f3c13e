"""``ktriage status`` as a process, on a cluster that loses brokers and a log dir."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from testbed.kafka import ClusterSpec, KafkaCluster
from testbed.kafka.wait import wait_until

CLUSTER = ClusterSpec(controllers=3, log_dirs=2)
TOPIC = "orders"


def status(cluster: KafkaCluster, *words: str) -> subprocess.CompletedProcess[str]:
    start = "from console.cli.main import main; main()"
    argv = [sys.executable, "-c", start, "status", "--bootstrap-server", cluster.bootstrap(), *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def told(cluster: KafkaCluster) -> tuple[int, Any]:
    done = status(cluster, "--output", "json")
    return done.returncode, json.loads(done.stdout)


def test_from_a_healthy_cluster_to_one_with_a_partition_lost(whole_cluster: KafkaCluster) -> None:
    cluster = whole_cluster
    cluster.client.create_topic(TOPIC, [[1, 2, 3]], {"min.insync.replicas": "2"})
    cluster.client.produce(TOPIC, 0, 20)

    code, seen = told(cluster)
    assert (code, seen["notTold"]) == (0, [])
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
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("brokers 1, 2 down · 1 under min ISR · no partition offline\n")
    assert "2 fenced, 2 unreachable from here" in done.stdout
    assert "0 offline, 1 more under min ISR, 1 not fully replicated, 1 with ELR in use" in done.stdout

    cluster.node(1).start()
    cluster.metadata.wait_live([1])
    cluster.node(3).kill()
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
    assert "ktriage plan" in status(cluster).stderr


def test_a_broker_that_hangs_though_it_should_be_up_is_named(whole_cluster: KafkaCluster) -> None:
    whole_cluster.node(2).pause()
    done = status(whole_cluster, "--recovery-duration-ms", "1500")
    assert done.returncode == 1
    first = done.stdout.splitlines()[0]
    assert "broker 2 not reached" in first or "broker 2 down" in first, "down once it is fenced"
    # Once the controller has fenced it, its silence is a finding and no failure of the question.
    assert "unknown: broker 2 at" in done.stderr or "1 fenced" in done.stdout


def test_a_failed_log_dir_is_on_the_screen(whole_cluster: KafkaCluster) -> None:
    whole_cluster.node(3).remove_log_dir(1)
    whole_cluster.client.create_topic("later", [[3]] * 4)
    done = status(whole_cluster)
    assert "log dirs: 1 failed" in done.stdout
    assert "KAFKA_STORAGE_ERROR" in done.stdout


def test_a_quorum_out_of_reach_is_told_from_one_that_nobody_leads(whole_cluster: KafkaCluster) -> None:
    """Controllers that hang may be reached by others; those whose ports refuse do not run."""
    cluster = whole_cluster
    for controller in (100, 101, 102):
        cluster.node(controller).pause()
    done = status(cluster)
    assert done.returncode == 1
    assert done.stdout.startswith("quorum UNREACHABLE")
    assert "NO LEADER" not in done.stdout and "no partition offline" not in done.stdout
    for controller in (100, 101, 102):
        cluster.node(controller).resume()
    cluster.metadata.wait_caught_up()
    for controller in (101, 102):
        cluster.node(controller).kill()

    def without_leader() -> subprocess.CompletedProcess[str] | None:
        """The last leader resigns only when no majority has fetched from it for a while."""
        done = status(cluster)
        return done if "NO LEADER" in done.stdout else None

    done = wait_until(without_leader, "the controller that is left to resign", 60.0)
    assert done.returncode == 1
    assert done.stdout.startswith("quorum NO LEADER · controllers 101, 102 down"), done.stdout
    assert "no partition offline" not in done.stdout
    assert "No controller leads: nobody can be elected" in done.stdout
