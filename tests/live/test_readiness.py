"""``ktriage readiness`` on real Kafka: weaknesses put into a good cluster are named, none is made up, and the
commands that are printed mend them.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from tests.live.started_cluster import emptied
from tests.unit.cli.command_process import invoke

pytestmark = pytest.mark.long

HOUR = {"metadata.max.retention.ms": "3600000"}
CLUSTER = ClusterSpec(
    controllers=3,
    brokers=4,
    racks={1: "a", 2: "b", 3: "c", 4: "c"},
    node_config={102: HOUR},
)
OF_THIS_HOST = {"disks", "rescue space"}
"""What the machine of the tests decides: how full its disk is."""
KEPT_SHORT = {"metadata log": "serious"}
"""So from the start: controller 102 keeps the metadata log for an hour."""


def looked_at(cluster: KafkaCluster, *words: str) -> dict[str, Any]:
    shared = cluster.directory / "shared"
    shared.mkdir(mode=0o700, exist_ok=True)
    at = ("--bootstrap-server", cluster.bootstrap(), "--state-dir", str(shared))
    done = invoke(cluster.directory, "ktriage", "readiness", *at, "--output", "json", *words)
    assert done.out, done.err
    document: dict[str, Any] = json.loads(done.out)
    assert document["schema"] == "ktriage.readiness/1", document
    return document


def weak(document: dict[str, Any]) -> dict[str, str]:
    """The weight of the gravest weakness of each check that shows any; the gravest stand first."""
    gravest: dict[str, str] = {}
    for one in document["weaknesses"]:
        if one["check"] not in OF_THIS_HOST:
            gravest.setdefault(one["check"], one["weight"])
    return gravest


def evidence(document: dict[str, Any], check: str) -> str:
    return " ".join(one["evidence"] for one in document["weaknesses"] if one["check"] == check)


def mended(cluster: KafkaCluster, document: dict[str, Any], check: str) -> None:
    """Runs what is printed for it, with Kafka's own tools; which name the cluster's brokers by themselves here."""
    for one in document["weaknesses"]:
        if one["check"] == check and one["command"]:
            tool, option, servers, *words = shlex.split(one["command"])
            assert (option, servers) == ("--bootstrap-server", cluster.bootstrap())
            cluster.tools(tool.removesuffix(".sh"), *words)


def test_a_good_cluster_has_no_weakness_but_the_one_that_it_was_made_with(
    whole_cluster: KafkaCluster,
) -> None:
    cluster = emptied(whole_cluster)
    cluster.client.create_topic("orders", [[1, 2, 3], [2, 3, 1]], {"min.insync.replicas": "2"})
    document = looked_at(cluster)
    assert weak(document) == KEPT_SHORT
    assert "controller 102 keeps the metadata log too short" in evidence(document, "metadata log")
    unknown = {one["check"]: one["notLookedAt"] for one in document["checks"] if one["notLookedAt"]}
    assert set(unknown) == {"permissions"}
    assert "no broker coordinates groups: there may be no __consumer_offsets yet" in unknown["permissions"]


def test_topics_that_lose_or_stop_are_named_and_the_printed_commands_mend_them(
    whole_cluster: KafkaCluster,
) -> None:
    cluster = emptied(whole_cluster)
    create = cluster.client.create_topic
    create("single", [[1]], {"min.insync.replicas": "1"})
    create("low", [[1, 2, 3]], {"min.insync.replicas": "1"})
    create("high", [[1, 2, 3]], {"min.insync.replicas": "3"})
    create("unclean", [[1, 2, 3]], {"min.insync.replicas": "2", "unclean.leader.election.enable": "true"})
    create("one-rack", [[3, 4]], {"min.insync.replicas": "1"})
    document = looked_at(cluster)
    assert weak(document) == {
        **KEPT_SHORT,
        "replicas": "grave",
        "unclean elections": "grave",
        "min ISR": "serious",
        "racks": "serious",
    }
    assert "2 topics (low, one-rack) with min.insync.replicas 1" in evidence(document, "min ISR")
    assert "1 topic (high) with min.insync.replicas equal" in evidence(document, "min ISR")
    assert "all replicas in rack c (one-rack-0)" in evidence(document, "racks")

    mended(cluster, document, "unclean elections")
    mended(cluster, document, "min ISR")
    document = looked_at(cluster)
    assert "unclean elections" not in weak(document)
    assert "1 topic (one-rack) with min.insync.replicas 1" in evidence(document, "min ISR")
    assert "equal" not in evidence(document, "min ISR")


def test_the_elr_is_turned_on_by_the_printed_command(whole_cluster: KafkaCluster) -> None:
    cluster = emptied(whole_cluster)
    cluster.client.create_topic("orders", [[1, 2, 3]], {"min.insync.replicas": "2"})
    off = ("downgrade", "--feature", "eligible.leader.replicas.version=0")
    cluster.tools("kafka-features", *off)
    wait_until(
        lambda: "eligible leaders" in weak(looked_at(cluster)), "every broker knows that the ELR is off"
    )
    document = looked_at(cluster)
    assert weak(document) == {**KEPT_SHORT, "eligible leaders": "serious"}
    mended(cluster, document, "eligible leaders")
    wait_until(lambda: weak(looked_at(cluster)) == KEPT_SHORT, "every broker knows that the ELR is on")


def test_nodes_that_are_down_or_not_reached_from_here(whole_cluster: KafkaCluster, tmp_path: Path) -> None:
    cluster = emptied(whole_cluster)
    cluster.client.create_topic("orders", [[1, 2, 3]], {"min.insync.replicas": "2"})
    nowhere = looked_at(cluster, "--broker", "4=127.0.0.1:1")
    assert weak(nowhere) == {**KEPT_SHORT, "brokers reached": "grave"}
    assert "broker 4 was not reached from here" in evidence(nowhere, "brokers reached")

    cluster.node(4).kill()
    cluster.metadata.wait_fenced(4)
    down = looked_at(cluster)
    assert weak(down) == {**KEPT_SHORT, "brokers reached": "grave", "copies of it": "serious"}
    assert "broker 4 is fenced and was not reached" in evidence(down, "brokers reached")
    cluster.node(4).start()
    cluster.metadata.wait_live([4])

    cluster.node(102).kill()
    wait_until(lambda: "quorum" in weak(looked_at(cluster)), "102 counts as down")
    document = looked_at(cluster)
    assert weak(document) == {"quorum": "grave"}
    assert "controller 102 does not fetch: tolerates no more failures" in evidence(document, "quorum")


def test_two_voters_and_servers_that_name_a_dead_controller(whole_cluster: KafkaCluster) -> None:
    cluster = emptied(whole_cluster)
    cluster.client.create_topic("orders", [[1, 2, 3]], {"min.insync.replicas": "2"})
    at = ("--bootstrap-server", cluster.bootstrap(), "--yes", "--reason", "a test")
    removed = invoke(cluster.directory, "ktriage", "quorum", "remove", "102", *at)
    assert removed.status == 0, removed.err
    document = looked_at(cluster)
    assert weak(document)["quorum"] == "grave"
    assert "2 voters: one controller that fails stops" in evidence(document, "quorum")
    added = invoke(cluster.directory, "ktriage", "quorum", "add", "102", *at)
    assert added.status == 0, added.err
    assert weak(looked_at(cluster)) == KEPT_SHORT
