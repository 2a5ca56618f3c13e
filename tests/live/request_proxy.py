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
LIST_OFFSETS = 2
ELECT_LEADERS = 43
ALTER_PARTITION_REASSIGNMENTS = 45

_SIZE = struct.Struct(">i")
_API_KEY = struct.Struct(">h")


class _Moment(NamedTuple):
    api_key: int
    skip: int
    do: Callable[[], object]


class RequestProxy:
    """Listens on a loopback port of its own and passes everything on to ``target``, request by request.

    What it does at a moment runs in the gate's own thread, before that request is passed on.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._held: set[int] = set()
        self._losing: list[int] = []
        self._moments: list[_Moment] = []
        self._lock = threading.Lock()
        self._released = threading.Event()
        self.port = 0
        self.open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.shut()

    @property
    def address(self) -> Address:
        return Address(LOOPBACK, self.port)

    def open(self) -> None:
        """Take connections (again, on the same port); harmless while it does."""
        if self._listener is not None:
            return
        listener = socket.create_server((LOOPBACK, self.port), backlog=64)
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def shut(self) -> None:
        """Drop every connection and refuse new ones."""
        listener, self._listener = self._listener, None
        if listener is not None:
            # Closing alone does not wake the thread that waits in accept.
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self._released.set()
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            _drop(connection)

    def at(self, api_key: int, do: Callable[[], object], *, skip: int = 0) -> None:
        """Once, before a request of that kind is passed on (after ``skip`` of them)."""
        self._moments.append(_Moment(api_key, skip, do))

    def lose_answer(self, api_key: int) -> None:
        """Once, a request of that kind is carried out, and the connection dies instead of the answer."""
        self._losing.append(api_key)

    def hold(self, api_key: int) -> None:
        """Requests of that kind, and answers to those that are on their way, wait here until ``release``."""
        self._released.clear()
        self._held.add(api_key)

    def release(self) -> None:
        """Let go of what is held."""
        self._held.clear()
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
                self._wait(api_key)
                client.sendall(frame)
        self._end(client, node)

    def _wait(self, api_key: int) -> None:
        if api_key in self._held:
            self._released.wait()

    def _reached(self, api_key: int) -> None:
        for index, moment in enumerate(self._moments):
            if moment.api_key != api_key:
                continue
            if moment.skip:
                self._moments[index] = moment._replace(skip=moment.skip - 1)
            else:
                del self._moments[index]
                moment.do()
            return

    def _end(self, *connections: socket.socket) -> None:
        for connection in connections:
            _drop(connection)
        with self._lock:
            self._open.difference_update(connections)


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
