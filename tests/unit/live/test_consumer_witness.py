"""A consumer of librdkafka is connected by the same client.properties, and changes nothing."""

from __future__ import annotations

from dataclasses import replace

from backends.live.client.addresses import Address
from backends.live.client.sasl import Sasl
from backends.live.client.secret import Secret
from backends.live.client.settings import ClientSettings
from backends.live.client.tls import KeyPair, Tls
from backends.live.consumer_witness import LiveConsumerWitness, consumer_settings, librdkafka_settings
from recovery.model import TopicPartition, Unknown, Why

PLAIN = ClientSettings((Address("kafka-1", 9092), Address("::1", 9093)), connect_timeout=7.5)
TP = TopicPartition("orders", 0)


def test_it_commits_nothing_and_begins_nowhere_by_itself() -> None:
    found = consumer_settings(PLAIN, "read_committed")
    assert found["bootstrap.servers"] == "kafka-1:9092,[::1]:9093"
    assert found["enable.auto.commit"] is False and found["enable.auto.offset.store"] is False
    assert found["auto.offset.reset"] == "error" and found["isolation.level"] == "read_committed"
    assert found["security.protocol"] == "PLAINTEXT"
    assert found["socket.connection.setup.timeout.ms"] == 7500
    assert not [key for key in found if key.startswith(("ssl.", "sasl."))]


def test_stores_and_passwords_are_those_of_the_file() -> None:
    identity = KeyPair(Secret("KEY AND CHAIN"), Secret("once"))
    sasl = Sasl("SCRAM-SHA-512", "ada", Secret("pw"))
    settings = replace(PLAIN, tls=Tls(trusted="CA", identity=identity, check_names=False), sasl=sasl)
    found = librdkafka_settings(settings)
    assert found["security.protocol"] == "SASL_SSL"
    assert (found["ssl.ca.pem"], found["ssl.endpoint.identification.algorithm"]) == ("CA", "none")
    assert found["ssl.key.pem"] == found["ssl.certificate.pem"] == "KEY AND CHAIN"
    assert found["ssl.key.password"] == "once"
    assert (found["sasl.mechanism"], found["sasl.username"], found["sasl.password"]) == (
        "SCRAM-SHA-512",
        "ada",
        "pw",
    )


async def test_a_witness_that_cannot_begin_is_no_failure_of_what_was_done() -> None:
    """As librdkafka comes from PyPI it has no such mechanism."""
    witness = LiveConsumerWitness(replace(PLAIN, sasl=Sasl("GSSAPI")), elsewhere=False)
    answer = (await witness.read([TP], 60.0))[TP]
    offsets = (await witness.committed({"billing": [TP]}, 60.0))["billing"]
    for one in (answer, offsets):
        assert isinstance(one, Unknown) and one.why is Why.NOT_ASKED
        assert one.detail.startswith("librdkafka cannot begin: ") and "GSSAPI" in one.detail


async def test_through_a_tunnel_nobody_is_asked_and_that_is_said() -> None:
    named = replace(PLAIN, bootstrap=(Address("127.0.0.1", 19092, "kafka-1.example"),))
    for witness in (
        LiveConsumerWitness(PLAIN, elsewhere=True),
        LiveConsumerWitness(named, elsewhere=False),
    ):
        answer = (await witness.read([TP], 60.0))[TP]
        assert isinstance(answer, Unknown) and answer.why is Why.NOT_ASKED
        offsets = (await witness.committed({"billing": [TP]}, 60.0))["billing"]
        assert isinstance(offsets, Unknown) and offsets.why is Why.NOT_ASKED
