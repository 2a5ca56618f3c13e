"""Relays in front of served brokers: far away, silent behind a tunnel, or dropping what connects."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum

LOOPBACK = "127.0.0.1"
_CHUNK = 1 << 16
_FILLED = 8
"""Connections that fill the queue of a listener that accepts none: what comes after them is not answered."""


class RelayedLink(StrEnum):
    """What is between a client and a broker."""

    DELAYED = "delayed"
    SILENT = "takes the connection, answers nothing"
    DROPPED = "answers no connection attempt"


class Frames:
    """Counts the messages that end in each piece of one direction: a length of four bytes, then so many bytes."""

    def __init__(self) -> None:
        self._length = b""
        self._left = 0

    def ended(self, data: bytes) -> int:
        """How many messages end in this piece."""
        count = 0
        while data:
            if not self._left:
                self._length, data = (self._length + data)[:4], data[4 - len(self._length) :]
                if len(self._length) < 4:
                    break
                self._left, self._length = int.from_bytes(self._length, "big"), b""
            taken = min(self._left, len(data))
            self._left, data = self._left - taken, data[taken:]
            count += not self._left
        return count


class RelayedRequests:
    """One connection: after how many round trips it is open, and each request that waits is answered."""

    def __init__(self, opened: int) -> None:
        self.opened = opened
        self.answers: deque[int] = deque()
        self.requests = Frames()
        self.delivered = Frames()


class Relays:
    """Runs in a thread of its own. ``round_trip`` is in seconds, and the same for each DELAYED broker.

    A connection on this machine is made at once: the round trip that TCP needs for it is waited for before its
    first bytes.

    ``chain`` counts the round trips that were waited for one after the other, whatever the machine's load: a
    request comes after every answer that had been delivered when it was sent. Requests that are independent of
    those answers and merely late count too, so that it is an upper bound.
    """

    def __init__(self, round_trip: float) -> None:
        self.chain = 0
        self._half = round_trip / 2
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._full: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []

    def __enter__(self) -> Relays:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._full:
            one.close()
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def to(self, port: int, link: RelayedLink = RelayedLink.DELAYED) -> int:
        """The port of a new relay to the broker that listens at ``port`` of this machine."""
        if link is RelayedLink.DROPPED:
            return self._dropping()
        return asyncio.run_coroutine_threadsafe(self._listen(port, link), self._loop).result()

    def _dropping(self) -> int:
        listener = socket.create_server((LOOPBACK, 0), backlog=0)
        self._full.append(listener)
        for _ in range(_FILLED):
            waiting = socket.socket()
            waiting.setblocking(False)
            with suppress(BlockingIOError):
                waiting.connect(listener.getsockname())
            self._full.append(waiting)
        return int(listener.getsockname()[1])

    async def _listen(self, port: int, link: RelayedLink) -> int:
        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(relay(reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if link is RelayedLink.SILENT:
                with suppress(OSError):
                    while await reader.read(_CHUNK):
                        pass
                writer.close()
                return
            try:
                there_reader, there_writer = await asyncio.open_connection(LOOPBACK, port)
            except OSError:
                writer.close()
                return
            asked = RelayedRequests(self.chain + 1)
            try:
                await asyncio.gather(
                    self._carry(reader, there_writer, 2 * self._half, asked, asking=True),
                    self._carry(there_reader, writer, 0.0, asked, asking=False),
                )
            finally:
                writer.close()
                there_writer.close()

        server = await asyncio.start_server(accepted, LOOPBACK, 0)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        first: float,
        asked: RelayedRequests,
        *,
        asking: bool,
    ) -> None:
        """Each piece arrives half a round trip after it was sent, the first one ``first`` seconds later still."""
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def read() -> None:
            earliest = self._loop.time() + first
            with suppress(OSError):
                while data := await reader.read(_CHUNK):
                    if asking:
                        depth = max(asked.opened, self.chain) + 1
                        asked.answers.extend([depth] * asked.requests.ended(data))
                    pieces.put_nowait((max(self._loop.time(), earliest) + self._half, data))
            pieces.put_nowait((self._loop.time() + self._half, b""))

        async def write() -> None:
            with suppress(OSError):
                while True:
                    due, data = await pieces.get()
                    await asyncio.sleep(max(0.0, due - self._loop.time()))
                    if not data:
                        return
                    if not asking:
                        for _ in range(asked.delivered.ended(data)):
                            self.chain = max(self.chain, asked.answers.popleft())
                    writer.write(data)
                    await writer.drain()

        reading = self._loop.create_task(read())
        try:
            await write()
        finally:
            reading.cancel()
            writer.close()


@contextmanager
def relayed(
    brokers: Mapping[int, int], round_trip: float, links: Mapping[int, RelayedLink] | None = None
) -> Iterator[tuple[Relays, str, tuple[str, ...]]]:
    """Relays to ``brokers``, by their ports here; the bootstrap servers and options ``--broker`` through them."""
    kinds = links or {}
    with Relays(round_trip) as relays:
        ports = {
            broker: relays.to(port, kinds.get(broker, RelayedLink.DELAYED))
            for broker, port in brokers.items()
        }
        bootstrap = ",".join(
            f"{LOOPBACK}:{port}"
            for broker, port in ports.items()
            if kinds.get(broker) is not RelayedLink.DROPPED
        )
        options = tuple(
            word for broker, port in ports.items() for word in ("--broker", f"{broker}={LOOPBACK}:{port}")
        )
        yield relays, bootstrap, options
