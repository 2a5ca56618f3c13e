"""The brokers of one cluster: one connection to each, and whom to ask what any of them can answer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from kio.static.protocol import RequestPayload, ResponsePayload

from backends.base.errors import BackendError
from backends.live.calls.configs import BROKER_RESOURCE
from backends.live.calls.describe_cluster import ClusterDescription, describe_cluster
from backends.live.calls.describe_quorum import describe_quorum
from backends.live.client.addresses import Address
from backends.live.client.settings import ClientSettings
from backends.live.codec.apis import Api
from backends.live.connections.connection import BrokerConnection
from backends.live.connections.hedging import AllFailed, first_success, retrieve
from backends.live.connections.pool import Pool
from backends.live.errors import BrokerError, ConnectionProblem, NobodyReached
from backends.live.nodes.broker_addresses import SEED, BrokerAddresses
from backends.live.nodes.quorum_cache import FRESH_FOR, QuorumCache, up_to_date_brokers
from recovery.membership.quorum import Quorum
from recovery.model import Broker, Unknown

# Opening a connection to a broker, and checking that the node behind it is that broker of this cluster: a
# port-forward, or --broker, can lead to another.

_INVALID_REQUEST = 42
_NODE_ID_KEYS = ("node.id", "broker.id")


async def check_cluster(conn: BrokerConnection, cluster_id: str, *, timeout: float) -> None:
    """Raise BrokerError where a node of another cluster answers; the connection is then closed."""
    described = await describe_cluster(conn, timeout=timeout)
    if described.cluster_id != cluster_id:
        raise _wrong(conn, f"belongs to cluster {described.cluster_id}, not to {cluster_id}")


async def check_node(conn: BrokerConnection, *, timeout: float) -> None:
    """Raise BrokerError where another broker than ``conn.broker`` answers; set ``conn.verified``.

    No API without a permission returns a node's id: DescribeConfigs of a broker is answered by that broker
    only, and needs DESCRIBE_CONFIGS on the cluster. Without it ``verified`` stays False.
    """
    if conn.broker is not None and conn.highest(Api.DescribeConfigs) is not None:
        conn.verified = await _is_node(conn, conn.broker, timeout)


async def _is_node(conn: BrokerConnection, broker: int, timeout: float) -> bool:
    """True: the node said that it is ``broker``; False: it would not tell. Raises BrokerError where it is not."""
    from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
    from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
    from kio.static.primitive import i8

    resource = DescribeConfigsResource(
        resource_type=i8(BROKER_RESOURCE), resource_name=str(broker), configuration_keys=_NODE_ID_KEYS
    )
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=False)
    answer = await conn.send(request, DescribeConfigsResponse, timeout=timeout, ahead=True)
    for result in answer.results:
        if result.error_code == _INVALID_REQUEST:
            raise _wrong(conn, f"another broker than {broker} answers there")
        reported = {c.value for c in result.configs if c.name in _NODE_ID_KEYS and not result.error_code}
        if reported and reported != {str(broker)}:
            raise _wrong(conn, f"broker {'/'.join(sorted(v or '?' for v in reported))} answers there")
        return bool(reported)
    return False


def _wrong(conn: BrokerConnection, detail: str) -> BrokerError:
    conn.close()
    return BrokerError(ConnectionProblem.WRONG_NODE, conn.where, detail)


class BrokerConnector:
    """``cluster_id`` is the cluster's once :meth:`bootstrap` has found it; "" before."""

    def __init__(self, settings: ClientSettings, addresses: BrokerAddresses) -> None:
        self.cluster_id = ""
        self._settings = settings
        self._addresses = addresses

    async def bootstrap(
        self, leave: set[asyncio.Task[Any]], second: Callable[[BrokerConnection, ClusterDescription], None]
    ) -> tuple[BrokerConnection, ClusterDescription]:
        """Try all bootstrap servers at once; the first that answers gives the cluster. ``second`` is given the
        others that answer, and ``leave`` keeps the attempts at them.

        The connection has the id of the broker that listens there, if one is listed. Raises Unreachable, which
        names each server with its reason.
        """
        asks = [self._ask_server(address) for address in self._settings.bootstrap]
        try:
            conn, described = await first_success(
                asks, patience=0.0, leave=leave, discard=lambda late: second(*late)
            )
        except AllFailed as error:
            raise NobodyReached(f"no bootstrap server could be asked: {error}", sent=False) from None
        self.cluster_id = described.cluster_id
        self._addresses.learn(described)
        return conn, described

    def _ask_server(
        self, address: Address
    ) -> Callable[[], Awaitable[tuple[BrokerConnection, ClusterDescription]]]:
        async def ask() -> tuple[BrokerConnection, ClusterDescription]:
            conn = await BrokerConnection.open(address, self._settings)
            try:
                described = await describe_cluster(
                    conn, operations=True, timeout=self._settings.connect_timeout
                )
            except BaseException:
                conn.close()
                raise
            return conn, described

        return ask

    async def connect(self, broker: int) -> BrokerConnection:
        """A checked connection to that broker, or to the SEED. Raises BrokerError."""
        seed = self._addresses.seed
        if broker == SEED and seed is not None:
            return await self._checked(await BrokerConnection.open(seed, self._settings))
        address = self._addresses.of(broker)
        if address is None:
            return await self._find(broker)
        try:
            conn = await BrokerConnection.open(address, self._settings, broker=broker)
        except BrokerError as error:
            raise self._addresses.explained(broker, error) from None
        return await self._checked(conn)

    async def _checked(self, conn: BrokerConnection) -> BrokerConnection:
        limit = self._settings.connect_timeout
        node = asyncio.ensure_future(check_node(conn, timeout=limit))
        node.add_done_callback(retrieve)
        try:
            await check_cluster(conn, self.cluster_id, timeout=limit)
            await node
        except BaseException:
            conn.close()
            node.cancel()
            raise
        return conn

    async def _find(self, broker: int) -> BrokerConnection:
        """Look for a broker that is not listed behind the bootstrap servers that are no listed broker's."""
        for address in self._addresses.not_advertised():
            try:
                conn = await self._checked(
                    await BrokerConnection.open(address, self._settings, broker=broker)
                )
            except BackendError:
                continue
            if conn.verified:
                return conn
            conn.close()
        detail = f"the cluster does not list it: give its address with --broker {broker}=HOST:PORT"
        raise BrokerError(ConnectionProblem.NO_ADDRESS, f"broker {broker}", detail)


R = TypeVar("R", bound=ResponsePayload)
T = TypeVar("T")

PATIENCE = 1.0
"""Seconds before a repeatable request is sent to the next broker as well."""
QUORUM_PATIENCE = 0.4
"""The same for a description of the quorum."""
AVOIDED_FOR = 30.0
"""Seconds for which a broker that could not be reached is asked only after all the others."""
SILENT_FOR = 10.0
"""Seconds for which a broker that was silent is not waited for again, within one look at the cluster."""
SILENT = (ConnectionProblem.CONNECT_TIMEOUT, ConnectionProblem.NO_ANSWER)
AHEAD = 64
"""Brokers to which connections are opened before anybody asks for them."""


class Unreached:
    """The brokers that could not be reached a moment ago, and how."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._errors: dict[int, tuple[float, BrokerError]] = {}
        self._attempts: dict[int, set[asyncio.Future[BrokerConnection]]] = {}

    def lately(self, broker: int) -> bool:
        """True where the newest attempt at that broker failed less than AVOIDED_FOR seconds ago."""
        return self._within(broker, AVOIDED_FOR) is not None

    def forget(self, broker: int) -> None:
        """The next attempt is made, whatever was seen before."""
        self._errors.pop(broker, None)

    async def attempt(
        self, broker: int, connect: Callable[[int], Awaitable[BrokerConnection]]
    ) -> BrokerConnection:
        """What ``connect`` returns. Raises its BrokerError; at once where the broker was silent for the whole time
        of an attempt lately, or is so in another attempt meanwhile: nobody waits for that twice.
        """
        known = self._silent(broker)
        if known is not None:
            raise known.again()
        attempt = asyncio.ensure_future(connect(broker))
        others = self._attempts.setdefault(broker, set())
        others.add(attempt)
        try:
            conn = await attempt
        except BrokerError as error:
            self._errors[broker] = (self._clock(), error)
            if error.trouble in SILENT:
                for other in others - {attempt}:
                    other.cancel()
            raise
        except asyncio.CancelledError:
            known = self._silent(broker)
            if attempt.cancelled() and known is not None and not _cancelling():
                raise known.again() from None
            if not attempt.cancel() and not attempt.cancelled() and attempt.exception() is None:
                attempt.result().close()  # it was opened in the same moment
            raise
        finally:
            others.discard(attempt)
        self.forget(broker)
        return conn

    def _silent(self, broker: int) -> BrokerError | None:
        known = self._within(broker, SILENT_FOR)
        return known if known is not None and known.trouble in SILENT else None

    def _within(self, broker: int, seconds: float) -> BrokerError | None:
        at, error = self._errors.get(broker, (0.0, None))
        return None if error is None or self._clock() - at > seconds else error


def _cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class BrokerAnswer(NamedTuple, Generic[T]):
    """An answer of some broker: SEED where the node's id is not known.

    ``caught_up`` tells whether that broker has the latest metadata; None where the quorum could not be asked.
    """

    value: T
    broker: int
    caught_up: bool | None


class BrokerFleet:
    """The brokers of one cluster. Connections are opened when first needed, and again when they are gone.

    There are four pools, so that a slow controller cannot block replica queries, and a long Fetch no election:
    ``own`` for what only that broker can answer (:meth:`connection`, :meth:`send`), ``common`` for what any broker
    can answer (:meth:`any`), ``forwarding`` for what a broker forwards to the controller, ``bulk`` for records.
    """

    def __init__(self, settings: ClientSettings, overrides: Mapping[int, Address] | None = None) -> None:
        self.settings = settings
        self.addresses = BrokerAddresses(settings.bootstrap, overrides)
        self._connector = BrokerConnector(settings, self.addresses)
        self._unreached = Unreached(lambda: asyncio.get_running_loop().time())
        connect, fits = self._connect, self.addresses.fits
        self._own, self._common, self._forwarding, self._bulk = (Pool(connect, fits) for _ in range(4))
        self._forwards: Counter[int] = Counter()
        self._leftovers: set[asyncio.Task[Any]] = set()
        self._seed = SEED
        self._second = False
        self._quorum = QuorumCache(self._ask_quorum)

    @property
    def cluster_id(self) -> str:
        """The cluster's id; "" before :meth:`open`."""
        return self._connector.cluster_id

    @property
    def brokers(self) -> tuple[Broker, ...]:
        """As the newest description of the cluster lists them."""
        return self.addresses.brokers

    @property
    def coordinators(self) -> list[int]:
        """The brokers that may coordinate groups and transactions: a fenced one leads no partition."""
        return [broker.id for broker in self.brokers if not broker.fenced]

    @property
    def overrides(self) -> dict[int, Address]:
        """The addresses that the operator gave, by broker."""
        return self.addresses.overrides

    async def open(self) -> ClusterDescription:
        """Find the cluster by the bootstrap servers. Raises Unreachable, which names each with its reason."""
        conn, described = await self._connector.bootstrap(self._leftovers, self._keep_second)
        seed = self.addresses.adopt_seed(conn)
        self._forwarding.put(seed, conn)
        self._ahead(self._common.get(seed))
        self._ahead(self._check_seed(conn))
        self._seed = seed
        return described

    async def _check_node(self, conn: BrokerConnection) -> None:
        await check_node(conn, timeout=self.settings.connect_timeout)

    async def _check_seed(self, conn: BrokerConnection) -> None:
        try:
            await self._check_node(conn)
        except BrokerError:
            conn.close()

    def _keep_second(self, conn: BrokerConnection, described: ClusterDescription) -> None:
        """Another bootstrap server has answered: where brokers are far away, its connection saves the time to open
        one for what any broker can answer.
        """
        self.addresses.place(conn)
        if self._second or conn.broker is None or described.cluster_id != self.cluster_id:
            conn.close()
            return
        self._second = True
        self._common.adopt(conn.broker, conn, self._check_node)

    def forget_silent(self) -> None:
        """Who was silent is asked again: a new look begins, or nobody else is left."""
        for broker in self.addresses.candidates():
            self._unreached.forget(broker)

    def open_ahead(self) -> None:
        """Begin to connect to every broker that should be up, for a caller that will ask all of them."""
        for broker in [b.id for b in self.brokers if not b.fenced][:AHEAD]:
            self._ahead(self._own.get(broker))

    def _ahead(self, doing: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(doing)
        self._leftovers.add(task)
        task.add_done_callback(self._leftovers.discard)
        task.add_done_callback(retrieve)

    async def _connect(self, broker: int) -> BrokerConnection:
        return await self._unreached.attempt(broker, self._connector.connect)

    async def close(self) -> None:
        """Close every connection, in any state; requests in flight fail."""
        tasks: list[asyncio.Task[Any]] = [*self._leftovers, *self._quorum.close()]
        for task in tasks:
            task.cancel()
        await self._own.close()
        await self._common.close()
        await self._forwarding.close()
        await self._bulk.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    def address(self, broker: int) -> Address | None:
        """Where that broker is asked: the override, else as advertised; None: not known."""
        return self.addresses.of(broker)

    def current(self, broker: int) -> BrokerConnection | None:
        """An open connection to that broker, if there is one; opens none."""
        pools = (self._own, self._common, self._forwarding)
        return next((conn for pool in pools if (conn := pool.current(broker)) is not None), None)

    def own_connection(self, broker: int) -> BrokerConnection | None:
        """As :meth:`connection` where it is open already; opens none."""
        return self._own.current(broker)

    async def connection(self, broker: int, *, again: bool = False) -> BrokerConnection:
        """That broker's own connection, opened if need be and its identity checked. Raises BrokerError; at once
        for a broker that was silent lately, unless it is to be tried ``again``.
        """
        if again:
            self._unreached.forget(broker)
        return await self._own.get(broker)

    async def bulk_connection(self, broker: int) -> BrokerConnection:
        """That broker's connection for reading records, as :meth:`connection`. Raises BrokerError."""
        return await self._bulk.get(broker)

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
        """Send a request that any broker can answer to one that has the latest metadata. If that broker
        fails, the next is asked; if it is slow, the next is asked as well. ``again`` False is for what must
        not be sent twice: the next is asked only where certainly nothing was sent. ``forwarded`` is for what
        a broker forwards to the controller, as it does with every change. Raises NotAllowed, Unreachable, or
        the error that the last broker gave.
        """
        fresh = up_to_date_brokers(await self.quorum())
        pool = self._forwarding if forwarded or not again else self._common
        try:
            return await self._any(pool, ask, fresh, again=again)
        except AllFailed as error:
            failed = error
        if any(isinstance(one, BrokerError) and (one.remembered or one.behind) for one in failed.errors):
            # Nobody else is left: who was silent a moment ago may answer now, as after a cut of the network, and
            # on a new connection, where this request does not wait for another one.
            self.forget_silent()
            try:
                return await self._any(pool, ask, fresh, again=again)
            except AllFailed as error:
                failed = error
        self._quorum.forget()
        raise _in_short(failed, sent=again) from None

    async def _any(
        self,
        pool: Pool,
        ask: Callable[[BrokerConnection], Awaitable[T]],
        fresh: frozenset[int] | None,
        *,
        again: bool,
    ) -> BrokerAnswer[T]:
        used: list[tuple[BrokerConnection, int]] = []
        asks = [self._ask(pool, broker, ask, fresh, used) for broker in self._order(fresh, pool)]
        if not again:
            return await _one_by_one(asks)
        return await first_success(
            asks, patience=PATIENCE, leave=self._leftovers, moved=partial(_answers, used)
        )

    async def opened(self, described: ClusterDescription) -> BrokerAnswer[ClusterDescription]:
        """What :meth:`open` returned, where the broker that said it has the latest metadata; else as
        :meth:`refresh`.
        """
        fresh = up_to_date_brokers(await self.quorum())
        if fresh is not None and self._seed in fresh:
            return BrokerAnswer(described, self._seed, True)
        return await self.refresh()

    async def refresh(self) -> BrokerAnswer[ClusterDescription]:
        """Ask for the brokers again. Raises as :meth:`any`."""
        reported = await self.any(partial(describe_cluster, operations=True))
        self.addresses.learn(reported.value)
        return reported

    async def quorum(
        self, *, max_age: float = FRESH_FOR, unknown_for: float | None = None
    ) -> Quorum | Unknown:
        """As :meth:`QuorumCache.get`."""
        return await self._quorum.get(max_age=max_age, unknown_for=unknown_for)

    async def describe_quorum(self, conn: BrokerConnection) -> Quorum:
        """The quorum of this cluster, asked over ``conn``. Raises as the call does."""
        return await describe_quorum(conn, self.cluster_id)

    async def _ask_quorum(self) -> Quorum:
        pool = self._forwarding
        asks = [self._ask(pool, broker, self.describe_quorum, None, []) for broker in self._order(None, pool)]
        try:
            return (await first_success(asks, patience=QUORUM_PATIENCE)).value
        except AllFailed as error:
            raise _in_short(error, sent=True) from None

    def _order(self, fresh: frozenset[int] | None, pool: Pool) -> list[int]:
        """Whom to ask, best first: those in ``fresh``, then the unknown node, then the rest.

        A broker that could not be reached a moment ago comes last, or every question would wait for that again.
        A broker forwards one request at a time: several changes at once go through several brokers.
        """
        fenced = {b.id for b in self.brokers if b.fenced}
        busy = self._forwards if pool is self._forwarding else Counter()

        def rank(broker: int) -> tuple[bool, int, bool, int, int, int]:
            gone = self._unreached.lately(broker)
            doubt = 0 if fresh is None or broker in fresh else 1 if broker == SEED else 2
            return gone, doubt, broker in fenced, busy[broker], pool.steps(broker), broker

        return sorted(self.addresses.candidates(), key=rank)

    def _ask(
        self,
        pool: Pool,
        broker: int,
        ask: Callable[[BrokerConnection], Awaitable[T]],
        fresh: frozenset[int] | None,
        used: list[tuple[BrokerConnection, int]],
    ) -> Callable[[], Awaitable[BrokerAnswer[T]]]:
        """``used`` gets the connection that the question is put over, and how many answers it had given by then."""

        async def run() -> BrokerAnswer[T]:
            conn = await pool.get(broker)
            used.append((conn, conn.answers))
            known = None if fresh is None or broker == SEED else broker in fresh
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
    reported = [e for e in error.errors if not isinstance(e, BrokerError)]
    return reported[-1] if reported else NobodyReached(f"no broker could be asked: {error}", sent=sent)


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
