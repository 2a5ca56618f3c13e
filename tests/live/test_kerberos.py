"""Kerberos on a real cluster, against a KDC of its own: by a keytab, and by the tickets that kinit got."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from backends.live.client.addresses import parse_addresses
from backends.live.client.client_config import load_settings
from backends.live.connections.connection import BrokerConnection
from backends.live.consumer_witness import LiveConsumerWitness
from backends.live.errors import BrokerError, ConnectionProblem
from recovery.model import TopicPartition, Unknown, Why
from testbed.kafka import ClientListener, ClusterSpec, KafkaCluster
from testbed.kafka.config import JVM_FLAGS
from tests.live.kerberos_realm import REALM, Realm, installed, served_realm
from tests.live.started_cluster import started_cluster

pytest.importorskip("gssapi", reason="the extra kerberos is not installed")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not installed(), reason="no KDC is installed (docs/tests.md)"),
]
MODULE = "com.sun.security.auth.module.Krb5LoginModule required"


class Site(NamedTuple):
    realm: Realm
    cluster: KafkaCluster
    keytab: Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A broker whose principal is kafka/127.0.0.1, and a user ada."""
    with served_realm(tmp_path_factory.mktemp("kdc")) as realm:
        broker = realm.keytab("kafka/127.0.0.1")
        jaas = f'{MODULE} useKeyTab=true storeKey=true keyTab="{broker}" principal="kafka/127.0.0.1@{REALM}";'
        prefix = "listener.name.kerberos."
        spec = ClusterSpec(
            brokers=1,
            listeners=(ClientListener("KERBEROS", "SASL_PLAINTEXT"),),
            jvm=(*JVM_FLAGS, f"-Djava.security.krb5.conf={realm.settings}"),
            broker_config={
                f"{prefix}sasl.enabled.mechanisms": "GSSAPI",
                f"{prefix}gssapi.sasl.jaas.config": jaas,
                f"{prefix}sasl.kerberos.service.name": "kafka",
            },
        )
        with started_cluster(spec, print) as cluster:
            yield Site(realm, cluster, realm.keytab("ada"))


@pytest.fixture(autouse=True)
def realm_of_the_test(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5_CONFIG", site.realm.environment["KRB5_CONFIG"])
    monkeypatch.setenv("KRB5CCNAME", site.realm.environment["KRB5CCNAME"])


def properties(directory: Path, options: str) -> Path:
    path = directory / "client.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
        f"sasl.jaas.config={MODULE} {options};\n"
    )
    return path


async def connected(site: Site, path: Path) -> BrokerConnection:
    settings = load_settings(path, parse_addresses(site.cluster.bootstrap()))
    return await BrokerConnection.open(settings.bootstrap[0], settings, timeout=60.0)


async def test_a_keytab_logs_in(site: Site, tmp_path: Path) -> None:
    options = f'useKeyTab=true keyTab="{site.keytab}" principal="ada@{REALM}"'
    connection = await connected(site, properties(tmp_path, options))
    assert connection.api_keys, "the broker answers who is logged in"
    connection.close()


async def test_the_tickets_that_kinit_got_log_in(site: Site, tmp_path: Path) -> None:
    cache = site.realm.tickets("ada", site.keytab)
    path = properties(tmp_path, f'useTicketCache=true ticketCache="{cache}"')
    (await connected(site, path)).close()


async def test_without_a_ticket_the_reason_is_kerberos_own(site: Site, tmp_path: Path) -> None:
    with pytest.raises(BrokerError) as caught:
        await connected(site, properties(tmp_path, "useTicketCache=true"))
    assert caught.value.trouble is ConnectionProblem.AUTHENTICATION
    assert "Kerberos: No Kerberos credentials available" in str(caught.value), caught.value


async def test_a_service_that_the_realm_has_not_is_said(site: Site, tmp_path: Path) -> None:
    options = f'useKeyTab=true keyTab="{site.keytab}" principal="ada@{REALM}" serviceName="other"'
    with pytest.raises(BrokerError) as caught:
        await connected(site, properties(tmp_path, options))
    assert "Kerberos: Server other/127.0.0.1@KTRIAGE.TEST not found" in str(caught.value), caught.value


async def test_librdkafka_is_not_asked(site: Site, tmp_path: Path) -> None:
    """As it comes from PyPI it is built without Kerberos."""
    path = properties(tmp_path, f'useKeyTab=true keyTab="{site.keytab}" principal="ada@{REALM}"')
    witness = LiveConsumerWitness(
        load_settings(path, parse_addresses(site.cluster.bootstrap())), elsewhere=False
    )
    (answer,) = (await witness.read([TopicPartition("any", 0)], 5.0)).values()
    assert isinstance(answer, Unknown) and answer.why is Why.NOT_ASKED and "no Kerberos" in answer.detail
