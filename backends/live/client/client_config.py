"""From a client.properties file to settings: the keys that Kafka's tools take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from backends.live.client.addresses import Address, parse_addresses
from backends.live.client.properties import (
    Properties,
    PropertiesError,
    Property,
    read_properties,
    resolve_variables,
)
from backends.live.client.sasl_keys import read_sasl
from backends.live.client.settings import CONNECT_TIMEOUT, REQUEST_TIMEOUT, ClientSettings
from backends.live.client.ssl_keys import read_tls

T = TypeVar("T")

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def load_settings(path: Path | None, bootstrap: Iterable[Address] = ()) -> ClientSettings:
    """Settings from the file at ``path`` (None: Kafka's defaults); ``bootstrap`` goes before the file's.

    Raises PropertiesError: one line with the file, the line and what to do, and none of its values that may be
    secret. A key that is not known becomes a line in ``warnings``.
    """
    given = tuple(bootstrap)
    if path is None:
        return ClientSettings(bootstrap=given)
    try:
        return settings_from(read_properties(path), given)
    except PropertiesError as error:
        # Without the traceback: its frames hold lines of the file.
        raise PropertiesError(str(error)) from None


def settings_from(properties: Properties, bootstrap: tuple[Address, ...] = ()) -> ClientSettings:
    """As :func:`load_settings`, from properties that were read already."""
    properties = resolve_variables(properties)
    protocol = _protocol(properties.get("security.protocol"))
    settings = ClientSettings(
        bootstrap=bootstrap or _read(properties, "bootstrap.servers", parse_addresses, ()),
        client_id=_read(properties, "client.id", str, "ktriage") or "ktriage",
        connect_timeout=_read(properties, "socket.connection.setup.timeout.ms", _seconds, CONNECT_TIMEOUT),
        request_timeout=_read(properties, "request.timeout.ms", _seconds, REQUEST_TIMEOUT),
        tls=read_tls(properties) if protocol.endswith("SSL") else None,
        sasl=read_sasl(properties, protocol) if protocol.startswith("SASL") else None,
    )
    return replace(settings, warnings=tuple(_unknown_keys(properties)))


def _protocol(given: Property | None) -> str:
    if given is None:
        return "PLAINTEXT"
    protocol = given.text.upper()
    if protocol not in _PROTOCOLS:
        raise PropertiesError(f"{given.where}: security.protocol is one of {', '.join(_PROTOCOLS)}")
    return protocol


def _read(properties: Properties, key: str, read: Callable[[str], T], default: T) -> T:
    given = properties.get(key)
    if given is None:
        return default
    try:
        return read(given.text)
    except ValueError as error:
        raise PropertiesError(f"{given.where}: {key}: {error}") from None


def _seconds(text: str) -> float:
    if not text.isdecimal() or int(text) == 0:
        raise ValueError("expected a number of milliseconds above 0")
    return int(text) / 1000


def _unknown_keys(properties: Properties) -> Iterable[str]:
    for key, entry in properties.items():
        if not is_known(key):
            yield f"{entry.where}: {key} is not used here"


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

# Settings of Kafka's own client, producer or consumer that have no effect here.
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
    """False for an unknown key, and for a key that would change the connection and is not supported."""
    return key in _USED or key.startswith(_OF_NO_MATTER)
