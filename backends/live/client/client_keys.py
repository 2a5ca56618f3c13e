"""The keys of Kafka's clients (CommonClientConfigs, SslConfigs, SaslConfigs): used here, or of no matter here."""

from __future__ import annotations

_USED = frozenset(
    (
        "bootstrap.servers",
        "client.id",
        "request.timeout.ms",
        "socket.connection.setup.timeout.ms",
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.certificates",
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
        "ssl.enabled.protocols",
        "ssl.protocol",
    )
)

# They say how Kafka's own client goes about its work, or what a producer or consumer beside it does.
_OF_NO_MATTER = (
    "acks",
    "auto.",
    "bootstrap.controllers",
    "client.dns.lookup",
    "client.rack",
    "compression.",
    "config.providers",
    "connections.max.idle.ms",
    "default.api.timeout.ms",
    "enable.",
    "group.",
    "key.",
    "metadata.",
    "metric",
    "receive.buffer.bytes",
    "reconnect.",
    "retries",
    "retry.",
    "sasl.kerberos.",
    "sasl.login.",
    "sasl.oauthbearer.",
    "security.providers",
    "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms",
    "ssl.keymanager.algorithm",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "value.",
)


def is_known(key: str) -> bool:
    """False for a key that nobody here knows, and for those that would change what a connection is."""
    return key in _USED or key.startswith(_OF_NO_MATTER)
