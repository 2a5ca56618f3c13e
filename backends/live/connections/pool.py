"""Connections by broker, opened at first use, and again after they were closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from backends.live.connections.connection import BrokerConnection
from backends.live.connections.hedging import retrieve
from backends.live.errors import BrokerError, ConnectionProblem

NOT_BEGUN = 3


class Pool:
    """At most one connection per broker. Concurrent callers share one attempt, and its failure.

    ``connect`` opens a connection; ``fits`` tells whether an open one still leads to the broker's address.
    """

    def __init__(
        self,
        connect: Callable[[int], Awaitable[BrokerConnection]],
        fits: Callable[[int, BrokerConnection], bool],
    ) -> None:
        self._connect = connect
        self._fits = fits
        self._connections: dict[int, BrokerConnection] = {}
        self._opening: dict[int, asyncio.Task[BrokerConnection]] = {}
        self._checking: set[int] = set()
        self._closed = False

    def current(self, broker: int) -> BrokerConnection | None:
        """The open connection to that broker, if there is one; opens none."""
        conn = self._connections.get(broker)
        return conn if conn is not None and not conn.closed else None

    def steps(self, broker: int) -> int:
        """How far a connection is from being open: 0 it is, 1 it is being checked, 2 it is being opened,
        :data:`NOT_BEGUN`.
        """
        if self.current(broker) is not None:
            return 0
        return 1 if broker in self._checking else 2 if broker in self._opening else NOT_BEGUN

    def adopt(
        self, broker: int, conn: BrokerConnection, check: Callable[[BrokerConnection], Awaitable[None]]
    ) -> None:
        """Take over an open connection as soon as it is checked; it is closed where ``check`` raises BrokerError,
        and at once where there is another one, or one is being opened.
        """
        if self.steps(broker) < NOT_BEGUN:
            conn.close()
            return

        async def checked() -> BrokerConnection:
            await check(conn)
            return conn

        self._checking.add(broker)
        self._begin(broker, checked).add_done_callback(lambda task: _close_unless(task, conn))

    def put(self, broker: int, conn: BrokerConnection) -> None:
        """Take over an open connection; the previous one is closed."""
        former = self._connections.get(broker)
        if former is not None and former is not conn:
            former.close()
        if self._closed:
            conn.close()
        self._connections[broker] = conn

    async def get(self, broker: int) -> BrokerConnection:
        """The connection to that broker. Raises BrokerError."""
        conn = self.current(broker)
        if conn is not None and self._fits(broker, conn):
            return conn
        if self._closed:
            raise _closed(broker)
        task = self._opening.get(broker)
        if task is None:
            task = self._begin(broker, partial(self._connect, broker))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and self._closed:
                raise _closed(broker) from None
            raise

    async def close(self) -> None:
        """Close all connections, in any state; callers that wait for one get an error."""
        self._closed = True
        tasks = list(self._opening.values())
        for task in tasks:
            task.cancel()
        for conn in self._connections.values():
            conn.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(
        self, broker: int, opening: Callable[[], Awaitable[BrokerConnection]]
    ) -> asyncio.Task[BrokerConnection]:
        task = self._opening[broker] = asyncio.ensure_future(self._open(broker, opening))
        task.add_done_callback(retrieve)
        return task

    async def _open(
        self, broker: int, opening: Callable[[], Awaitable[BrokerConnection]]
    ) -> BrokerConnection:
        try:
            conn = await opening()
        finally:
            del self._opening[broker]
            self._checking.discard(broker)
        self.put(broker, conn)
        return conn


def _close_unless(taken: asyncio.Task[BrokerConnection], conn: BrokerConnection) -> None:
    if taken.cancelled() or taken.exception() is not None:
        conn.close()


def _closed(broker: int) -> BrokerError:
    return BrokerError(ConnectionProblem.CLOSED, f"broker {broker}", "closed here")
