"""GSSAPI (RFC 4752): the ticket of a Kerberos client is shown to a broker, by the system's library."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka.errors import SaslAuthenticationFailed

from backends.live.client.daemon_thread import in_daemon_thread
from backends.live.errors import one_line

SERVICE = "kafka"
_NO_SECURITY_LAYER = 1
"""Authentication only: what follows is as it was (TLS encrypts)."""
_OFFERED = struct.Struct(">BBH")


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """Who logs in to the brokers' ``service``: ``principal`` by its ``keytab``, or, without one, whoever has the
    tickets that kinit got, in ``cache`` (None: where this user has them).
    """

    service: str = SERVICE
    principal: str = ""
    keytab: Path | None = None
    cache: Path | None = None


class TicketExchange:
    """The client's side for one connection to ``host``, the name that the broker's own principal has.

    The steps may wait for the KDC: each in a thread of its own.
    """

    def __init__(self, login: KerberosLogin, host: str) -> None:
        self._login = login
        self._host = host
        self._messages = self._exchange()

    async def step(self, challenge: bytes | None) -> tuple[bytes, bool] | None:
        """The next message to the broker, None when it is satisfied. Raises SaslAuthenticationFailed."""
        return await in_daemon_thread(lambda: self._next(challenge), "Kerberos")

    def _next(self, challenge: bytes | None) -> tuple[bytes, bool] | None:
        from gssapi.raw.misc import GSSError

        try:
            return self._messages.send(challenge), True
        except StopIteration:
            return None
        except GSSError as error:
            # The generic half of the message is empty of meaning where the mechanism gives its own.
            words = error.get_all_statuses(error.min_code, False) or [str(error)]
            raise SaslAuthenticationFailed(f"Kerberos: {one_line('; '.join(words))}") from None
        except (ValueError, struct.error):
            raise SaslAuthenticationFailed("Kerberos: the broker's last message is not RFC 4752's") from None

    def _exchange(self) -> Any:
        import gssapi

        login = self._login
        service = gssapi.Name(
            f"{login.service}@{self._host}", name_type=gssapi.NameType.hostbased_service
        ).canonicalize(gssapi.MechType.kerberos)
        context = gssapi.SecurityContext(
            name=service, creds=_credentials(login), mech=gssapi.MechType.kerberos, usage="initiate"
        )
        challenge = yield context.step()
        while not context.complete:
            challenge = yield context.step(challenge) or b""
        if not challenge:
            challenge = yield b""
        layers = context.unwrap(challenge).message
        if len(layers) != _OFFERED.size or not layers[0] & _NO_SECURITY_LAYER:
            raise SaslAuthenticationFailed("Kerberos: the broker asks for a security layer (sasl.qop)")
        yield context.wrap(_OFFERED.pack(_NO_SECURITY_LAYER, 0, 0), False).message


def _credentials(login: KerberosLogin) -> Any:
    """None: the tickets that this user has."""
    import gssapi

    if login.keytab is None and login.cache is None:
        return None
    store: dict[bytes | str, bytes | str] = {}
    if login.keytab is not None:
        store["client_keytab"] = f"FILE:{login.keytab}"
    # Tickets by a keytab go into memory: those of this user are left as they are.
    ours = f"MEMORY:ktriage-{os.getpid()}-{login.principal}"
    store["ccache"] = ours if login.cache is None else f"FILE:{login.cache}"
    name = None
    if login.principal:
        name = gssapi.Name(login.principal, gssapi.NameType.kerberos_principal)
    return gssapi.Credentials(name=name, usage="initiate", store=store)
