"""Connections by broker, opened at first use, and again after they were closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from backends.live.connections.connection import BrokerConnection
from backends.live.connections.hedging import retrieve
from backends.live.errors import BrokerError, ConnectionProblem


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
        self._closed = False

    def current(self, broker: int) -> BrokerConnection | None:
        """The open connection to that broker, if there is one; opens none."""
        conn = self._connections.get(broker)
        return conn if conn is not None and not conn.closed else None

    def begun(self, broker: int) -> bool:
        """True where there is an open connection, or one is being opened."""
        return broker in self._opening or self.current(broker) is not None

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
            task = asyncio.ensure_future(self._open(broker))
            task.add_done_callback(retrieve)
            self._opening[broker] = task
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

    async def _open(self, broker: int) -> BrokerConnection:
        try:
            conn = await self._connect(broker)
        finally:
            del self._opening[broker]
        self.put(broker, conn)
        return conn


def _closed(broker: int) -> BrokerError:
    return BrokerError(ConnectionProblem.CLOSED, f"broker {broker}", "closed here")
