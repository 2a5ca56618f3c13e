"""Users of whom each lacks one right, and two topics that have lost their leader."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.kafka import ClientListener, ClusterSpec, KafkaCluster
from testbed.kafka.listeners import Mechanism
from tests.live import incident_steps
from tests.live.started_cluster import emptied

ALL_RIGHTS, NO_READ, NO_DESCRIBE, NO_ALTER, NO_CLUSTER = RESTRICTED = (
    "has-all",
    "has-no-read",
    "has-no-describe",
    "has-no-alter",
    "has-no-cluster",
)
NOBODY = "has-nothing"
PASSWORD = "known-to-nobody-else"
MECHANISMS: tuple[Mechanism, ...] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
CLUSTER = ClusterSpec(
    controllers=1,
    brokers=2,
    listeners=(
        ClientListener("TLS", "SSL"),
        ClientListener("MUTUAL", "SSL", client_certificates=True),
        ClientListener("CLEAR", "SASL_PLAINTEXT", MECHANISMS),
        ClientListener("SECURE", "SASL_SSL", MECHANISMS),
        ClientListener("BARE", "PLAINTEXT"),
    ),
    users=dict.fromkeys(("admin", *RESTRICTED, NOBODY), PASSWORD),
    authorizer=True,
)
"""Modules with this very object follow one another on one cluster."""
OPEN, CLOSED = TOPICS = ("open", "closed")
"""The rights that concern a topic are missing for the second."""


def lose_both_leaders(cluster: KafkaCluster) -> None:
    """Two offline partitions whose only ISR member, 2, is dead; 1 is alive and has the older log."""
    emptied(cluster)
    for topic in TOPICS:
        cluster.client.create_topic(topic, [[1, 2]])
        incident_steps.produce(cluster, topic, 10, "common")
    _restrict(cluster, RESTRICTED)
    cluster.node(1).pause()
    try:
        incident_steps.wait_all(cluster, TOPICS, lambda state: state.isr == (2,), "with 2 alone in the ISR")
        cluster.node(2).kill()
    finally:
        cluster.node(1).resume()
    cluster.metadata.wait_live([1])
    incident_steps.wait_offline(cluster, TOPICS)


def _restrict(cluster: KafkaCluster, users: Iterable[str]) -> None:
    rights = cluster.access_control
    for user in users:
        for topic in TOPICS:
            rights.allow(user, "DESCRIBE", "READ", "DESCRIBE_CONFIGS", topic=topic)
        rights.allow(user, "DESCRIBE", "ALTER")
    rights.deny(NO_READ, "READ", topic=CLOSED)
    rights.deny(NO_DESCRIBE, "DESCRIBE", "READ", "DESCRIBE_CONFIGS", topic=CLOSED)
    rights.deny(NO_ALTER, "ALTER")
    rights.deny(NO_CLUSTER, "DESCRIBE")
