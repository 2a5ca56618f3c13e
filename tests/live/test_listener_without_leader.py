"""A real broker that lacks a client listener: what it leads looks offline to whoever asks by that listener."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from recovery.model import TopicPartition
from testbed.kafka import ClientListener, ClusterSpec, KafkaCluster
from tests.live.command_runner import CommandRunner

pytestmark = pytest.mark.long

MISSING = "OUTSIDE"
CLUSTER = ClusterSpec(listeners=(ClientListener(), ClientListener(MISSING)))
LED, DARK = "led", "dark"
WITHOUT, DEAD = 3, 2


@pytest.fixture(scope="module")
def asked_outside(cluster: KafkaCluster) -> KafkaCluster:
    """Broker 3 has no listener OUTSIDE and leads ``led``; ``dark`` has no leader at all: its broker is dead."""
    node = cluster.node(WITHOUT)
    listeners = (line.partition("=") for line in node.properties_file.read_text().splitlines())
    node.change_properties(
        {
            key: ",".join(part for part in value.split(",") if not part.startswith(f"{MISSING}://"))
            for key, _, value in listeners
            if key in ("listeners", "advertised.listeners")
        }
    )
    node.restart()
    cluster.metadata.wait_live([WITHOUT])
    cluster.client.create_topic(LED, [[WITHOUT, 1]])
    cluster.client.create_topic(DARK, [[DEAD]])
    cluster.client.produce(LED, 0, 10)
    cluster.node(DEAD).kill()
    cluster.metadata.wait_fenced(DEAD)
    return cluster


async def test_what_it_leads_is_not_offline_and_the_listener_is_named(asked_outside: KafkaCluster) -> None:
    led, dark = TopicPartition(LED, 0), TopicPartition(DARK, 0)
    backend = LiveBackend(ClientSettings(parse_addresses(asked_outside.bootstrap(MISSING))))
    try:
        await backend.open()
        found = await backend.partitions([LED, DARK])
    finally:
        await backend.close()
    assert [(state.tp, state.offline) for state in found.states] == [(dark, True)]
    assert set(found.unknown) == {led}
    assert f"listener {MISSING} (" in found.unknown[led].detail


def test_no_command_offers_it_for_election(asked_outside: KafkaCluster, tmp_path: Path) -> None:
    outside = CommandRunner(tmp_path, asked_outside.bootstrap(MISSING), asked_outside.metadata.wait_caught_up)
    status, told = outside.json("plan", "--strategy", "aggressive", "plan.json")
    assert status == 1, "the broker of dark is dead, so that nobody can lead it"
    assert told["partitions"] == []
    assert [row["topic"] for row in told["notElected"]] == [DARK]
    assert [(row["topic"], MISSING in row["detail"]) for row in told["leadersNotTold"]] == [(LED, True)]
    named = outside("plan", "--topic", LED, "--partition", "0", "other.json")
    assert named.status == 2
    assert MISSING in named.err
    inside = CommandRunner(tmp_path, asked_outside.bootstrap(), asked_outside.metadata.wait_caught_up)
    _, seen = inside.json("replicas", "--topic", LED)
    assert (seen["leadersNotTold"], seen["partitions"][0]["leader"]) == ([], WITHOUT)
