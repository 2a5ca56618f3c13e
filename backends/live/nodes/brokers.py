"""The brokers of one cluster: where they are, whom to ask, and one connection to each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from kio.static.protocol import RequestPayload, ResponsePayload

from backends.base.errors import BackendError
from backends.live.calls.describe_cluster import ClusterDescription, describe_cluster
from backends.live.calls.describe_quorum import describe_quorum
from backends.live.client.addresses import Address
from backends.live.client.settings import ClientSettings
from backends.live.connections.connection import BrokerConnection
from backends.live.connections.hedging import AllFailed, first_success
from backends.live.connections.pool import Pool
from backends.live.errors import BrokerError, ConnectionProblem, NobodyReached, as_unknown
from backends.live.nodes.node_identity import check_cluster, check_node
from recovery.membership.quorum import Quorum
from recovery.model import Broker, Unknown, Why

R = TypeVar("R", bound=ResponsePayload)
T = TypeVar("T")

FRESH_FOR = 2.0
"""Seconds for which one look at the quorum serves to choose whom to ask."""
UNKNOWN_FOR = 15.0
"""The same where the quorum could not be looked at: it takes its time to find that out."""
QUORUM_TIMEOUT = 4.0
"""Seconds for the look: a broker that cannot reach the controllers does not answer at all."""
QUORUM_PATIENCE = 0.4
CUT_OFF_MS = 3000
"""A broker this much further behind in the metadata than the best one is cut off, not just slow."""
PATIENCE = 1.0
"""Seconds before a question that may be asked twice is put to the next broker as well."""
AVOIDED_FOR = 30.0
"""Seconds for which a broker that could not be reached is asked only after all the others."""

SEED = -1
"""The id of a bootstrap connection whose node is not known."""

_ELSEWHERE = (ConnectionProblem.UNRESOLVED, ConnectionProblem.NO_ROUTE, ConnectionProblem.CONNECT_TIMEOUT)


class BrokerAnswer(NamedTuple, Generic[T]):
    """An answer of some broker: SEED where the node's id is not known.

    ``caught_up`` is None where the quorum could not be asked whether that broker has the latest metadata.
    """

    value: T
    broker: int
    caught_up: bool | None


class BrokerFleet:
    """The brokers of one cluster. Connections are opened when first needed and reopened when they are gone.

    What only one broker can tell goes over one connection to each (:meth:`connection`, :meth:`send`). What
    any of them can answer goes over others (:meth:`any`), and what they hand on to the controller over others
    again: a controller that hangs keeps no replica's answer waiting, and a long fetch no election.

    ``overrides`` (``--broker ID=HOST:PORT``) go before the addresses that the cluster advertises. An address
    that was listed once is remembered: 3.9 lists no fenced broker.
    """

    def __init__(self, settings: ClientSettings, overrides: Mapping[int, Address] | None = None) -> None:
        self.settings = settings
        self.overrides = dict(overrides or {})
        self.cluster_id = ""
        self.brokers: tuple[Broker, ...] = ()
        self._known: dict[int, Address] = {}
        self._own = Pool(self._connect, self._fits)
        self._common = Pool(self._connect, self._fits)
        self._forwarding = Pool(self._connect, self._fits)
        self._unknown_node: Address | None = None
        self._failed: dict[int, float] = {}
        self._forwards: Counter[int] = Counter()
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
            seed, described = await first_success(seeds, patience=0.0, discard=lambda late: late[0].close())
        except AllFailed as error:
            raise NobodyReached(f"no bootstrap server could be asked: {error}", sent=False) from None
        self.cluster_id = described.cluster_id
        self._learn(described)
        await self._adopt(seed)
        return described

    async def close(self) -> None:
        """Let go of every connection, in any state; what is in flight fails."""
        self._closed = True
        tasks = [*self._leftovers]
        if self._quorum_task is not None:
            tasks.append(self._quorum_task)
        for task in tasks:
            task.cancel()
        await self._own.close()
        await self._common.close()
        await self._forwarding.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    def address(self, broker: int) -> Address | None:
        """Where that broker is asked: the override, else as advertised; None: not known."""
        return self.overrides.get(broker) or self._known.get(broker)

    def current(self, broker: int) -> BrokerConnection | None:
        """An open connection to that broker, if there is one; opens none."""
        pools = (self._own, self._common, self._forwarding)
        return next((conn for pool in pools if (conn := pool.current(broker)) is not None), None)

    async def connection(self, broker: int) -> BrokerConnection:
        """That broker's own connection, opened if need be and its identity checked. Raises BrokerError."""
        return await self._own.get(broker)

    async def send(
        self, broker: int, request: RequestPayload, response_type: type[R], *, timeout: float | None = None
    ) -> R:
        """Send to that broker; ``timeout`` does not count the time to connect. Raises BrokerError."""
        conn = await self.connection(broker)
        return await conn.send(request, response_type, timeout=timeout)

    async def any(
        self,
        ask: Callable[[BrokerConnection], Awaitable[T]],
        *,
        again: bool = True,
        forwarded: bool = False,
    ) -> BrokerAnswer[T]:
        """Put a question that any broker can answer to one that has the latest metadata.

        When one fails the next is asked, and when it takes its time the next one as well. ``again`` False is
        for what must not be sent twice: the next is asked only where surely nothing was sent. ``forwarded``
        is for what a broker hands on to the controller, as it does with every change.
        Raises NotAllowed, Unreachable, or the error that the last broker gave.
        """
        quorum = await self.quorum()
        caught_up = self.caught_up(quorum)
        pool = self._forwarding if forwarded or not again else self._common
        used: list[tuple[BrokerConnection, int]] = []
        asks = [self._ask(pool, broker, ask, caught_up, used) for broker in self._order(caught_up, pool)]
        try:
            if again:
                moved = partial(_answers, used)
                return await first_success(asks, patience=PATIENCE, leave=self._leftovers, moved=moved)
            return await _one_by_one(asks)
        except AllFailed as error:
            self._quorum = None
            raise _in_short(error, sent=again) from None

    async def refresh(self) -> BrokerAnswer[ClusterDescription]:
        """Ask for the brokers again. Raises as :meth:`any`."""
        told = await self.any(partial(describe_cluster, operations=True))
        self._learn(told.value)
        return told

    async def quorum(self, *, max_age: float = FRESH_FOR) -> Quorum | Unknown:
        """The quorum as it was at most ``max_age`` seconds ago; Unknown, with the reason, where it is not had."""
        if self._quorum is not None:
            age = asyncio.get_running_loop().time() - self._quorum[0]
            lasting = isinstance(self._quorum[1], Unknown) and max_age > 0
            if age <= (UNKNOWN_FOR if lasting else max_age):
                return self._quorum[1]
        if self._quorum_task is None:
            self._quorum_task = asyncio.ensure_future(self._ask_quorum())
        task = self._quorum_task
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and self._closed:
                raise BrokerError(ConnectionProblem.CLOSED, "the quorum", "closed here") from None
            raise

    async def describe_quorum(self, conn: BrokerConnection) -> Quorum:
        """The quorum of this cluster, asked over ``conn``. Raises as the call does."""
        return await describe_quorum(conn, self.cluster_id)

    def caught_up(self, quorum: Quorum | Unknown) -> frozenset[int] | None:
        """The brokers that the quorum's leader sees at the head of the metadata; None: not known."""
        if isinstance(quorum, Unknown):
            return None
        newest = max((held.last_caught_up_ms for held in quorum.progress), default=-1)
        return frozenset(
            held.key.id
            for held in quorum.progress
            if held.last_caught_up_ms >= 0 and newest - held.last_caught_up_ms <= CUT_OFF_MS
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
        if seed.broker is None:
            self._unknown_node = seed.address
        self._common.put(SEED if seed.broker is None else seed.broker, seed)
        try:
            await check_node(seed, timeout=self.settings.connect_timeout)
        except BrokerError:
            seed.close()

    async def _connect(self, broker: int) -> BrokerConnection:
        if broker == SEED and self._unknown_node is not None:
            return await self._checked(await BrokerConnection.open(self._unknown_node, self.settings))
        address = self.address(broker)
        if address is None:
            return await self._find(broker)
        try:
            conn = await BrokerConnection.open(address, self.settings, broker=broker)
        except BrokerError as error:
            if broker not in self.overrides and self._seems_elsewhere(broker, error):
                hint = f"{error.detail}; --broker {broker}=HOST:PORT gives another address"
                raise BrokerError(error.trouble, error.where, hint) from None
            raise
        return await self._checked(conn)

    def _seems_elsewhere(self, broker: int, error: BrokerError) -> bool:
        """Whether the advertised address may be wrong from here: the cluster counts a refusing broker as alive."""
        alive = any(b.id == broker and not b.fenced for b in self.brokers)
        return error.trouble in _ELSEWHERE or (error.trouble is ConnectionProblem.REFUSED and alive)

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
        raise BrokerError(ConnectionProblem.NO_ADDRESS, f"broker {broker}", detail)

    def _fits(self, broker: int, conn: BrokerConnection) -> bool:
        """Whether a connection leads to where the broker is now."""
        return broker == SEED or self.address(broker) in (conn.address, conn.peer, None)

    async def _ask_quorum(self) -> Quorum | Unknown:
        answer: Quorum | Unknown
        pool = self._forwarding
        asks = [self._ask(pool, broker, self.describe_quorum, None, []) for broker in self._order(None, pool)]
        try:
            async with asyncio.timeout(QUORUM_TIMEOUT):
                answer = (await first_success(asks, patience=QUORUM_PATIENCE)).value
        except TimeoutError:
            limit = f"within {QUORUM_TIMEOUT:g} s"
            detail = f"no broker described the quorum {limit}: can they reach a leading controller?"
            answer = Unknown(Why.NOT_ANSWERED, detail)
        except AllFailed as error:
            answer = as_unknown(_in_short(error, sent=True))
        except BackendError as error:
            answer = as_unknown(error)
        finally:
            self._quorum_task = None
        self._quorum = (asyncio.get_running_loop().time(), answer)
        return answer

    def _order(self, caught_up: frozenset[int] | None, pool: Pool) -> list[int]:
        """Whom to ask, best first: those caught up, then the unknown node, then the rest.

        Who could not be reached a moment ago comes last, or every question would wait for that again. A broker
        forwards one request at a time: several changes at once go through several brokers.
        """
        fenced = {b.id for b in self.brokers if b.fenced}
        lately = asyncio.get_running_loop().time() - AVOIDED_FOR
        ids = {b.id for b in self.brokers} | set(self.overrides)
        if self._unknown_node is not None:
            ids.add(SEED)

        busy = self._forwards if pool is self._forwarding else Counter()

        def rank(broker: int) -> tuple[bool, int, bool, int, bool, int]:
            gone = self._failed.get(broker, lately) > lately
            doubt = 0 if caught_up is None or broker in caught_up else 1 if broker == SEED else 2
            return gone, doubt, broker in fenced, busy[broker], self.current(broker) is None, broker

        return sorted(ids, key=rank)

    def _ask(
        self,
        pool: Pool,
        broker: int,
        ask: Callable[[BrokerConnection], Awaitable[T]],
        caught_up: frozenset[int] | None,
        used: list[tuple[BrokerConnection, int]],
    ) -> Callable[[], Awaitable[BrokerAnswer[T]]]:
        """``used`` gets the connection that the question is put over, and how many answers it had given by then."""

        async def run() -> BrokerAnswer[T]:
            try:
                conn = await pool.get(broker)
            except BrokerError:
                self._failed[broker] = asyncio.get_running_loop().time()
                raise
            used.append((conn, conn.answers))
            self._failed.pop(broker, None)
            known = None if caught_up is None or broker == SEED else broker in caught_up
            if pool is not self._forwarding:
                return BrokerAnswer(await ask(conn), broker, known)
            self._forwards[broker] += 1
            try:
                return BrokerAnswer(await ask(conn), broker, known)
            finally:
                self._forwards[broker] -= 1

        return run


def _answers(used: Iterable[tuple[BrokerConnection, int]]) -> int:
    """How many answers have come since."""
    return sum(conn.answers - before for conn, before in used)


def _in_short(error: AllFailed, *, sent: bool) -> BackendError:
    """Nobody was reached; or, where a broker did answer, the error that the last of them answered with."""
    told = [e for e in error.errors if not isinstance(e, BrokerError)]
    return told[-1] if told else NobodyReached(f"no broker could be asked: {error}", sent=sent)


async def _one_by_one(asks: list[Callable[[], Awaitable[T]]]) -> T:
    errors: list[BackendError] = []
    for ask in asks:
        try:
            return await ask()
        except BrokerError as error:
            if error.sent:
                raise
            errors.append(error)
    raise AllFailed(errors)
