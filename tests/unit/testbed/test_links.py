"""The proxies between nodes: a cut link is silent, all others work, and nothing is lost after it is mended."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from testbed.kafka import ClusterSpec, TestbedError
from testbed.kafka.config import LOOPBACK
from testbed.kafka.links import CLIENTS, Links, node_of
from testbed.kafka.ports import PortReservation

ANSWER_SECONDS = 5.0
SILENCE_SECONDS = 0.2
NODE = 1


def request(client_id: str) -> bytes:
    """As far as the proxy reads it: an ApiVersions request."""
    body = struct.pack(">hhih", 18, 4, 7, len(client_id)) + client_id.encode()
    return struct.pack(">i", len(body)) + body


class Echo:
    """A node that sends back what it receives."""

    def __init__(self) -> None:
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port = self._listener.getsockname()[1]
        self.heard = bytearray()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            while block := client.recv(1024):
                self.heard += block
                client.sendall(block)


class Proxied:
    """The port at which others reach the node, and its links."""

    def __init__(self, port: int, links: Links, echo: Echo) -> None:
        self.port = port
        self.links = links
        self.echo = echo

    def connected(self, client_id: str) -> socket.socket:
        """A connection of that client, whose first request was answered."""
        connection = socket.create_connection((LOOPBACK, self.port), ANSWER_SECONDS)
        assert echoed(connection, request(client_id))
        return connection


def echoed(connection: socket.socket, data: bytes, seconds: float = ANSWER_SECONDS) -> bool:
    """Whether ``data`` comes back within the time; False: nothing at all came."""
    connection.sendall(data)
    return received(connection, len(data), seconds) == data


def received(connection: socket.socket, size: int, seconds: float = ANSWER_SECONDS) -> bytes:
    connection.settimeout(seconds)
    found = b""
    try:
        while len(found) < size:
            block = connection.recv(size - len(found))
            if not block:
                break
            found += block
    except TimeoutError:
        pass
    return found


@pytest.fixture
def node() -> Iterator[Proxied]:
    reserved = PortReservation(1)
    with closing(Echo()) as echo:
        links = Links({NODE: (reserved.ports[0], echo.port)})
        yield Proxied(reserved.ports[0], links, echo)
        links.close()
    reserved.release()


@pytest.mark.parametrize(
    ("client_id", "id"),
    [
        ("broker-2-fetcher-0", 2),
        ("broker-12-txn-marker-sender", 12),
        ("raft-client-101", 101),
        ("3", 3),
        ("cuttable-writer", CLIENTS),
        ("ktriage", None),
        ("consumer-group-1", None),
        ("broker-2", None),
        ("", None),
    ],
)
def test_a_node_is_known_by_the_client_id_that_kafka_gives_it(client_id: str, id: int | None) -> None:
    assert node_of(client_id) == id


def test_nothing_passes_a_cut_link_and_all_of_it_arrives_when_it_is_mended(node: Proxied) -> None:
    with node.connected("broker-2-fetcher-0") as fetcher, node.connected("broker-3-fetcher-0") as other:
        node.links.cut(2, NODE)
        assert not echoed(fetcher, b"lost", SILENCE_SECONDS)
        assert echoed(other, b"through"), "the other brokers' links are whole"
        node.links.mend()
        assert received(fetcher, 4) == b"lost", "as packets that are sent again"


def test_a_connection_over_a_cut_link_gets_no_answer(node: Proxied) -> None:
    node.links.cut(NODE, 2)
    with socket.create_connection((LOOPBACK, node.port), ANSWER_SECONDS) as late:
        assert not echoed(late, request("raft-client-2"), SILENCE_SECONDS)
        node.links.mend()
        assert received(late, len(request("raft-client-2"))) == request("raft-client-2")


def test_a_link_that_is_cut_in_one_direction_carries_the_other(node: Proxied) -> None:
    with node.connected("broker-2-fetcher-0") as fetcher:
        node.links.cut_way(NODE, 2)
        assert not echoed(fetcher, b"heard", SILENCE_SECONDS), "the answer does not come back"
        assert node.echo.heard.endswith(b"heard"), "the request arrived"
        node.links.mend()
        assert received(fetcher, 5) == b"heard"
        node.links.cut_way(2, NODE)
        assert not echoed(fetcher, b"unheard", SILENCE_SECONDS)
        assert not node.echo.heard.endswith(b"unheard"), "the request did not arrive"
        node.links.cut_way(NODE, 2)
        node.links.mend()
        assert received(fetcher, 7) == b"unheard"


def test_clients_that_want_it_are_cut_off_from_one_node(node: Proxied) -> None:
    with node.connected("cuttable-writer") as writer, node.connected("testbed") as other:
        node.links.cut(CLIENTS, NODE)
        assert not echoed(writer, b"lost", SILENCE_SECONDS)
        assert echoed(other, b"through")


def test_other_clients_are_never_cut_off(node: Proxied) -> None:
    for broker in (1, 2, 3):
        node.links.cut(broker, NODE)
    with node.connected("testbed") as client:
        assert echoed(client, b"through")


def test_closing_ends_every_connection_also_one_that_waits(node: Proxied) -> None:
    with node.connected("broker-2-fetcher-0") as fetcher:
        node.links.cut(2, NODE)
        fetcher.sendall(b"waits")
        node.links.close()
        fetcher.settimeout(ANSWER_SECONDS)
        with pytest.raises(ConnectionError):
            while fetcher.recv(1024):
                pass
            raise ConnectionResetError("ended")
    with pytest.raises(OSError):
        socket.create_connection((LOOPBACK, node.port), ANSWER_SECONDS).close()


def test_links_cannot_be_cut_where_controllers_advertise_no_address() -> None:
    with pytest.raises(TestbedError, match="dynamic quorum"):
        ClusterSpec(quorum="static", cuttable_links=True)
