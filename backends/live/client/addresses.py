"""Host and port of a node: parsing, and name resolution."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from backends.live.client.daemon_thread import ThreadLimit, in_daemon_thread

DEFAULT_PORT = 9092
_MAX_PORT = 65535
_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_RESOLVING = ThreadLimit(32)
"""A cluster may list thousands of names, and a resolver may hang with each of them."""


class Address(NamedTuple):
    """Where a broker listens, as it is written: a name or an IP address, and a port.

    ``certified`` is the name that its certificate has to have, and that SNI says (RFC 6066): behind a tunnel it is
    not the tunnel's; "" where it is ``host``.
    """

    host: str
    port: int
    certified: str = ""

    @property
    def place(self) -> tuple[str, int]:
        """Where connections are made to."""
        return self.host, self.port

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Read ``host:port``, ``[v6]:port`` or ``host`` (port 9092), and before it ``NAME@`` where the certificate
    there has that name. Raises ValueError with one line.
    """
    whole = text.strip()
    certified, at, text = whole.rpartition("@")
    if at and not _HOST_NAME.fullmatch(certified):
        raise ValueError(f"{whole!r} is not an address: expected NAME@host:port with a host name")
    if text.startswith("["):
        host, closing, rest = text[1:].partition("]")
        port_text = rest.removeprefix(":")
        if not closing or (rest and not rest.startswith(":")):
            raise ValueError(f"{text!r} is not an address: expected [v6-address]:port")
    elif "://" in text:
        raise ValueError(f"{text!r} is not an address: expected host:port, without a scheme")
    elif text.count(":") > 1:
        raise ValueError(f"{text!r} is not an address: an IPv6 address is written [address]:port")
    else:
        host, _, port_text = text.partition(":")
    port = int(port_text) if port_text.isdecimal() and port_text.isascii() else 0
    if not port_text and not text.endswith(":"):
        port = DEFAULT_PORT
    if not host or any(c.isspace() for c in host) or not 0 < port <= _MAX_PORT:
        raise ValueError(f"{text!r} is not an address: expected host:port")
    return Address(host, port, certified)


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Read a comma-separated list, as ``bootstrap.servers`` has it. Raises ValueError; never empty."""
    found = tuple(dict.fromkeys(parse_address(part) for part in text.split(",") if part.strip()))
    if not found:
        raise ValueError("no address given: expected host:port, or several separated by commas")
    return found


async def resolve(address: Address) -> tuple[str, ...]:
    """The IP addresses of the host, in the resolver's order; an IP address is its own answer.

    Raises socket.gaierror.
    """
    if _is_ip(address.host):
        return (address.host,)

    def addresses() -> tuple[str, ...]:
        try:
            return _distinct(socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM))
        except UnicodeError:
            raise socket.gaierror(socket.EAI_NONAME, "not a host name") from None

    return await in_daemon_thread(addresses, f"resolve {address.host}", _RESOLVING)


def _distinct(found: Iterable[tuple[object, object, object, object, tuple[object, ...]]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def _is_ip(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):
            socket.inet_pton(family, host)
            return True
    return False
