"""A topic that a user may not see, with all its replicas on a broker that is down (Kafka's StandardAuthorizer)."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.kafka import KafkaCluster
from testbed.kafka.config import INTERNAL_LISTENER
from tests.live import incident_steps, restricted_users
from tests.live.command_runner import CommandRunner
from tests.live.started_cluster import emptied
from tests.live.test_cli_rights import As

pytestmark = pytest.mark.long

CLUSTER = restricted_users.CLUSTER
USER = restricted_users.ALL_RIGHTS
GONE = ("--broker-id", "2", "--gone-for-good")


def test_a_topic_that_only_dead_brokers_have_is_not_known_while_the_metadata_log_may_not_be_read(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    emptied(cluster)
    cluster.client.create_topic("seen", [[1]])
    cluster.client.create_topic("away", [[2]])
    incident_steps.produce(cluster, "away", 10, "secret")
    rights = cluster.access_control
    rights.allow(USER, "DESCRIBE", "READ", "DESCRIBE_CONFIGS", topic="seen")
    rights.allow(USER, "DESCRIBE", "ALTER")
    rights.deny(USER, "DESCRIBE", "READ", topic="away")
    cluster.node(2).kill()
    cluster.metadata.wait_live([1])
    incident_steps.wait_offline(cluster, ["away"])
    console = As(cluster, USER, tmp_path)
    for words in (("status",), ("plan", "plan.json"), ("heal", *GONE), ("transactions", "show")):
        ended = console(*words)
        told = ended.out + ended.err
        assert ended.status == 1, ended
        assert "broker 2 listed no log dirs, and a topic may be on them alone" in told, ended
        assert "nothing is offline" not in told and "heal unregister" not in told, ended
    refused = console("heal", "unregister", *GONE, "--yes", "--reason", "a test")
    assert refused.status == 1 and "could have replicas on broker 2" in refused.err, refused
    seen = superuser(cluster, tmp_path / "superuser")("status")
    assert "1 offline" in seen.out, seen
    assert "hidden" not in seen.out + seen.err, "the metadata log has no topic that was not seen"


def superuser(cluster: KafkaCluster, home: Path) -> CommandRunner:
    """The only user of the testbed whom the controllers let in."""
    home.mkdir()
    console = CommandRunner(home, cluster.bootstrap(INTERNAL_LISTENER))
    properties = cluster.client_configs.internal_properties()
    console.connection = (*console.connection, "--command-config", str(properties))
    return console
