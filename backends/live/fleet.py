"""The brokers of one cluster: where they are, whom to ask, and one connection to each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from kio.static.protocol import RequestPayload, ResponsePayload

from backends.base.answers import Quorum
from backends.base.errors import BackendError
from backends.live.addresses import Address
from backends.live.cluster import ClusterDescription, describe_cluster
from backends.live.connection import BrokerConnection
from backends.live.errors import BrokerError, NobodyReached, Trouble, as_unknown
from backends.live.identity import check_cluster, check_node
from backends.live.quorum import describe_quorum
from backends.live.race import NobodyAnswered, first_answer, retrieve
from backends.live.settings import ClientSettings
from recovery.model import Broker, Unknown

R = TypeVar("R", bound=ResponsePayload)
T = TypeVar("T")

FRESH_FOR = 2.0
"""Seconds for which one look at the quorum serves to choose whom to ask."""
QUORUM_TIMEOUT = 3.0
CUT_OFF_MS = 3000
"""A broker this much further behind in the metadata than the best one is cut off, not just slow."""
PATIENCE = 1.0
"""Seconds before a question that may be asked twice is put to the next broker as well."""

SEED = -1
"""The id of a bootstrap connection whose node is not known."""

_ELSEWHERE = (Trouble.UNRESOLVED, Trouble.NO_ROUTE, Trouble.CONNECT_TIMEOUT)


class Told(NamedTuple, Generic[T]):
    """An answer of some broker: SEED where the node's id is not known.

    ``caught_up`` is None where the quorum could not be asked whether that broker has the latest metadata.
    """

    value: T
    broker: int
    caught_up: bool | None


class Fleet:
    """The brokers of one cluster. Connections are opened when first needed and reopened when they are gone.

    ``overrides`` (``--broker ID=HOST:PORT``) go before the addresses that the cluster advertises. An address
    that was listed once is remembered: 3.9 lists no fenced broker.
    """

    def __init__(self, settings: ClientSettings, overrides: Mapping[int, Address] | None = None) -> None:
        self.settings = settings
        self.overrides = dict(overrides or {})
        self.cluster_id = ""
        self.brokers: tuple[Broker, ...] = ()
        self._known: dict[int, Address] = {}
        self._connections: dict[int, BrokerConnection] = {}
        self._opening: dict[int, asyncio.Task[BrokerConnection]] = {}
        self._leftovers: set[asyncio.Task[Any]] = set()
        self._quorum: tuple[float, Quorum | Unknown] | None = None
        self._quorum_task: asyncio.Task[Quorum | Unknown] | None = None
        self._closed = False

    async def open(self) -> ClusterDescription:
        """Find the cluster by the bootstrap servers, all tried at once; the first that answers serves.

        Raises Unreachable, which names each server with its reason.
        """
        seeds = [self._seed(address) for address in self.settings.bootstrap]
        try:
            seed, described = await first_answer(seeds, patience=0.0, discard=lambda late: late[0].close())
        except NobodyAnswered as error:
            raise NobodyReached(f"no bootstrap server could be asked: {error}", sent=False) from None
        self.cluster_id = described.cluster_id
        self._learn(described)
        await self._adopt(seed)
        return described

    async def close(self) -> None:
        """Let go of every connection, in any state; what is in flight fails."""
        self._closed = True
        tasks = [*self._opening.values(), *self._leftovers]
        if self._quorum_task is not None:
            tasks.append(self._quorum_task)
        for task in tasks:
            task.cancel()
        for conn in self._connections.values():
            conn.close()
        self._connections.clear()
        await asyncio.gather(*tasks, return_exceptions=True)

    def address(self, broker: int) -> Address | None:
        """Where that broker is asked: the override, else as advertised; None: not known."""
        return self.overrides.get(broker) or self._known.get(broker)

    def current(self, broker: int) -> BrokerConnection | None:
        """The open connection to that broker, if there is one; opens none."""
        conn = self._connections.get(broker)
        return conn if conn is not None and not conn.closed else None

    async def connection(self, broker: int) -> BrokerConnection:
        """The connection to that broker, opened if need be and its identity checked. Raises BrokerError.

        Callers that need it at the same time share one attempt, and its failure.
        """
        conn = self.current(broker)
        if conn is not None and (broker == SEED or self.address(broker) in (conn.address, conn.peer, None)):
            return conn
        if self._closed:
            raise BrokerError(Trouble.CLOSED, f"broker {broker}", "closed here")
        task = self._opening.get(broker)
        if task is None:
            task = asyncio.ensure_future(self._connect(broker))
            self._opening[broker] = task
            task.add_done_callback(lambda done: self._opened(broker, done))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and self._closed:
                raise BrokerError(Trouble.CLOSED, f"broker {broker}", "closed here") from None
            raise

    async def send(
        self, broker: int, request: RequestPayload, response_type: type[R], *, timeout: float | None = None
    ) -> R:
        """Send to that broker; ``timeout`` does not count the time to connect. Raises BrokerError."""
        conn = await self.connection(broker)
        return await conn.send(request, response_type, timeout=timeout)

    async def any(self, ask: Callable[[BrokerConnection], Awaitable[T]], *, again: bool = True) -> Told[T]:
        """Put a question that any broker can answer to one that has the latest metadata.

        When one fails the next is asked, and when it takes its time the next one as well. ``again`` False is
        for what must not be sent twice: the next is asked only where surely nothing was sent.
        Raises NotAllowed, Unreachable, or the error that the last broker gave.
        """
        quorum = await self.quorum()
        caught_up = self.caught_up(quorum)
        asks = [self._ask(broker, ask, caught_up) for broker in self._order(caught_up)]
        try:
            if again:
                return await first_answer(asks, patience=PATIENCE, leave=self._leftovers)
            return await _one_by_one(asks)
        except NobodyAnswered as error:
            self._quorum = None
            if all(isinstance(e, BrokerError) for e in error.errors):
                raise NobodyReached(f"no broker could be asked: {error}", sent=again) from None
            raise next(e for e in reversed(error.errors) if not isinstance(e, BrokerError)) from None

    async def refresh(self) -> Told[ClusterDescription]:
        """Ask for the brokers again. Raises as :meth:`any`."""
        told = await self.any(describe_cluster)
        self._learn(told.value)
        return told

    async def quorum(self, *, max_age: float = FRESH_FOR) -> Quorum | Unknown:
        """The quorum as it was at most ``max_age`` seconds ago; Unknown, with the reason, where it is not had."""
        now = asyncio.get_running_loop().time()
        if self._quorum is not None and now - self._quorum[0] <= max_age:
            return self._quorum[1]
        if self._quorum_task is None:
            self._quorum_task = asyncio.ensure_future(self._ask_quorum())
        return await asyncio.shield(self._quorum_task)

    def caught_up(self, quorum: Quorum | Unknown) -> frozenset[int] | None:
        """The brokers that the quorum's leader sees at the head of the metadata; None: not known."""
        if isinstance(quorum, Unknown):
            return None
        replicas = (*quorum.voters, *quorum.observers)
        newest = max((r.last_caught_up_ms for r in replicas), default=-1)
        return frozenset(
            r.id for r in replicas if r.last_caught_up_ms >= 0 and newest - r.last_caught_up_ms <= CUT_OFF_MS
        )

    def _seed(self, address: Address) -> Callable[[], Awaitable[tuple[BrokerConnection, ClusterDescription]]]:
        async def ask() -> tuple[BrokerConnection, ClusterDescription]:
            conn = await BrokerConnection.open(address, self.settings)
            try:
                described = await describe_cluster(conn, timeout=self.settings.connect_timeout)
            except BaseException:
                conn.close()
                raise
            return conn, described

        return ask

    def _learn(self, described: ClusterDescription) -> None:
        self.brokers = described.brokers
        self._known.update({b.id: Address(b.host, b.port) for b in described.brokers})

    async def _adopt(self, seed: BrokerConnection) -> None:
        """Keep the bootstrap connection: as that of the broker which listens there, if there is one."""
        there = (b.id for b in self.brokers if self.address(b.id) in (seed.address, seed.peer))
        seed.broker = next(there, None)
        self._connections[SEED if seed.broker is None else seed.broker] = seed
        try:
            await check_node(seed, timeout=self.settings.connect_timeout)
        except BrokerError:
            seed.close()

    async def _connect(self, broker: int) -> BrokerConnection:
        address = self.address(broker)
        if address is None:
            return await self._find(broker)
        try:
            conn = await BrokerConnection.open(address, self.settings, broker=broker)
        except BrokerError as error:
            if error.trouble in _ELSEWHERE and broker not in self.overrides:
                hint = f"{error.detail}; --broker {broker}=HOST:PORT gives another address"
                raise BrokerError(error.trouble, error.where, hint) from None
            raise
        return await self._checked(conn)

    async def _checked(self, conn: BrokerConnection) -> BrokerConnection:
        try:
            await check_cluster(conn, self.cluster_id, timeout=self.settings.connect_timeout)
            await check_node(conn, timeout=self.settings.connect_timeout)
        except BaseException:
            conn.close()
            raise
        return conn

    async def _find(self, broker: int) -> BrokerConnection:
        """Look for a broker that is not listed behind the bootstrap addresses that nobody advertises."""
        advertised = set(self._known.values())
        for address in self.settings.bootstrap:
            if address in advertised:
                continue
            try:
                conn = await self._checked(await BrokerConnection.open(address, self.settings, broker=broker))
            except BackendError:
                continue
            if conn.verified:
                return conn
            conn.close()
        detail = f"the cluster does not list it: give its address with --broker {broker}=HOST:PORT"
        raise BrokerError(Trouble.NO_ADDRESS, f"broker {broker}", detail)

    def _opened(self, broker: int, task: asyncio.Task[BrokerConnection]) -> None:
        self._opening.pop(broker, None)
        retrieve(task)
        if task.cancelled() or task.exception() is not None:
            return
        conn, former = task.result(), self._connections.get(broker)
        if self._closed:
            conn.close()
            return
        if former is not None:
            former.close()
        self._connections[broker] = conn

    async def _ask_quorum(self) -> Quorum | Unknown:
        async def ask(conn: BrokerConnection) -> Quorum:
            return await describe_quorum(conn, timeout=QUORUM_TIMEOUT)

        answer: Quorum | Unknown
        try:
            asks = [self._ask(broker, ask, None) for broker in self._order(None)]
            answer = (await first_answer(asks, patience=PATIENCE, leave=self._leftovers)).value
        except BackendError as error:
            answer = as_unknown(error)
        finally:
            self._quorum_task = None
        self._quorum = (asyncio.get_running_loop().time(), answer)
        return answer

    def _order(self, caught_up: frozenset[int] | None) -> list[int]:
        """Whom to ask, best first: those caught up, then the unknown node, then the rest; connected ones before."""
        fenced = {b.id for b in self.brokers if b.fenced}
        ids = {b.id for b in self.brokers} | set(self.overrides)
        if self.current(SEED) is not None:
            ids.add(SEED)

        def rank(broker: int) -> tuple[int, bool, bool, int]:
            doubt = 0 if caught_up is None or broker in caught_up else 1 if broker == SEED else 2
            return doubt, broker in fenced, self.current(broker) is None, broker

        return sorted(ids, key=rank)

    def _ask(
        self,
        broker: int,
        ask: Callable[[BrokerConnection], Awaitable[T]],
        caught_up: frozenset[int] | None,
    ) -> Callable[[], Awaitable[Told[T]]]:
        async def run() -> Told[T]:
            conn = await self.connection(broker)
            known = None if caught_up is None or broker == SEED else broker in caught_up
            return Told(await ask(conn), broker, known)

        return run


async def _one_by_one(asks: list[Callable[[], Awaitable[T]]]) -> T:
    errors: list[BackendError] = []
    for ask in asks:
        try:
            return await ask()
        except BrokerError as error:
            if error.sent:
                raise
            errors.append(error)
    raise NobodyAnswered(errors)
