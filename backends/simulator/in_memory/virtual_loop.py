"""An asyncio event loop whose time is a simulation's, and whose connections are in memory.

What runs in it waits in virtual time: while nothing is ready, the simulation goes on. The same tasks on the same
simulation run in the same order, whatever the machine does.
"""

from __future__ import annotations

import asyncio
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from itertools import count
from math import ceil
from typing import Any, Protocol, TypeVar

from backends.simulator.loop import SECOND
from backends.simulator.simulation import PIECE, Simulation

T = TypeVar("T")

TURNS = 50
"""Turns of this loop between two of the caller's: a console stays alive meanwhile. A count, because a time would
let the machine decide which of two calls goes on.
"""
_ROUNDING = 0.01
"""Part of a µs by which a sum of seconds may be too large."""


class Connect(Protocol):
    """Opens the node's end of a connection."""

    async def __call__(self, host: str, port: int, client: asyncio.Transport) -> MemoryTransport:
        """Raises OSError as a kernel would; waits for as long as nobody answers."""
        ...


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs only inside :meth:`run`, within the caller's own event loop and thread. ``moved`` is called whenever the
    simulation may have changed.
    """

    _ready: deque[asyncio.Handle]

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self._simulation = simulation
        self._loop = simulation.world.loop
        self._selector = self  # asyncio's loop waits in ``select``
        self._clock_resolution = 1 / SECOND
        self.set_task_factory(self._numbered)
        self._numbers = count(1)
        self._alarms: list[tuple[int, int, asyncio.Future[None]]] = []
        self.connect: Connect | None = None
        self.moved: Callable[[], None] = lambda: None

    def _numbered(self, _loop: object, coro: Any, **named: Any) -> _NumberedTask:
        return _NumberedTask(self, coro, **named)

    def __del__(self, *_warn: object) -> None:
        """A run that nobody holds any more has no file to close, and its coroutines, which end with it, may still
        close their connections: asyncio's own would close the loop under them.
        """

    def is_running(self) -> bool:
        """Whether the code that asks runs in this loop."""
        return events._get_running_loop() is self

    def time(self) -> float:
        """Virtual seconds."""
        return self._loop.now / SECOND

    def select(self, timeout: float | None) -> tuple[()]:
        """Let the simulation go on until something is ready, for at most ``timeout`` virtual seconds."""
        if timeout is None or timeout > 0:
            self._wait(PIECE if timeout is None else ceil(timeout * SECOND - _ROUNDING))
        return ()

    def _wait(self, most: int) -> None:
        now, ready = self._loop.now, self._ready
        until = now + max(1, min(most, PIECE))
        if self._alarms:
            until = min(until, self._alarms[0][0])
        if self._simulation.world.operator.waiting:
            self._loop.run_while(lambda: not ready, until - now)
            until = self._loop.now
        # What is due at this very moment comes first: a replay of the run does it in the same order.
        self._simulation.advance_to(until)
        self.moved()
        while self._alarms and self._alarms[0][0] <= until:
            alarm = heappop(self._alarms)[2]
            if not alarm.done():
                alarm.set_result(None)

    async def come_to(self, time: int) -> None:
        """Wait until ``time`` (virtual µs): not a moment longer, as a wait in seconds may."""
        alarm = self.create_future()
        heappush(self._alarms, (time, self.next_number(), alarm))
        await alarm

    def next_number(self) -> int:
        """Counts what this loop creates."""
        return next(self._numbers)

    def _process_events(self, event_list: object) -> None:
        """There are no files to watch."""

    def _write_to_self(self) -> None:
        """Nothing runs in another thread."""

    async def create_connection(  # type: ignore[override]  # the one form that aiokafka uses
        self, protocol_factory: Callable[[], asyncio.Protocol], host: str, port: int, **_options: Any
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """A connection to the node at that address. Raises OSError."""
        assert self.connect is not None
        protocol = protocol_factory()
        client = MemoryTransport(self, protocol, host)
        client.peer = await self.connect(host, port, client)
        protocol.connection_made(client)
        return client, protocol

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What ``work`` returns or raises, run in this loop. Its tasks go on whenever this is called."""
        task = self.create_task(work)
        try:
            while not task.done():
                self._turn(task)
                await asyncio.sleep(0)
        except BaseException:
            task.cancel()
            while not task.done():
                self._turn(task)
            raise
        return task.result()

    def _turn(self, task: asyncio.Task[Any]) -> None:
        outer = events._get_running_loop()
        events._set_running_loop(self)
        try:
            for _ in range(TURNS):
                if task.done():
                    return
                self._run_once()  # type: ignore[attr-defined]  # one turn of asyncio's own loop
        finally:
            events._set_running_loop(outer)

    def drop_tasks(self) -> None:
        """End every task, and close the loop."""
        outer = events._get_running_loop()
        events._set_running_loop(self)
        try:
            tasks = asyncio.all_tasks(self)
            for task in tasks:
                task.cancel()
            for _ in range(TURNS):
                if all(task.done() for task in tasks):
                    break
                self.call_soon(_nothing)  # so that time stands still
                self._run_once()  # type: ignore[attr-defined]  # as above
        finally:
            events._set_running_loop(outer)
        self._ready.clear()
        self.close()


def _nothing() -> None:
    """Only keeps a turn from waiting."""


class _NumberedTask(asyncio.Task[Any]):
    """asyncio waits for sets of tasks, whose order would be that of addresses in memory."""

    def __init__(self, loop: VirtualLoop, coro: Coroutine[Any, Any, Any], **named: Any) -> None:
        self._number = loop.next_number()
        super().__init__(coro, loop=loop, **named)
        # A node's end of a connection waits for its client for ever: that is no news when the run is dropped.
        self._log_destroy_pending = False

    def __hash__(self) -> int:
        return self._number


class MemoryTransport(asyncio.Transport):
    """One end of a connection; what is written arrives at once, in order, at the ``peer``."""

    def __init__(self, loop: VirtualLoop, protocol: asyncio.Protocol, host: str) -> None:
        super().__init__({"peername": (host, 0)})
        self._loop = loop
        self._protocol: asyncio.BaseProtocol = protocol
        self.peer: MemoryTransport | None = None
        self._closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._closing and self.peer is not None:
            self.peer.take(bytes(data))

    def take(self, data: bytes) -> None:
        """Bytes from the peer."""
        if not self._closing and isinstance(self._protocol, asyncio.Protocol):
            self._protocol.data_received(data)

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._end(None)

    def abort(self) -> None:
        self._end(ConnectionResetError("connection reset by peer"))

    def _end(self, at_peer: Exception | None) -> None:
        if self._closing:
            return
        self._closing = True
        self._loop.call_soon(self._protocol.connection_lost, None)
        if self.peer is not None:
            self.peer.lose(at_peer)

    def lose(self, error: Exception | None) -> None:
        """The peer has closed the connection."""
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._protocol.connection_lost, error)

    def pause_reading(self) -> None:
        """Nothing is too much for memory."""

    def resume_reading(self) -> None:
        """As :meth:`pause_reading`."""

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol
