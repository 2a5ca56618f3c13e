"""Who may speak to a cluster for tests: listeners, users, and the properties that follow on both sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

INTERNAL_USER = "kafka-internal"
INTERNAL_PASSWORD = "kafka-internal-secret"  # noqa: S105 - a cluster for tests, on loopback

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]


@dataclass(frozen=True, slots=True)
class Listener:
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
    """PEM files: the authority's certificate, and the brokers' key followed by its chain."""

    authority: Path
    broker_keystore: Path


def security_properties(
    *,
    listeners: tuple[Listener, ...],
    internal: tuple[str, ...],
    users: Mapping[str, str],
    super_users: tuple[str, ...],
    authorizer: bool,
    files: SecurityFiles | None,
) -> dict[str, str]:
    """The part of a node's ``server.properties`` that says who may speak to it."""
    return {}
