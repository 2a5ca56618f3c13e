"""Bootstrap servers, advertised addresses and --broker overrides on a running cluster."""

from __future__ import annotations

import pytest

from backends.live.calls.describe_partitions import describe_partitions
from backends.live.calls.reassignments import write_assignments
from backends.live.check import check
from backends.live.client.addresses import Address, parse_address
from backends.live.client.settings import ClientSettings
from backends.live.errors import BrokerError, ConnectionProblem, NobodyReached
from backends.live.nodes.broker_addresses import SEED
from backends.live.nodes.brokers import BrokerFleet
from backends.live.nodes.log_dir_listing import LogDirListing
from recovery.model import TopicPartition, Unknown
from testbed.kafka import KafkaCluster
from tests.live import broker_fleet
from tests.live.broker_fleet import ASSIGNMENTS, fleet_of

CLUSTER = broker_fleet.CLUSTER
TOPIC = broker_fleet.ORDERS


@pytest.fixture(scope="module", autouse=True)
def topic(cluster: KafkaCluster) -> None:
    broker_fleet.create_orders(cluster)


async def test_a_bootstrap_list_serves_while_one_of_it_answers(whole_cluster: KafkaCluster) -> None:
    alive = parse_address(whole_cluster.bootstrap().split(",")[2])
    fleet = BrokerFleet(
        ClientSettings((Address("no-such-host.invalid", 9092), Address("127.0.0.1", 1), alive))
    )
    try:
        assert (await fleet.open()).cluster_id == whole_cluster.cluster_id
    finally:
        await fleet.close()


async def test_a_cluster_that_nobody_answers_for_names_every_server() -> None:
    fleet = BrokerFleet(ClientSettings((Address("no-such-host.invalid", 9092), Address("127.0.0.1", 1))))
    with pytest.raises(NobodyReached) as caught:
        await fleet.open()
    await fleet.close()
    assert "no-such-host.invalid:9092: name not resolved" in str(caught.value)
    assert "127.0.0.1:1: connection refused" in str(caught.value)
    assert not caught.value.sent


async def test_an_override_that_leads_to_another_broker_is_refused(whole_cluster: KafkaCluster) -> None:
    wrong = Address("127.0.0.1", whole_cluster.node(1).port)
    async with fleet_of(whole_cluster, {2: wrong}) as fleet:
        with pytest.raises(BrokerError) as caught:
            await fleet.connection(2)
        right = await fleet.connection(1)
    assert caught.value.trouble is ConnectionProblem.WRONG_NODE
    assert right.verified


async def test_only_the_bootstrap_address_leads_anywhere(whole_cluster: KafkaCluster) -> None:
    """A port-forward: the brokers' own addresses are not reachable from here."""
    nowhere = {broker: Address("127.0.0.1", 1) for broker in (1, 2, 3)}
    tp = TopicPartition(TOPIC, 0)
    async with fleet_of(whole_cluster, nowhere) as fleet:
        told = await fleet.any(lambda conn: describe_partitions(conn, [TOPIC]))
        written = await fleet.any(lambda conn: write_assignments(conn, {tp: (1, 2, 3)}), again=False)
        quorum = await fleet.quorum()
        found = await check(fleet, LogDirListing(fleet).everything)
    assert (told.broker, told.caught_up) == (SEED, None)
    assert len(told.value.states) == len(ASSIGNMENTS)
    assert written.value == {tp: None}
    assert not isinstance(quorum, Unknown)
    assert all(r.problem is not None and r.overridden for r in found.reach)
    assert {c.call: c.versions for c in found.capabilities.calls}["DescribeTopicPartitions"] == (0, 0)


async def test_an_unlisted_broker_is_looked_for_behind_the_bootstrap_servers(
    whole_cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fleet_of(whole_cluster) as fleet:
        # 4.x lists fenced brokers too; 3.9 does not, which is what this stands for.
        monkeypatch.delitem(fleet.addresses.advertised, 3)
        assert (await fleet.connection(3)).verified
        with pytest.raises(BrokerError) as caught:
            await fleet.connection(9)
    assert caught.value.trouble is ConnectionProblem.NO_ADDRESS
    assert "--broker 9=HOST:PORT" in str(caught.value)
