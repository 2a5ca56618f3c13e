"""Diverged, transactional and compacted logs: what the election cuts off is rescued and written back, on a real
cluster.

1, 2 and 3 led alone in turn, each after the one before it had died: their logs part behind the common records. 4
led last and stays dead. 3 has the newest records and is elected.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from testbed.kafka.log_files import read_log
from testbed.kafka.node import Node
from tests.live import group_clients
from tests.live.command_runner import CommandRunner
from tests.live.incident_steps import elect_unclean, kill, pause, produce, start, wait_all, wait_offline
from tests.live.rescued_records import consumed, values
from tests.unit.cli.command_process import environment

pytestmark = pytest.mark.long

CLUSTER = ClusterSpec(
    controllers=1,
    brokers=4,
    broker_config={"log.initial.task.delay.ms": "100", "log.cleaner.backoff.ms": "100"},
)
DIVERGED, TRANSACTIONAL, COMPACTED = TOPICS = ("diverged", "transactional", "compacted")
COMPACT = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}
COMMON, FIRST, SECOND, KEPT = 100, 500, 200, 300
IN_TRANSACTION = 10
LATER_MS = 10_000
"""Between two batches of the compacted topic, so that each begins a segment."""
AGREED = ("--yes", "--reason", "a test")


@pytest.fixture(scope="module")
def incident(cluster: KafkaCluster) -> KafkaCluster:
    cluster.client.create_topic("__transaction_state", [[1]], {"cleanup.policy": "compact"})
    for topic in TOPICS:
        compact = COMPACT if topic == COMPACTED else {}
        cluster.client.create_topic(topic, [[1, 2, 3, 4]], {"min.insync.replicas": "1", **compact})
    for topic in (DIVERGED, TRANSACTIONAL):
        produce(cluster, topic, COMMON, "common")
    produce_keyed(cluster, {"k0": "common", "k1": "common"}, 0)
    pause(cluster, 2, 3, 4)
    wait_all(cluster, TOPICS, lambda state: state.isr == (1,), "with 1 alone in the ISR")
    write_tails_of_1(cluster)
    kill(cluster, 1)
    start(cluster, 2)
    elect_unclean(cluster, TOPICS, 2)
    produce(cluster, DIVERGED, SECOND, "second")
    kill(cluster, 2)
    start(cluster, 3)
    elect_unclean(cluster, TOPICS, 3)
    start(cluster, 4)
    wait_all(cluster, TOPICS, lambda state: set(state.isr) == {3, 4}, "in sync on 3 and 4")
    for topic in (DIVERGED, TRANSACTIONAL):
        produce(cluster, topic, KEPT, "kept")
    produce_keyed(cluster, {"t8": "kept", "t9": None}, 5 * LATER_MS)
    kill(cluster, 3)
    wait_all(cluster, TOPICS, lambda state: state.leader == 4, "led by 4")
    kill(cluster, 4)
    start(cluster, 1, 2, 3)
    wait_offline(cluster, TOPICS)
    return cluster


def write_tails_of_1(cluster: KafkaCluster) -> None:
    produce(cluster, DIVERGED, FIRST, "first")
    produce(cluster, TRANSACTIONAL, FIRST, "first")
    for ending in ("committed", "aborted", "open"):
        producer = group_clients.transaction(cluster, ending, TRANSACTIONAL, IN_TRANSACTION)
        if ending == "committed":
            producer.commit_transaction(60)
        elif ending == "aborted":
            producer.abort_transaction(60)
    ends = COMMON + FIRST + 3 * IN_TRANSACTION + len(("commit", "abort"))
    wait_until(lambda: read_log(cluster.node(1), TRANSACTIONAL, 0).end == ends, "both markers to be written")
    produce_keyed(cluster, {f"t{number}": "first" for number in range(10)}, 2 * LATER_MS)
    produce_keyed(cluster, {f"t{number}": "newer" for number in range(5)}, 3 * LATER_MS)
    produce_keyed(cluster, {"last": "first"}, 4 * LATER_MS)
    wait_until(
        lambda: cleaned_to(cluster.node(1)) == 17, "the cleaner to thin t0 to t4 out of the first batch"
    )


def cleaned_to(node: Node) -> int:
    """The offset up to which the cleaner has worked; 0 before that."""
    checkpoint = node.log_dirs[0] / "cleaner-offset-checkpoint"
    lines = checkpoint.read_text().splitlines() if checkpoint.exists() else []
    return next((int(line.split()[2]) for line in lines if line.startswith(f"{COMPACTED} 0 ")), 0)


def produce_keyed(cluster: KafkaCluster, records: dict[str, str | None], later_ms: int) -> None:
    """One batch, whose timestamps begin a segment."""
    producer = Producer(cluster.superuser_config() | {"acks": "all", "linger.ms": 100, "retries": 0})
    errors: list[object] = []
    for key, value in records.items():
        producer.produce(
            COMPACTED,
            value,
            key,
            partition=0,
            timestamp=1_700_000_000_000 + later_ms,
            on_delivery=lambda error, _message: errors.append(error) if error else None,
        )
    assert producer.flush(30.0) == 0 and not errors, errors


@pytest.fixture
def console(incident: KafkaCluster, tmp_path: Path) -> CommandRunner:
    return CommandRunner(tmp_path, incident.bootstrap(), incident.metadata.wait_caught_up)


def elect_rescued(console: CommandRunner, topic: str) -> list[dict[str, Any]]:
    """Rescues what the election of broker 3 cuts off, and elects it; returns the branches."""
    console.plan_aggressively(topic)
    status, applied = console.json("apply", "plan.json", "--rescue", "saved", *AGREED)
    assert status == 0 and applied["rescue"]["unread"][0]["broker"] == 4, applied
    assert console.without_cluster("rescue", "verify", "saved").status == 0
    branches: list[dict[str, Any]] = applied["rescue"]["branches"]
    return branches


def numbered(**counts: int) -> Counter[str]:
    return Counter(f"{prefix}-{number}" for prefix, count in counts.items() for number in range(count))


def test_two_logs_that_parted_are_both_rescued_and_a_killed_write_back_is_finished(
    console: CommandRunner, incident: KafkaCluster
) -> None:
    branches = elect_rescued(console, DIVERGED)
    ends = {branch["broker"]: (branch["startOffset"], branch["endOffset"]) for branch in branches}
    assert ends == {1: (COMMON, COMMON + FIRST), 2: (COMMON, COMMON + SECOND)}
    assert values(incident, DIVERGED) == numbered(common=COMMON, kept=KEPT)
    restore = ("restore", "saved", "--to-source", *AGREED)
    killed = subprocess.run(
        [sys.executable, "-m", "tests.live.killed_command", "restore-records", *restore, *console.connection],
        env=environment(console.home),
        cwd=console.home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    resumed = console("resume")
    assert resumed.status == 1 and f"next: ktriage restore {console.home}/saved --to-source" in resumed.err
    ended = console(*restore)
    assert ended.status == 0 and f"{FIRST + SECOND} records written back" in ended.out, ended
    assert values(incident, DIVERGED) == numbered(common=COMMON, first=FIRST, second=SECOND, kept=KEPT)
    assert console("resume").status == 0


def test_of_transactions_only_the_committed_one_comes_back_and_the_open_one_apart(
    console: CommandRunner, incident: KafkaCluster
) -> None:
    (branch,) = elect_rescued(console, TRANSACTIONAL)
    assert branch["broker"] == 1
    shown = console.without_cluster("rescue", "show", "saved", "--output", "json")
    (told,) = json.loads(shown.out)["branches"]
    endings = {ending: told[ending] for ending in ("committed", "aborted", "open", "control")}
    assert endings == dict.fromkeys(("committed", "aborted", "open"), IN_TRANSACTION) | {"control": 2}
    ended = console("restore", "saved", "--to-source", *AGREED)
    assert ended.status == 0 and f"{FIRST + IN_TRANSACTION} records written back" in ended.out, ended
    wanted = numbered(common=COMMON, first=FIRST, committed=IN_TRANSACTION, kept=KEPT)
    assert Counter(value for _, value, _, _ in consumed(incident, TRANSACTIONAL)) == wanted
    words = ("restore", "saved", "--to-topic", "open", "--transactions", "open", *AGREED)
    ended = console(*words)
    assert ended.status == 0 and f"{IN_TRANSACTION} records written back" in ended.out, ended
    assert values(incident, "open") == numbered(open=IN_TRANSACTION)


def test_a_log_that_the_cleaner_has_thinned_gets_back_the_keys_that_nobody_wrote_since(
    console: CommandRunner, incident: KafkaCluster
) -> None:
    elect_rescued(console, COMPACTED)
    status, written = console.json("restore", "saved", "--to-source", "--only-keys-missing", *AGREED)
    assert status == 0, written
    (branch,) = written["branches"]
    assert branch["selected"] == branch["reencoded"] == len(("t5", "t6", "t7", "last")) + 5, (
        "t0 to t4 have their newer value"
    )
    newest = {key: value for key, value, _, _ in consumed(incident, COMPACTED)}
    assert newest == {
        **dict.fromkeys(("k0", "k1"), "common"),
        **{f"t{number}": "newer" for number in range(5)},
        **dict.fromkeys(("t5", "t6", "t7", "last"), "first"),
        "t8": "kept",
        "t9": "",
    }
