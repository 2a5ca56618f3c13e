"""The files of ``ktriage pipeline fixes`` are what Kafka's own tools carry out, and producers notice nothing."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.kafka import KafkaCluster, wait_until
from tests.live import advised_operator
from tests.live.command_runner import CommandRunner
from tests.live.started_cluster import emptied
from tests.live.test_pipeline import on_spark

pytestmark = pytest.mark.long

CLUSTER = replace(advised_operator.CLUSTER)
"""Of its own, because others of the kind have deleted topics that had an ELR (test_advice_online_with_elr)."""
TOPICS = {
    # Topic: assignment, min.insync.replicas, and the replicas after the fixes (None: unchanged).
    "alone": ([1], "2", 2),  # min ISR is 1 as long as it has one replica, and would be 2 with two
    "together": ([1, 2], "1", 2),
    "spread": ([2, 3], "1", None),
}
RECORDS = 40
CONFIGS = "kafka-configs"
RETRIED = {"NOT_LEADER_FOR_PARTITION"}
"""A leader moved. The testbed's producer sends nothing twice; an ordinary one asks the new leader."""


def test_kafkas_own_tools_carry_out_the_files_while_acks_all_goes_on(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    emptied(cluster)
    for topic, (replicas, level, _) in TOPICS.items():
        cluster.client.create_topic(topic, [replicas], {"min.insync.replicas": level})
        cluster.client.produce(topic, 0, RECORDS, prefix="first", size=50_000)
    console = CommandRunner(tmp_path, cluster.bootstrap(), cluster.metadata.wait_caught_up)
    assert console("snapshot", "--out", "lake").status == 0
    words = (
        "--in",
        "lake",
        "--out",
        "results",
        "--goal",
        "copies",
        "--export",
        "fixes",
        "--master",
        "local[2]",
    )
    ended = on_spark(tmp_path, "pipeline", "fixes", *words)
    assert ended.status == 0, ended
    files = tmp_path / "fixes" / cluster.cluster_id
    moves = json.loads((files / "reassignment.json").read_text())["partitions"]
    assert {move["topic"] for move in moves} == {topic for topic, (_, _, after) in TOPICS.items() if after}

    load = _Load(cluster)
    with load:
        for arguments in _settings(files / "min-isr.sh", tmp_path):
            cluster.tools(CONFIGS, *arguments)
        reassign = ("--reassignment-json-file", str(files / "reassignment.json"))
        # Slow enough that records are written while the copies run.
        told = cluster.tools(
            "kafka-reassign-partitions", *reassign, "--execute", "--throttle", "1000000"
        ).stdout
        assert "Successfully started partition reassignments" in told
        wait_until(
            lambda: (
                cluster.tools("kafka-reassign-partitions", *reassign, "--verify").stdout.count("is complete")
                == len(moves)
            ),
            "the reassignments to be carried out",
            120.0,
        )
        wait_until(lambda: load.rounds > 2, "records written beside the reassignments", 120.0)
    assert load.refused == []
    for topic, (replicas, _, wanted) in TOPICS.items():
        state = cluster.metadata.partitions(topic)[0]
        if wanted is None:
            assert list(state.replicas) == replicas
            continue
        assert len(state.replicas) == wanted
        assert {CLUSTER.racks[broker] for broker in state.isr} == {"a", "b"}


def _settings(script: Path, home: Path) -> list[list[str]]:
    """What the script calls Kafka's tool with, beside the address."""
    stub, calls = home / "bin" / CONFIGS, home / "calls"
    stub.parent.mkdir()
    stub.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" --- >> {calls}\n')
    stub.chmod(0o755)
    environment = os.environ | {"PATH": f"{stub.parent}:{os.environ['PATH']}"}
    subprocess.run(
        ["/bin/sh", str(script), "--bootstrap-server", "h:1"], env=environment, check=True, timeout=20
    )
    given = [call.split("\n")[:-1] for call in calls.read_text().split("---\n") if call]
    assert all(words[:2] == ["--bootstrap-server", "h:1"] for words in given)
    assert [words[5] for words in given] == ["alone"]
    return [words[2:] for words in given]


class _Load:
    """A producer with acks=all to every topic."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.refused: list[Any] = []
        self.rounds = 0

    def _run(self) -> None:
        while not self._stop.is_set():
            for topic in TOPICS:
                sent = self._cluster.client.produce(topic, 0, 5, prefix=f"load-{self.rounds}", size=1000)
                if sent.errors - RETRIED:
                    self.refused.append((topic, sent))
            self.rounds += 1

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
