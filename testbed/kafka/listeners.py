"""Listeners and users of a test cluster, and their lines in ``server.properties``.

The internal listeners (controller and inter-broker) are SASL_PLAINTEXT with PLAIN when there is an authorizer, so
that ANONYMOUS has no rights, and PLAINTEXT otherwise. Properties: Kafka's documentation, section "Security".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

INTERNAL_USER = "kafka-internal"
INTERNAL_PASSWORD = "kafka-internal-secret"  # noqa: S105 - a cluster for tests, on loopback

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]

_MODULES = "org.apache.kafka.common.security"
PLAIN_MODULE = f"{_MODULES}.plain.PlainLoginModule"
SCRAM_MODULE = f"{_MODULES}.scram.ScramLoginModule"
OAUTH_MODULE = f"{_MODULES}.oauthbearer.OAuthBearerLoginModule"


@dataclass(frozen=True, slots=True)
class ClientListener:
    """One client listener of every broker. ``client_certificates`` asks for mutual TLS (SSL and SASL_SSL)."""

    name: str = "CLIENT"
    protocol: Protocol = "PLAINTEXT"
    mechanisms: tuple[Mechanism, ...] = ()
    client_certificates: bool = False

    @property
    def encrypted(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class SecurityFiles:
    """PEM files: the authority's certificate, and the brokers' key followed by its certificate."""

    authority: Path
    broker_keystore: Path


def listener_properties(
    listener: ClientListener, users: Mapping[str, str], files: SecurityFiles | None
) -> dict[str, str]:
    """What a broker needs for one client listener."""
    prefix = f"listener.name.{listener.name.lower()}."
    properties: dict[str, str] = {}
    if listener.encrypted and files is not None:
        properties |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(files.broker_keystore),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(files.authority),
            "ssl.client.auth": "required" if listener.client_certificates else "none",
            # The principal of mutual TLS is the name alone, as an operator would write it in an ACL.
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
        }
    if listener.mechanisms:
        properties["sasl.enabled.mechanisms"] = ",".join(listener.mechanisms)
    for mechanism in listener.mechanisms:
        properties[f"{mechanism.lower()}.sasl.jaas.config"] = _server_jaas(mechanism, users)
    return {prefix + key: value for key, value in properties.items()}


def internal_properties(
    listeners: tuple[str, ...], users: Mapping[str, str], super_users: tuple[str, ...]
) -> dict[str, str]:
    """Authorizer, super users, and PLAIN on the internal listeners, for brokers and controllers alike.

    ``users`` may use the controllers' listener too, with their passwords.
    """
    everyone = {**users, INTERNAL_USER: INTERNAL_PASSWORD}
    jaas = _plain(INTERNAL_USER, INTERNAL_PASSWORD, everyone)
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:{name}" for name in (*super_users, INTERNAL_USER)),
        "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    }
    for name in listeners:
        prefix = f"listener.name.{name.lower()}."
        properties[f"{prefix}sasl.enabled.mechanisms"] = "PLAIN"
        properties[f"{prefix}plain.sasl.jaas.config"] = jaas
    return properties


def client_jaas(mechanism: Mechanism, user: str, password: str) -> str:
    """``sasl.jaas.config`` of a Java client. OAUTHBEARER makes its own unsecured token, as the brokers accept."""
    if mechanism == "OAUTHBEARER":
        return f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="{user}";'
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    return f'{module} required username="{user}" password="{password}";'


def _server_jaas(mechanism: Mechanism, users: Mapping[str, str]) -> str:
    if mechanism == "PLAIN":
        return _plain(INTERNAL_USER, INTERNAL_PASSWORD, users)
    if mechanism == "OAUTHBEARER":
        return client_jaas(mechanism, INTERNAL_USER, "")
    return f"{SCRAM_MODULE} required;"


def _plain(user: str, password: str, users: Mapping[str, str]) -> str:
    accepted = " ".join(f'user_{name}="{secret}"' for name, secret in users.items())
    return f'{PLAIN_MODULE} required username="{user}" password="{password}" {accepted};'
