"""An incident on a real cluster before its unclean election: what groups have read and transactions have ended in a
stale long tail.

Broker 1 has the tail, broker 2 the newer records, and no topic has a leader. The coordinators are on broker 4.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from confluent_kafka import Producer

from testbed.kafka import KafkaCluster, wait_until
from tests.live import group_clients, incident_steps

OFFSETS, DECISIONS = "__consumer_offsets", "__transaction_state"
TOPIC = "orders"
COMMITTED, ABORTED, ALIVE, SINCE = "payments", "refunds", "transfers", "ledger"
FORGOTTEN = "audits"
TRANSACTIONAL = (COMMITTED, ABORTED, ALIVE, SINCE)
PLAIN, IN_TRANSACTION, SINCE_THEN = 50, 100, 20
COMMON, TAIL, KEPT = 1000, 500, 300
READ = 1450


class Incident(NamedTuple):
    """The cluster without a leader for any topic; ``alive`` is the producer whose transaction is still open."""

    cluster: KafkaCluster
    alive: Producer


def stale_tails_with_groups_and_transactions(cluster: KafkaCluster) -> Incident:
    """Groups read 1450 of the tail; min ISR is 1, so that they can."""
    cluster.client.create_topic(OFFSETS, [[4], [3]], {"cleanup.policy": "compact"})
    incident_steps.assign(cluster, 4, OFFSETS, 1, (3, 2))
    cluster.client.create_topic(DECISIONS, [[4]], {"cleanup.policy": "compact"})
    topics = (TOPIC, *TRANSACTIONAL, FORGOTTEN)
    for topic in topics:
        cluster.client.create_topic(topic, [[1, 2, 3]])
    incident_steps.produce(cluster, TOPIC, COMMON, "common")
    group_clients.read_and_commit(cluster, at_home("common"), TOPIC, 900)
    group_clients.read_and_commit(cluster, elsewhere("hidden"), TOPIC, 900)
    for topic in (*TRANSACTIONAL, FORGOTTEN):
        incident_steps.produce(cluster, topic, PLAIN, "plain")
    group_clients.read_and_commit(cluster, at_home("auditor"), COMMITTED, PLAIN)
    open_ones = {
        topic: group_clients.transaction(cluster, f"{topic}-app", topic, IN_TRANSACTION)
        for topic in (*TRANSACTIONAL, FORGOTTEN)
    }
    incident_steps.kill(cluster, 2, 3)
    incident_steps.wait_all(cluster, topics, lambda state: state.isr == (1,), "with 1 alone in the ISR")
    incident_steps.produce(cluster, TOPIC, TAIL, "tail", acks="1")
    for group in ("with-epoch", "member", "shaper", "mover", "subscriber"):
        group_clients.read_and_commit(cluster, at_home(group), TOPIC, READ)
    group_clients.read_and_commit(cluster, at_home("modern"), TOPIC, READ, protocol="consumer")
    for group in ("no-epoch", "not-fixed", "exported"):
        group_clients.read_and_commit(cluster, at_home(group), TOPIC, READ, epoch=False)
    open_ones[COMMITTED].commit_transaction(60)
    open_ones[ABORTED].abort_transaction(60)
    open_ones[SINCE].commit_transaction(60)
    open_ones[FORGOTTEN].commit_transaction(60)
    for topic, state in (
        (COMMITTED, "CompleteCommit"),
        (ABORTED, "CompleteAbort"),
        (SINCE, "CompleteCommit"),
        (FORGOTTEN, "CompleteCommit"),
    ):
        wait_until(partial(is_described, cluster, topic, state), f"{topic}'s transaction to end")
    open_ones[SINCE].begin_transaction()
    open_ones[SINCE].produce(ALIVE, b"another", partition=0)
    assert open_ones[SINCE].flush(60) == 0
    incident_steps.kill(cluster, 1)
    incident_steps.start(cluster, 2)
    incident_steps.elect_unclean(cluster, topics, 2)
    incident_steps.start(cluster, 3)
    incident_steps.wait_all(cluster, topics, lambda state: set(state.isr) == {2, 3}, "in sync on 2 and 3")
    incident_steps.produce(cluster, TOPIC, KEPT, "kept")
    for topic in (
        *TRANSACTIONAL,
        FORGOTTEN,
    ):  # newer than the tail with the markers, which is cut off therefore
        incident_steps.produce(cluster, topic, SINCE_THEN, "since")
    group_clients.read_and_commit(cluster, at_home("kept"), TOPIC, COMMON + 200)
    incident_steps.kill(cluster, 2)
    incident_steps.wait_all(cluster, topics, lambda state: state.leader == 3, "led by 3")
    incident_steps.kill(cluster, 3)
    incident_steps.start(cluster, 1, 2)
    incident_steps.wait_offline(cluster, topics)
    wait_until(lambda: cluster.metadata.partitions(OFFSETS)[1].leader == -1, f"{OFFSETS}-1 to be offline")
    return Incident(cluster, open_ones[ALIVE])


def is_described(cluster: KafkaCluster, topic: str, state: str) -> bool:
    return (
        state in cluster.tools("kafka-transactions", "describe", "--transactional-id", f"{topic}-app").stdout
    )


def at_home(name: str) -> str:
    """The name, or a longer one, of a group that is stored in partition 0 of __consumer_offsets, on broker 4."""
    return _stored(name, 0)


def elsewhere(name: str) -> str:
    return _stored(name, 1)


def _stored(name: str, partition: int) -> str:
    return next(f"{name}-{n}" for n in range(10) if _java_hash(f"{name}-{n}") % 2 == partition)


def _java_hash(text: str) -> int:
    """String.hashCode without its sign, as the coordinator takes it."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value & 0x7FFFFFFF
