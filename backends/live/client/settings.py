"""The settings of every connection, as a value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backends.live.client.addresses import Address, resolve

if TYPE_CHECKING:
    from backends.live.client.sasl import Sasl
    from backends.live.client.tls import Tls

CONNECT_TIMEOUT = 3.0
REQUEST_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Everything that a connection needs besides its address; times in seconds.

    ``connect_timeout`` limits name resolution, TCP, TLS, authentication and the first answer together.
    ``tls`` and ``sasl`` are None where the security protocol does without. ``warnings`` are lines for a person.
    ``controllers`` are addresses of controllers (bootstrap.controllers). ``resolver`` gives the IP addresses of a
    host, and raises OSError.
    """

    bootstrap: tuple[Address, ...]
    client_id: str = "ktriage"
    connect_timeout: float = CONNECT_TIMEOUT
    request_timeout: float = REQUEST_TIMEOUT
    tls: Tls | None = None
    sasl: Sasl | None = None
    warnings: tuple[str, ...] = ()
    controllers: tuple[Address, ...] = ()
    resolver: Callable[[Address], Awaitable[tuple[str, ...]]] = resolve

    @property
    def security_protocol(self) -> str:
        """Kafka's name of it: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        layer = "SSL" if self.tls else "PLAINTEXT"
        return f"SASL_{layer}" if self.sasl else layer


@dataclass(frozen=True, slots=True)
class ControllerAccess:
    """How controllers are reached: ``settings`` of their listener, with the addresses to begin with, and by node id
    the address to use in place of the one that the quorum tells.
    """

    settings: ClientSettings
    overrides: Mapping[int, Address] = field(default_factory=dict)
