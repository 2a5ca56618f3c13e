"""Links between nodes that can be cut one at a time, in one direction too: a proxy before each internal listener.

On loopback all nodes have one address, so a firewall cannot tell them apart. The proxy knows who connects by the
client id of the first request (Kafka protocol guide, request header): Kafka's nodes put their own id there.
Clients that want their links to be cut take a client id that begins with :data:`CUTTABLE_CLIENT`.
"""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading
from collections.abc import Mapping

from testbed.kafka.config import LOOPBACK

_CLIENT_ID = re.compile(r"broker-(\d+)-.+|raft-client-(\d+)|(\d+)")
"""Of a fetcher or a sender of transaction markers, of the Raft client, and of a broker that asks the controller."""
CLIENTS = 0
"""In the place of a node's id: all clients whose links can be cut."""
CUTTABLE_CLIENT = "cuttable-"
_HEADER = struct.Struct(">ihhih")
"""Size of the request, API key, version, correlation id, length of the client id (-1: none)."""
_Way = tuple[int, int]
"""From whom, to whom."""
_BLOCK = 1 << 16
_CONNECT_SECONDS = 5.0


def node_of(client_id: str) -> int | None:
    """The node that uses this client id, or :data:`CLIENTS`; None for any other client."""
    if client_id.startswith(CUTTABLE_CLIENT):
        return CLIENTS
    found = _CLIENT_ID.fullmatch(client_id)
    return int(next(filter(None, found.groups()))) if found else None


class Links:
    """The proxies of all nodes. ``proxied`` has, by node id, the port that others use and the one it listens on.

    While a link is cut, nothing passes between the two nodes and no connection ends, as when packets are dropped;
    what was sent in the meantime arrives after :meth:`mend`.
    """

    def __init__(self, proxied: Mapping[int, tuple[int, int]]) -> None:
        self._cut: set[_Way] = set()
        self._changed = threading.Condition()
        self._open: set[socket.socket] = set()
        self._listeners: list[socket.socket] = []
        self._closed = False
        for node, (port, target) in proxied.items():
            listener = socket.create_server((LOOPBACK, port), backlog=64)
            self._listeners.append(listener)
            threading.Thread(target=self._accept, args=(listener, node, target), daemon=True).start()

    def cut(self, one: int, other: int) -> None:
        """Nothing passes between the two nodes any more, in either direction."""
        self.cut_way(one, other)
        self.cut_way(other, one)

    def cut_way(self, source: int, target: int) -> None:
        """Nothing that ``source`` sends reaches ``target`` any more, whoever opened the connection."""
        with self._changed:
            self._cut.add((source, target))

    def mend(self) -> None:
        """Every link works again."""
        with self._changed:
            self._cut.clear()
            self._changed.notify_all()

    def close(self) -> None:
        """Drops every connection and refuses new ones; may be called twice."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            connections = list(self._open)
        for listener in self._listeners:
            _drop(listener)
        for connection in connections:
            _drop(connection)

    def _accept(self, listener: socket.socket, node: int, target: int) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client, node, target), daemon=True).start()

    def _serve(self, client: socket.socket, node: int, target: int) -> None:
        """One connection: who connects is known before its first byte is passed on."""
        self._add(client)
        try:
            received, client_id = _first_client_id(client)
            server = socket.create_connection((LOOPBACK, target), _CONNECT_SECONDS)
        except OSError:
            self._end(client)
            return
        server.settimeout(None)
        self._add(server)
        source = node_of(client_id)
        there, back = (None, None) if source is None else ((source, node), (node, source))
        answers = threading.Thread(target=self._relay, args=(server, client, back), daemon=True)
        answers.start()
        self._relay(client, server, there, received)
        answers.join()

    def _relay(
        self, source: socket.socket, target: socket.socket, way: _Way | None, block: bytes = b""
    ) -> None:
        """Passes on ``block``, and then what ``source`` sends."""
        with contextlib.suppress(OSError):
            while block := block or source.recv(_BLOCK):
                with self._changed:
                    self._changed.wait_for(lambda: self._closed or way not in self._cut)
                target.sendall(block)
                block = b""
        self._end(source, target)

    def _add(self, connection: socket.socket) -> None:
        with self._changed:
            self._open.add(connection)
            closed = self._closed
        if closed:
            self._end(connection)

    def _end(self, *connections: socket.socket) -> None:
        for connection in connections:
            _drop(connection)
        with self._changed:
            self._open.difference_update(connections)


def _first_client_id(client: socket.socket) -> tuple[bytes, str]:
    """What was received until the client id of the first request was whole, and that id; empty if it has none."""
    received = _received(client, b"", _HEADER.size)
    length = max(0, _HEADER.unpack_from(received)[-1])
    received = _received(client, received, _HEADER.size + length)
    return received, received[_HEADER.size : _HEADER.size + length].decode(errors="replace")


def _received(client: socket.socket, received: bytes, size: int) -> bytes:
    """At least ``size`` bytes. Raises ConnectionError if the connection ends before."""
    while len(received) < size:
        block = client.recv(_BLOCK)
        if not block:
            raise ConnectionError("the connection ended within its first request")
        received += block
    return received


def _drop(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
