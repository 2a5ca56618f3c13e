"""A relay in front of a Kafka node that fails as networks do: refuses, holds requests back, loses answers."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Self

from backends.live.client.addresses import Address
from testbed.kafka.config import LOOPBACK

FETCH = 1
ELECT_LEADERS = 43
ALTER_PARTITION_REASSIGNMENTS = 45

_SIZE = struct.Struct(">i")
_API_KEY = struct.Struct(">h")


class _Hook(NamedTuple):
    api_key: int
    skip: int
    do: Callable[[], object]


class RequestProxy:
    """Listens on its own loopback port and forwards everything to ``target``, request by request.

    A function set by :meth:`at` runs in the proxy's thread, before the request is forwarded. ``observer`` is called
    there with the API key of every frame before it is forwarded, and with True for a response.
    """

    def __init__(self, target: int, observer: Callable[[int, bool], object] | None = None) -> None:
        self._target = target
        self._observer = observer or _ignore
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._delayed: set[int] = set()
        self._losing: list[int] = []
        self._hooks: list[_Hook] = []
        self._lock = threading.Lock()
        self._released = threading.Event()
        self.port = 0
        self.open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def address(self) -> Address:
        return Address(LOOPBACK, self.port)

    def open(self) -> None:
        """Accepts connections (again, on the same port); does nothing if it already does."""
        if self._listener is not None:
            return
        listener = socket.create_server((LOOPBACK, self.port), backlog=64)
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def close(self) -> None:
        """Drops every connection and refuses new ones."""
        listener, self._listener = self._listener, None
        if listener is not None:
            # close() alone does not wake the thread that waits in accept().
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self._released.set()
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            _drop(connection)

    def at(self, api_key: int, do: Callable[[], object], *, skip: int = 0) -> None:
        """Calls ``do`` once, before a request of that kind is forwarded, after ``skip`` of them."""
        self._hooks.append(_Hook(api_key, skip, do))

    def lose_answer(self, api_key: int) -> None:
        """Once, forwards a request of that kind and drops the connection instead of the response."""
        self._losing.append(api_key)

    def delay(self, api_key: int) -> None:
        """Delays requests of that kind, and responses to those already forwarded, until ``release``."""
        self._released.clear()
        self._delayed.add(api_key)

    def release(self) -> None:
        """Forwards what is delayed."""
        self._delayed.clear()
        self._released.set()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                node = socket.create_connection((LOOPBACK, self._target), 5.0)
            except OSError:
                _drop(client)
                continue
            node.settimeout(None)
            with self._lock:
                self._open |= {client, node}
            if self._listener is not listener:
                _drop(client)
                _drop(node)
            asked: deque[int] = deque()
            for relay in (self._requests, self._answers):
                threading.Thread(target=relay, args=(client, node, asked), daemon=True).start()

    def _requests(self, client: socket.socket, node: socket.socket, asked: deque[int]) -> None:
        with contextlib.suppress(OSError):
            while frame := _frame(client):
                api_key = _API_KEY.unpack_from(frame, _SIZE.size)[0]
                self._reached(api_key)
                self._observer(api_key, False)
                self._wait(api_key)
                asked.append(api_key)
                node.sendall(frame)
        self._end(client, node)

    def _answers(self, client: socket.socket, node: socket.socket, asked: deque[int]) -> None:
        with contextlib.suppress(OSError):
            while frame := _frame(node):
                api_key = asked.popleft()
                if api_key in self._losing:
                    self._losing.remove(api_key)
                    break
                self._observer(api_key, True)
                self._wait(api_key)
                client.sendall(frame)
        self._end(client, node)

    def _wait(self, api_key: int) -> None:
        if api_key in self._delayed:
            self._released.wait()

    def _reached(self, api_key: int) -> None:
        for index, hook in enumerate(self._hooks):
            if hook.api_key != api_key:
                continue
            if hook.skip:
                self._hooks[index] = hook._replace(skip=hook.skip - 1)
            else:
                del self._hooks[index]
                hook.do()
            return

    def _end(self, *connections: socket.socket) -> None:
        for connection in connections:
            _drop(connection)
        with self._lock:
            self._open.difference_update(connections)


def _ignore(_api_key: int, _answered: bool) -> None:
    """Nobody observes."""


def _drop(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def _frame(connection: socket.socket) -> bytes:
    """One whole request or answer with its size; empty at the end of the stream."""
    head = _exactly(connection, _SIZE.size)
    return head + _exactly(connection, _SIZE.unpack(head)[0]) if head else b""


def _exactly(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        block = connection.recv(size - len(received))
        if not block:
            return b""
        received += block
    return bytes(received)
