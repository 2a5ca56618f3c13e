"""aiokafka's connection as the transport of our requests: TCP, TLS, SASL, and what its failures mean."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Sequence
from struct import Struct
from typing import Any

from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import (
    CorrelationIdError,
    IllegalSaslStateError,
    KafkaConnectionError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from backends.live.client.addresses import Address
from backends.live.client.kerberos import TicketExchange
from backends.live.client.sasl import Bearer, Scram
from backends.live.client.secret import Secret
from backends.live.client.settings import ClientSettings
from backends.live.connections.api_versions import (
    NEWEST,
    ApiVersionsAnswer,
    api_versions_request,
    asks_again_with,
    read_api_versions,
)
from backends.live.errors import ConnectionProblem, one_line

_NO_LIMIT_MS = 24 * 3600 * 1000
"""aiokafka's own timeout, as good as none: each of our awaits has its own deadline."""

LARGEST = 256 << 20
"""Largest answer in bytes: a description of 200,000 partitions is a tenth of it."""
LARGEST_GREETING = 1 << 20
"""Until the peer has answered as a broker does: a listener that is no Kafka is given no memory."""

_LENGTH = Struct(">i")
_AUTHENTICATION = (SaslAuthenticationFailed, UnsupportedSaslMechanismError, IllegalSaslStateError)


class Transport(AIOKafkaConnection):  # type: ignore[misc]  # aiokafka ships no types
    """A connection to one IP address. ``talking`` is True from the first request on, when TCP and TLS are up.
    ``hello`` is what the peer said of the requests that it supports, ``greeted``: it has said so. ``shared``
    are the secrets that it may be told.
    """

    def __init__(self, ip: str, address: Address, settings: ClientSettings, token: Secret | None) -> None:
        sasl = settings.sasl
        self._address = address
        self._kerberos = sasl.kerberos if sasl else None
        self._bearer = Bearer(token, sasl.extensions) if sasl and token else None
        self.shared = tuple(secret for secret in (token, sasl and sasl.password) if secret)
        super().__init__(
            ip,
            address.port,
            client_id=settings.client_id,
            request_timeout_ms=_NO_LIMIT_MS,
            ssl_context=settings.tls.context(address.certified or address.host) if settings.tls else None,
            security_protocol=settings.security_protocol,
            sasl_mechanism=sasl.mechanism if sasl else None,
            sasl_plain_username=sasl.username if sasl else None,
            sasl_plain_password=sasl.password.reveal() if sasl and sasl.password else None,
            sasl_oauth_token_provider=self._bearer,
        )
        self.talking = False
        self.greeted = False
        self.hello: ApiVersionsAnswer | None = None

    async def _do_version_lookup(self) -> None:
        """aiokafka's hook, before it authenticates: its own request has no features, and would be one more."""
        await self.ask_versions(NEWEST)

    async def ask_versions(self, version: int) -> None:
        """Sets ``hello``. ``version`` is the one of ApiVersions to ask with. Raises what decoding raises."""
        answer = await self.send(api_versions_request(version))
        if (other := asks_again_with(answer)) is not None:
            version = other
            answer = await self.send(api_versions_request(version))
        self.hello = read_api_versions(answer, version)
        self._versions = dict(self.hello.versions)

    @staticmethod
    async def _read(self_ref: Any) -> None:
        """aiokafka's read loop, with a limit: its own waits for a frame of any size that a peer announces."""
        transport = self_ref()
        if transport is None:
            return
        reader = transport._reader
        del transport
        while True:
            (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
            transport = self_ref()
            if transport is None:
                return
            largest = LARGEST if transport.greeted else LARGEST_GREETING
            del transport
            if not _LENGTH.size <= size <= largest:
                raise ValueError(f"a frame of {size} bytes was announced")
            frame = await reader.readexactly(size)
            transport = self_ref()
            if transport is None:
                return
            if not transport._requests:
                raise ValueError("an answer came that nobody had asked for")
            transport._handle_frame(frame)
            del transport

    def send(self, request: Any, expect_response: bool = True) -> Any:
        """Write a request; the awaitable gives its answer.

        aiokafka's own method logs the request as well, with the password or token that is in a SaslAuthenticate.
        """
        if self._writer is None or not expect_response:
            raise KafkaConnectionError(f"no connection to {self._host}:{self._port}")
        self.talking = True
        prepared = request.prepare(self._versions)
        correlation_id = self._next_correlation_id()
        header = prepared.build_request_header(correlation_id=correlation_id, client_id=self._client_id)
        message = header.encode() + prepared.encode()
        try:
            self._writer.write(_LENGTH.pack(len(message)) + message)
        except OSError as error:
            self.close(reason=CloseReason.CONNECTION_BROKEN)
            raise KafkaConnectionError(f"connection to {self._host}:{self._port} broken") from error
        answer = self._loop.create_future()
        self._requests.append((correlation_id, prepared, answer))
        return answer

    def authenticator_oauth(self) -> Bearer | None:
        """aiokafka's hook: its own authenticator takes a refusal of the broker for success."""
        return self._bearer

    def authenticator_gssapi(self) -> TicketExchange:
        """aiokafka's hook: its own names the broker by the IP address that it connects to."""
        assert self._kerberos is not None, "GSSAPI is not configured without it"
        return TicketExchange(self._kerberos, self._address.certified or self._address.host)

    def authenticator_scram(self) -> Scram:
        """aiokafka's hook."""
        return Scram(
            loop=self._loop,
            sasl_plain_password=self._sasl_plain_password,
            sasl_plain_username=self._sasl_plain_username,
            sasl_mechanism=self._sasl_mechanism,
        )

    def drop(self) -> None:
        """Close at once, without the TLS close handshake: a peer that hangs would never finish it."""
        writer: asyncio.StreamWriter | None = self._writer
        self.close()
        if writer is not None:
            writer.transport.abort()


def explain(
    error: BaseException, hint: str = "", shared: Sequence[Secret] = ()
) -> tuple[ConnectionProblem, str]:
    """What an exception of the transport means, and one line that says so, without any secret.

    ``hint`` is added where the listener may want another security.protocol. ``shared`` are the secrets that the
    peer was told: it may send them back.
    """
    cause = error.__cause__ if isinstance(error, KafkaConnectionError) else None
    error = cause if isinstance(cause, Exception) else error
    if isinstance(error, _AUTHENTICATION):
        bare = isinstance(error, IllegalSaslStateError)
        why = f"this listener does not authenticate anybody{hint}" if bare else _broker_message(error, shared)
        if isinstance(error, UnsupportedSaslMechanismError):
            why = "this listener does not offer that sasl.mechanism"
        return ConnectionProblem.AUTHENTICATION, f"authentication failed: {why}"
    if isinstance(error, CorrelationIdError):
        return ConnectionProblem.UNDECODABLE, "the answer is to another request"
    if isinstance(error, (EOFError, KafkaConnectionError)):
        by_peer = isinstance(error, EOFError)  # aiokafka gives no cause where we closed it ourselves
        return (
            ConnectionProblem.CLOSED,
            f"connection closed by peer{hint}" if by_peer else "connection closed",
        )
    if isinstance(error, ssl.SSLError):
        return ConnectionProblem.TLS, f"TLS: {_tls_words(error)}"
    if isinstance(error, OSError):
        return _explain_os(error, hint)
    # The decoder's own message helps nobody but its authors.
    kind = type(error).__name__
    return (
        ConnectionProblem.UNDECODABLE,
        f"answer not understood: it is not in Kafka's protocol ({kind}){hint}",
    )


def _explain_os(error: OSError, hint: str) -> tuple[ConnectionProblem, str]:
    words = one_line(error.strerror or type(error).__name__)
    match error:
        case socket.gaierror():
            reported = ConnectionProblem.UNRESOLVED, f"name not resolved: {words}"
        case ConnectionRefusedError():
            reported = ConnectionProblem.REFUSED, "connection refused"
        case OSError(errno=errno.EHOSTUNREACH | errno.ENETUNREACH | errno.EHOSTDOWN | errno.EADDRNOTAVAIL):
            reported = ConnectionProblem.NO_ROUTE, f"no route: {words}"
        case TimeoutError():
            reported = ConnectionProblem.CONNECT_TIMEOUT, "connect timed out"
        case ConnectionError():
            reported = ConnectionProblem.CLOSED, f"connection closed by peer{hint}"
        case _:
            reported = ConnectionProblem.CLOSED, f"connection lost: {words}"
    return reported


def _broker_message(error: BaseException, shared: Sequence[Secret]) -> str:
    # The broker's own words; aiokafka puts the connection itself there where the broker said nothing.
    words = next((a for a in error.args if isinstance(a, str) and a), type(error).__name__)
    for secret in shared:
        words = words.replace(secret.reveal(), str(secret))
    return one_line(words)


def _tls_words(error: ssl.SSLError) -> str:
    reason = error.reason or type(error).__name__
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {one_line(error.verify_message)}"
    if reason in ("WRONG_VERSION_NUMBER", "UNEXPECTED_EOF_WHILE_READING", "RECORD_LAYER_FAILURE"):
        return f"{reason} (does this listener speak TLS?)"
    if "CERTIFICATE_REQUIRED" in reason or "BAD_CERTIFICATE" in reason or "HANDSHAKE_FAILURE" in reason:
        return f"{reason} (does the broker want another client certificate? ssl.keystore.*)"
    return reason


def protocol_hint(settings: ClientSettings) -> str:
    """The usual reason why a broker closes the connection before it answers ApiVersions."""
    return f" (security.protocol is {settings.security_protocol}: is that what this listener wants?)"
