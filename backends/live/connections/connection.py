"""One connection to one broker: its requests take turns, and every failure is a :class:`BrokerError`."""

from __future__ import annotations

import asyncio
import itertools
import logging
import struct
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Protocol, TypeVar

from kio.serial.errors import SerialError
from kio.static.protocol import ResponsePayload

from backends.base.errors import NotOffered, Refused
from backends.live.client.addresses import Address
from backends.live.client.secret import Secret
from backends.live.client.settings import ClientSettings
from backends.live.codec.aiokafka_requests import CarriedRequest, Packed, RawAnswer, Sendable, read_exactly
from backends.live.codec.apis import USES, Api
from backends.live.codec.column_reader import NeedsFullDecoder
from backends.live.connections.api_versions import ApiVersionsAnswer
from backends.live.connections.transport import Transport, explain, protocol_hint
from backends.live.connections.turns import Turns
from backends.live.errors import BrokerError, ConnectionProblem, one_line

R = TypeVar("R", bound=ResponsePayload)

_LOG = logging.getLogger("ktriage.connections")
"""Connections and how they end; each request where DEBUG is wanted. Addresses, names and numbers, no content."""


class Throttling(Protocol):
    """An answer with a throttle time."""

    @property
    def throttle_ms(self) -> int: ...


C = TypeVar("C", bound=Throttling)

_serial = itertools.count(1)

TOGETHER = 8
"""Requests that are written before the first of them is answered, where they are ``ahead``."""


class BrokerConnection:
    """An open connection: TLS and SASL are done, the broker's versions are known.

    It never reconnects. After a failed, timed-out or cancelled request it stays closed, so that ``identity`` names
    the one connection that carried an answer.
    ``broker`` is the expected id (None: any), ``verified`` is True once the node has confirmed it, ``answers``
    counts its answers.
    """

    def __init__(
        self,
        address: Address,
        broker: int | None,
        transport: Transport,
        hello: ApiVersionsAnswer,
        settings: ClientSettings,
    ) -> None:
        self.address = address
        self.broker = broker
        self.verified = False
        self.identity = next(_serial)
        self._hello = hello
        self._transport = transport
        self._settings = settings
        self._turns = Turns(TOGETHER)
        self._overdue = ""
        self._resume_at = 0.0
        self.answers = 0

    @classmethod
    async def open(
        cls,
        address: Address,
        settings: ClientSettings,
        *,
        broker: int | None = None,
        timeout: float | None = None,
    ) -> BrokerConnection:
        """Connect to ``address`` in at most ``timeout`` seconds (default: the settings' connect timeout).

        The time covers the name, TCP, TLS, authentication and the first answer; a token that has to be
        fetched first does not count. Raises BrokerError.
        """
        where = place(address, broker)
        began = asyncio.get_running_loop().time()
        try:
            conn = await cls._open(address, settings, broker, where, timeout)
        except BrokerError as error:
            _LOG.info("%s", error)
            raise
        took = asyncio.get_running_loop().time() - began
        _LOG.info("%s: connected by %s in %.0f ms", where, settings.security_protocol, took * 1000)
        return conn

    @classmethod
    async def _open(
        cls, address: Address, settings: ClientSettings, broker: int | None, where: str, timeout: float | None
    ) -> BrokerConnection:
        token = await _token(settings, where)
        limit = settings.connect_timeout if timeout is None else timeout
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit
        ips = await _resolve(address, where, limit, settings)
        for left, ip in zip(range(len(ips), 0, -1), ips, strict=True):
            transport = Transport(ip, address, settings, token)
            try:
                hello = await _greet(transport, where, (deadline - loop.time()) / left, settings)
            except BrokerError as error:
                if error.reached or left == 1:
                    raise
            else:
                return cls(address, broker, transport, hello, settings)
        raise AssertionError("a name resolves to at least one address")

    @property
    def where(self) -> str:
        """The broker and its address, as errors name it."""
        return place(self.address, self.broker)

    @property
    def request_timeout(self) -> float:
        """Default timeout of a request, in seconds."""
        return self._settings.request_timeout

    @property
    def peer(self) -> Address:
        """The IP address and port of the connection."""
        return Address(self._transport.host, self._transport.port)

    @property
    def closed(self) -> bool:
        """True once the connection is closed; it is never opened again."""
        return not self._transport.connected()

    @property
    def features(self) -> Mapping[str, int] | None:
        """Finalised features by name; None where the broker does not know any metadata yet."""
        return self._hello.features

    @property
    def api_keys(self) -> Mapping[int, tuple[int, int]]:
        """Every call that the broker serves: api key to (lowest, highest version)."""
        return self._hello.versions

    def highest(self, api: Api) -> int | None:
        """The highest version of that call that is sent here and that the broker serves; None: there is none."""
        return max(filter(partial(self._serves, api), USES[api].sent), default=None)

    def require(self, api: Api) -> int:
        """As :meth:`highest`. Raises NotOffered."""
        version = self.highest(api)
        if version is None:
            raise self._not_offered(api.name)
        return version

    def _serves(self, api_key: int, version: int) -> bool:
        lowest, highest = self._hello.versions.get(api_key, (0, -1))
        return lowest <= version <= highest

    def _not_offered(self, call: str) -> NotOffered:
        return NotOffered(f"{self.where}: does not offer {call} in a version known here")

    async def send(
        self,
        request: Sendable,
        response_type: type[R],
        *,
        timeout: float | None = None,
        ahead: bool = False,
    ) -> R:
        """Send ``request`` and return its decoded answer, whatever error codes that holds.

        ``timeout`` in seconds (default: the settings' request timeout) covers waiting for the turn and for
        the end of a throttle as well. ``ahead`` is for questions: they are written while earlier ones are not
        answered yet. Raises BrokerError; after it the connection is closed, except where the request was never
        written. Cancelling closes it too: nobody would take the answer.
        Raises Refused where the request holds a value that Kafka's protocol cannot carry, and NotOffered where the
        broker does not serve its version.
        """
        kind = request.request_type if isinstance(request, Packed) else type(request)
        if not self._serves(kind.__api_key__, kind.__version__):
            raise self._not_offered(kind.__name__.removesuffix("Request"))
        return self.decoded(await self.raw(request, timeout=timeout, ahead=ahead), response_type)

    async def send_exactly(
        self, request: Sendable, response_type: type[R], *, timeout: float | None = None
    ) -> R | None:
        """As :meth:`send`; None where the answer is not of that type to its last byte, and nothing is closed.

        For calls that no release has: a broker may serve another under the same number.
        """
        return self.decoded_exactly(await self.raw(request, timeout=timeout), response_type)

    async def raw(self, request: Sendable, *, timeout: float | None = None, ahead: bool = False) -> RawAnswer:
        """As :meth:`send`, the answer undecoded: for :meth:`columns` and :meth:`decoded`."""
        return await self._carry(request, timeout, ahead)

    def columns(self, raw: RawAnswer, read: Callable[[bytes, int], C]) -> C | None:
        """The answer as ``read`` takes it; None where that raises NeedsFullDecoder, so that it must be decoded."""
        try:
            reported = read(raw.data, raw.offset)
        except NeedsFullDecoder:
            return None
        self._throttled(reported.throttle_ms / 1000)
        return reported

    def decoded(self, raw: RawAnswer, response_type: type[R]) -> R:
        """The answer. Raises BrokerError, and closes the connection, where the bytes do not fit."""
        try:
            answer = raw.read(response_type)
        except Exception as error:
            self.close()
            detail = f"answer to {response_type.__name__} not understood ({type(error).__name__})"
            raise self._error(ConnectionProblem.UNDECODABLE, detail, sent=True) from None
        self._note_throttle(answer)
        return answer

    def decoded_exactly(self, raw: RawAnswer, response_type: type[R]) -> R | None:
        """As :meth:`send_exactly`."""
        try:
            answer = read_exactly(response_type, raw.data, raw.offset)
        except Exception:  # kio has a kind of error for each format
            return None
        self._note_throttle(answer)
        return answer

    async def _carry(self, request: Sendable, timeout: float | None, ahead: bool) -> RawAnswer:
        """One request and its undecoded answer, in its turn."""
        carried = _encoded(request)
        limit = self._settings.request_timeout if timeout is None else timeout
        deadline = asyncio.get_running_loop().time() + limit
        in_turn = False
        try:
            async with self._turns.turn(shared=ahead, deadline=deadline):
                in_turn = True
                await self._wait_out_throttle(deadline, limit)
                return await self._exchange(carried, deadline, limit)
        except TimeoutError:
            if in_turn:
                raise
            detail = f"no answer within {limit:g} s to an earlier request"
            raise self._error(ConnectionProblem.NO_ANSWER, detail).behind_another() from None

    def close(self) -> None:
        """Close at once; what is in flight fails. May be called in any state."""
        self._transport.drop()

    async def _wait_out_throttle(self, deadline: float, limit: float) -> None:
        now = asyncio.get_running_loop().time()
        if self._resume_at > deadline:
            detail = f"throttled for {self._resume_at - now:.1f} s more, which is beyond {limit:g} s"
            raise self._error(ConnectionProblem.NO_ANSWER, detail)
        if self._resume_at > now:
            await asyncio.sleep(self._resume_at - now)

    async def _exchange(self, carried: CarriedRequest, deadline: float, limit: float) -> RawAnswer:
        if self.closed:
            raise self._error(ConnectionProblem.CLOSED, "connection closed")
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(deadline):
                raw: RawAnswer = await self._transport.send(carried)
        except TimeoutError:
            self._overdue = self._overdue or f"no answer within {limit:g} s"
            self.close()
            raise self._error(
                ConnectionProblem.NO_ANSWER, f"no answer within {limit:g} s", sent=True
            ) from None
        except Exception as error:
            self.close()
            if self._overdue:
                detail = f"{self._overdue} to an earlier request"
                raise self._error(ConnectionProblem.NO_ANSWER, detail, sent=True).behind_another() from None
            # A listener with another security.protocol may answer ApiVersions, and nothing after it.
            hint = "" if self.answers else protocol_hint(self._settings)
            raise self._error(*explain(error, hint), sent=True) from None
        except asyncio.CancelledError:
            self.close()
            raise
        self.answers += 1
        if _LOG.isEnabledFor(logging.DEBUG):
            took = asyncio.get_running_loop().time() - began
            _LOG.debug("%s: %s: %.0f ms, %d bytes", self.where, carried.name, took * 1000, len(raw.data))
        return raw

    def _note_throttle(self, answer: ResponsePayload) -> None:
        throttle = getattr(answer, "throttle_time", None)
        if isinstance(throttle, timedelta):
            self._throttled(throttle.total_seconds())

    def _throttled(self, seconds: float) -> None:
        if seconds:
            self._resume_at = asyncio.get_running_loop().time() + seconds

    def _error(self, trouble: ConnectionProblem, detail: str, *, sent: bool = False) -> BrokerError:
        return BrokerError(trouble, self.where, detail, sent=sent)


def _encoded(request: Sendable) -> CarriedRequest:
    try:
        return CarriedRequest(request)
    except (ValueError, OverflowError, struct.error, SerialError) as error:
        raise Refused(f"nothing sent: the request cannot be written ({one_line(error)})") from None


def place(address: Address | None, broker: int | None) -> str:
    """``broker 3 at host:port``, as far as each is known."""
    at = str(address) if address else "an unknown address"
    return at if broker is None else f"broker {broker} at {at}"


async def _token(settings: ClientSettings, where: str) -> Secret | None:
    if settings.sasl is None or settings.sasl.token is None:
        return None
    try:
        async with asyncio.timeout(settings.request_timeout):
            return await settings.sasl.token()
    except TimeoutError:
        detail = f"no OAuth token within {settings.request_timeout:g} s"
    except (OSError, ValueError) as error:
        detail = f"no OAuth token: {error}"
    raise BrokerError(ConnectionProblem.AUTHENTICATION, where, detail)


async def _resolve(address: Address, where: str, limit: float, settings: ClientSettings) -> tuple[str, ...]:
    try:
        async with asyncio.timeout(limit):
            return await settings.resolver(address)
    except TimeoutError:
        raise BrokerError(
            ConnectionProblem.UNRESOLVED, where, f"name not resolved within {limit:g} s"
        ) from None
    except OSError as error:
        raise BrokerError(
            ConnectionProblem.UNRESOLVED, where, f"name not resolved: {error.strerror or error}"
        ) from None


async def _greet(
    transport: Transport, where: str, limit: float, settings: ClientSettings
) -> ApiVersionsAnswer:
    try:
        async with asyncio.timeout(limit):
            await transport.connect()
    except TimeoutError:
        transport.drop()
        if transport.talking:
            detail = f"took the connection, but no answer within {limit:.1f} s"
            raise BrokerError(ConnectionProblem.NO_ANSWER, where, detail) from None
        raise BrokerError(
            ConnectionProblem.CONNECT_TIMEOUT, where, f"connect timed out after {limit:.1f} s"
        ) from None
    except Exception as error:
        transport.drop()
        explained = explain(error, protocol_hint(settings), transport.shared)
        raise BrokerError(*_placed(where, explained)) from None
    except asyncio.CancelledError:
        transport.drop()
        raise
    transport.greeted = True
    assert transport.hello is not None
    return transport.hello


def _placed(where: str, reported: tuple[ConnectionProblem, str]) -> tuple[ConnectionProblem, str, str]:
    return reported[0], where, reported[1]
