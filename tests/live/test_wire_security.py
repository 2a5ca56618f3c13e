"""Every way to authenticate, from the same client.properties that Java's tools take, and permissions that lack."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from backends.base.check_report import CheckReport
from backends.base.errors import NotAllowed
from backends.live.calls.configs import describe_topic_configs
from backends.live.calls.describe_log_dirs import describe_log_dirs
from backends.live.calls.describe_partitions import describe_partitions, topics_only_in_log_dirs, with_hidden
from backends.live.calls.elect_leaders import elect_leaders
from backends.live.calls.reassignments import list_reassignments, write_assignments
from backends.live.check import NO_GROUPS, check
from backends.live.client.addresses import Address, parse_addresses
from backends.live.client.client_config import load_settings
from backends.live.client.settings import ClientSettings
from backends.live.consumer_witness import LiveConsumerWitness
from backends.live.errors import BrokerError, NobodyReached
from backends.live.nodes.brokers import BrokerFleet
from backends.live.nodes.log_dir_listing import LogDirListing
from backends.live.nodes.quorum_cache import up_to_date_brokers
from recovery.consumer_sight import ConsumerSight, ReadThrough
from recovery.model import TopicPartition, Unknown, Why
from testbed.kafka import KafkaCluster
from testbed.kafka.client_config import Store
from testbed.kafka.listeners import Mechanism
from tests.live import restricted_users
from tests.live.restricted_users import MECHANISMS
from tests.live.started_cluster import emptied

PASSWORD = 'pa"ss\\w0rd='
CLUSTER = restricted_users.CLUSTER
OPEN, CLOSED = "open", "closed"


@pytest.fixture(scope="module", autouse=True)
def topics(cluster: KafkaCluster) -> Iterator[None]:
    emptied(cluster)
    for topic in (OPEN, CLOSED):
        cluster.client.create_topic(topic, [[1, 2], [2, 1]])
    yield


@asynccontextmanager
async def fleet_of(settings: ClientSettings) -> AsyncIterator[BrokerFleet]:
    fleet = BrokerFleet(settings)
    try:
        await fleet.open()
        yield fleet
    finally:
        await fleet.close()


def settings_of(cluster: KafkaCluster, listener: str, file: Path) -> ClientSettings:
    return load_settings(file, parse_addresses(cluster.bootstrap(listener)))


async def cluster_id(settings: ClientSettings) -> str:
    """Reaches both brokers at the addresses that they advertise."""
    async with fleet_of(settings) as fleet:
        for broker in (1, 2):
            await fleet.connection(broker)
        return fleet.cluster_id


@pytest.mark.parametrize("store", ["PEM", "PKCS12"])
async def test_tls(cluster: KafkaCluster, store: Store) -> None:
    file = cluster.client_configs.client_properties(listener="TLS", store=store)
    assert await cluster_id(settings_of(cluster, "TLS", file)) == cluster.cluster_id


@pytest.mark.parametrize("store", ["PEM", "PKCS12"])
async def test_mutual_tls_is_the_certificates_name(cluster: KafkaCluster, store: Store) -> None:
    file = cluster.client_configs.client_properties("admin", listener="MUTUAL", store=store)
    async with fleet_of(settings_of(cluster, "MUTUAL", file)) as fleet:
        assert {d.broker for d in await describe_log_dirs(await fleet.connection(1))} == {1}


async def test_mutual_tls_without_a_certificate_says_what_is_missing(cluster: KafkaCluster) -> None:
    file = cluster.client_configs.client_properties(listener="TLS")
    with pytest.raises(NobodyReached, match=r"TLS: .*ssl\.keystore"):
        await cluster_id(settings_of(cluster, "MUTUAL", file))


@pytest.mark.parametrize("listener", ["CLEAR", "SECURE"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_sasl(cluster: KafkaCluster, listener: str, mechanism: Mechanism) -> None:
    file = cluster.client_configs.client_properties(
        "admin",
        listener=listener,
        mechanism=mechanism,
    )
    async with fleet_of(settings_of(cluster, listener, file)) as fleet:
        assert len((await describe_partitions(await fleet.connection(2), [OPEN])).states) == 2


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_wrong_password_is_refused_and_not_shown(
    cluster: KafkaCluster,
    mechanism: Mechanism,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(1)
    file = cluster.client_configs.client_properties(
        "admin",
        listener="CLEAR",
        mechanism=mechanism,
        password="not-the-password",
    )
    settings = settings_of(cluster, "CLEAR", file)
    with pytest.raises(NobodyReached, match="authentication failed: ") as caught:
        await cluster_id(settings)
    shown = "".join((caplog.text, *capsys.readouterr(), str(caught.value), repr(settings)))
    assert "not-the-password" not in shown


async def test_a_token_that_the_broker_does_not_take_is_an_authentication_failure(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("bm90.YQ.dG9rZW4")
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.oauthbearer.token.endpoint.url=file://{tmp_path}/token\n"
        "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;\n"
    )
    with pytest.raises(NobodyReached, match="authentication failed: ") as caught:
        await cluster_id(settings_of(cluster, "CLEAR", file))
    assert "dG9rZW4" not in str(caught.value)


async def test_a_password_with_everything_in_it(cluster: KafkaCluster, tmp_path: Path) -> None:
    cluster.access_control.set_scram_password("odd", PASSWORD)
    file = tmp_path / "client.properties"
    in_jaas = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    in_file = in_jaas.replace("\\", "\\\\")
    file.write_text(
        "security.protocol = SASL_PLAINTEXT\nsasl.mechanism: SCRAM-SHA-256\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        f'    username="odd" \\\n    password="{in_file}";\n'
    )
    settings = settings_of(cluster, "CLEAR", file)
    assert await cluster_id(settings) == cluster.cluster_id
    assert PASSWORD not in repr(settings)


async def test_the_wrong_protocol_is_told_from_a_broker_that_is_gone(cluster: KafkaCluster) -> None:
    plain = ClientSettings(parse_addresses(cluster.bootstrap("TLS")))
    with pytest.raises(NobodyReached, match=r"security\.protocol is PLAINTEXT"):
        await cluster_id(plain)
    tls = settings_of(cluster, "CLEAR", cluster.client_configs.client_properties(listener="TLS"))
    with pytest.raises(NobodyReached, match=r"security\.protocol is SSL"):
        await cluster_id(tls)
    unauthenticated = ClientSettings(parse_addresses(cluster.bootstrap("CLEAR")))
    with pytest.raises(NobodyReached, match=r"security\.protocol is PLAINTEXT"):
        await cluster_id(unauthenticated)
    file = cluster.client_configs.client_properties("admin", listener="CLEAR", mechanism="PLAIN")
    with pytest.raises(NobodyReached, match=r"authenticat.*security\.protocol is SASL_PLAINTEXT"):
        await cluster_id(settings_of(cluster, "BARE", file))


async def test_a_certificate_of_nobody_we_trust_is_refused(cluster: KafkaCluster) -> None:
    settings = settings_of(cluster, "TLS", cluster.client_configs.client_properties(listener="TLS"))
    assert settings.tls is not None
    strangers = replace(settings, tls=replace(settings.tls, trusted=None))
    with pytest.raises(NobodyReached, match="TLS: the certificate is not accepted"):
        await cluster_id(strangers)


async def test_host_names_are_checked_unless_switched_off(cluster: KafkaCluster, tmp_path: Path) -> None:
    file = cluster.client_configs.client_properties(listener="TLS")
    port = parse_addresses(cluster.bootstrap("TLS"))[0].port
    elsewhere = (Address("127.1", port),)  # resolves to 127.0.0.1, and no certificate bears it
    with pytest.raises(NobodyReached, match=r"TLS: the certificate is not accepted: .*127\.1"):
        await cluster_id(load_settings(file, elsewhere))
    unchecked = tmp_path / "client.properties"
    unchecked.write_text(file.read_text() + "ssl.endpoint.identification.algorithm=\n")
    assert await cluster_id(load_settings(unchecked, elsewhere)) == cluster.cluster_id


@asynccontextmanager
async def tunnel_to(port: int) -> AsyncIterator[Address]:
    """A tunnel's end on this machine: its name is in no certificate."""
    relays: set[asyncio.Task[None]] = set()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(carry(reader, there_writer), carry(there_reader, writer))
        finally:
            writer.close()
            there_writer.close()

    def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relays.add(asyncio.get_running_loop().create_task(relay(reader, writer)))

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    try:
        yield Address("127.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in relays:
            task.cancel()
        await asyncio.gather(*relays, return_exceptions=True)


async def test_through_a_tunnel_the_certificate_is_that_of_the_broker_and_not_of_the_tunnel(
    cluster: KafkaCluster,
) -> None:
    """The advertised name is checked; for the bootstrap server, which has none yet, the name that is given."""
    file = cluster.client_configs.client_properties(listener="TLS")
    ports = [address.port for address in parse_addresses(cluster.bootstrap("TLS"))]
    async with tunnel_to(ports[0]) as one, tunnel_to(ports[1]) as two:
        with pytest.raises(NobodyReached, match=r"TLS: the certificate is not accepted: .*127\.1"):
            await cluster_id(load_settings(file, (one,)))
        named = parse_addresses(f"localhost@{one}")
        fleet = BrokerFleet(load_settings(file, named), {1: one, 2: two})
        try:
            assert (await fleet.open()).cluster_id == cluster.cluster_id
            for broker, tunnel in ((1, one), (2, two)):
                connection = await fleet.connection(broker)
                assert connection.address.place == tunnel.place
        finally:
            await fleet.close()
        other = BrokerFleet(load_settings(file, named), {2: two._replace(certified="kafka.example")})
        try:
            await other.open()
            with pytest.raises(BrokerError, match=r"the certificate is not accepted: .*kafka\.example"):
                await other.connection(2)
        finally:
            await other.close()


# Permissions. Each test has a user of its own: brokers learn of an ACL some milliseconds after it was written.


async def checked_as(cluster: KafkaCluster, user: str) -> CheckReport:
    async with fleet_of(as_user(cluster, user)) as fleet:
        return await check(fleet, LogDirListing(fleet).everything)


def as_user(cluster: KafkaCluster, user: str) -> ClientSettings:
    file = cluster.client_configs.client_properties(user, listener="MUTUAL")
    return settings_of(cluster, "MUTUAL", file)


def granted(found: CheckReport) -> dict[tuple[str, str], object]:
    return {(r.operation, r.resource): r.granted for r in found.rights}


async def test_a_caller_without_any_right_is_told_so_and_sees_no_empty_cluster(cluster: KafkaCluster) -> None:
    async with fleet_of(as_user(cluster, "nobody")) as fleet:
        conn = await fleet.connection(1)
        named = await describe_partitions(conn, [OPEN])
        everything = await describe_partitions(conn)
        configs = await describe_topic_configs(conn, [OPEN])
        tp = TopicPartition(OPEN, 0)
        for call, need in (
            (describe_log_dirs(conn), "DESCRIBE on Cluster:kafka-cluster"),
            (fleet.describe_quorum(conn), "DESCRIBE on Cluster:kafka-cluster"),
            (list_reassignments(conn), "DESCRIBE on Cluster:kafka-cluster"),
            (write_assignments(conn, {tp: (1, 2)}), "ALTER on Cluster:kafka-cluster"),
            (elect_leaders(conn, [tp], preferred=True), "ALTER on Cluster:kafka-cluster"),
        ):
            with pytest.raises(NotAllowed, match=f"needs {need}"):
                await call
        assert up_to_date_brokers(await fleet.quorum()) is None
        found = await check(fleet, LogDirListing(fleet).everything)
    assert named.states == ()
    assert named.hidden == (OPEN,)
    assert list(named.unknown.values()) == [
        Unknown(Why.NOT_ALLOWED, "DescribeTopicPartitions needs DESCRIBE on Topic:open")
    ]
    assert (everything.states, everything.visible_only) == ((), True)
    assert configs[OPEN] == Unknown(Why.NOT_ALLOWED, "DescribeConfigs needs DESCRIBE_CONFIGS on Topic:open")
    assert isinstance(found.hidden, Unknown)
    rights = granted(found)
    for operation in ("DESCRIBE", "ALTER", "DESCRIBE_CONFIGS"):
        assert rights[operation, "Cluster:kafka-cluster"] is False, operation
    assert isinstance(rights["DESCRIBE", "Topic:*"], Unknown), (
        "no topic is visible, which is not 'on all of none'"
    )
    assert {r.verified for r in found.reach} == {False}
    assert {r.problem for r in found.reach} == {None}


async def test_a_superuser_has_every_right(cluster: KafkaCluster) -> None:
    found = await checked_as(cluster, "admin")
    assert set(granted(found).values()) <= {True, NO_GROUPS}
    assert found.hidden == ()
    assert {r.verified for r in found.reach} == {True}


async def test_a_topic_that_may_not_be_seen_is_found_in_the_log_dirs(cluster: KafkaCluster) -> None:
    cluster.access_control.allow("half", "DESCRIBE", topic=OPEN)
    cluster.access_control.allow("half", "DESCRIBE")
    async with fleet_of(as_user(cluster, "half")) as fleet:
        conn = await fleet.connection(1)
        async with asyncio.timeout(20):
            while not (visible := await describe_partitions(conn)).states:
                pass
            while isinstance(await fleet.quorum(max_age=0.0), Unknown):
                pass
        held = {broker: await describe_log_dirs(await fleet.connection(broker)) for broker in (1, 2)}
        whole = await with_hidden(conn, visible, topics_only_in_log_dirs(visible, held))
        found = await check(fleet, LogDirListing(fleet).everything)
    assert {s.topic for s in visible.states} == {OPEN}
    assert whole.states == visible.states
    assert whole.hidden == found.hidden == (CLOSED,)
    assert [why.why for why in whole.unknown.values()] == [Why.NOT_ALLOWED]
    rights = {(r.operation, r.resource): r for r in found.rights}
    assert rights["DESCRIBE", "Topic:*"].missing == (CLOSED,)
    assert rights["READ", "Topic:*"].missing == (CLOSED, OPEN)
    assert rights["DESCRIBE", "Cluster:kafka-cluster"].granted is True
    assert rights["ALTER", "Cluster:kafka-cluster"].granted is False


async def test_alter_without_describe_is_found_by_an_empty_election(cluster: KafkaCluster) -> None:
    cluster.access_control.deny("odd-one", "DESCRIBE")
    cluster.access_control.allow("odd-one", "ALTER")
    async with fleet_of(as_user(cluster, "odd-one")) as fleet:
        async with asyncio.timeout(20):
            while not granted(found := await check(fleet, LogDirListing(fleet).everything))[
                "ALTER", "Cluster:kafka-cluster"
            ]:
                pass
    assert granted(found)["DESCRIBE", "Cluster:kafka-cluster"] is False


# Last: a consumer makes __consumer_offsets, which the tests before do not expect.
@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_an_ordinary_consumer_is_connected_by_the_same_file(
    cluster: KafkaCluster, mechanism: Mechanism
) -> None:
    file = cluster.client_configs.client_properties("admin", listener="SECURE", mechanism=mechanism)
    witness = LiveConsumerWitness(settings_of(cluster, "SECURE", file), elsewhere=False)
    tp = TopicPartition(OPEN, 0)
    empty = ReadThrough(0, 0)
    assert await witness.read([tp], 60.0) == {tp: ConsumerSight(0, 0, 0, 0, empty, empty)}


async def test_an_ordinary_consumer_has_the_certificate_of_the_file(cluster: KafkaCluster) -> None:
    file = cluster.client_configs.client_properties("admin", listener="MUTUAL")
    witness = LiveConsumerWitness(settings_of(cluster, "MUTUAL", file), elsewhere=False)
    found = (await witness.read([TopicPartition(OPEN, 0)], 60.0))[TopicPartition(OPEN, 0)]
    assert isinstance(found, ConsumerSight), found
