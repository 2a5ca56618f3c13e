"""The listener of one node, and its connections when the node dies, hangs or is cut off."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping

from backends.simulator.events import BrokerStopped, Event
from backends.simulator.network import OPERATOR, NetworkNode, NetworkRole
from backends.simulator.served.client_connection import ClientConnection, NodeService
from backends.simulator.served.frames import FrameFaults
from backends.simulator.served.principals import Principal
from backends.simulator.served.served_call import HandlerTable, ServedContext
from backends.simulator.world import World

BACKLOG = 128
AT_MOST = 1_000
"""The largest number of connections; further ones are closed at once."""
AGAIN = 0.05
"""Seconds between two attempts to bind a port."""


def serving_process(world: World, node: NetworkNode) -> object | None:
    """The process that serves clients at that node now. A starting broker listens once it has metadata, as in
    Kafka.
    """
    if node.role is NetworkRole.CONTROLLER:
        return world.controllers.get(node.id)
    process = world.brokers.get(node.id)
    return process if process is not None and process.state.offset >= 0 else None


class NodeListener:
    """Keeps its port while the node is down, so that no other process takes it.

    A killed node refuses connections, and its open ones are reset. A node without power, or cut off from the
    operator, accepts connections and answers nothing.
    """

    def __init__(
        self,
        context: ServedContext,
        node: NetworkNode,
        users: Mapping[str, Principal],
        table: HandlerTable,
        handler_failed: Callable[[Exception], None],
    ) -> None:
        self.node = node
        self.frame_faults = FrameFaults()
        self._world = context.world
        self._service = NodeService(
            context, node, users, table, lambda: self.answers, self.frame_faults, handler_failed
        )
        self._socket: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._connections: dict[ClientConnection, asyncio.Task[None]] = {}
        self._process: object | None = None
        self._dark = False
        self._address = ("", 0)
        self._switching: asyncio.Task[None] | None = None
        if node.role is NetworkRole.BROKER:
            context.world.events.subscribers.append(self._saw)

    def _saw(self, event: Event) -> None:
        if isinstance(event, BrokerStopped) and event.broker == self.node.id:
            self._dark = event.power_lost

    async def bind(self, host: str, port: int) -> int:
        """Take the port. Raises OSError if it is taken."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            # Any free port must not be that of another simulator's node that is down: that one is bound for reuse.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(port != 0))
            listener.setblocking(False)
            listener.bind((host, port))
            # What a client has not closed yet must not keep the node from its own port when it comes back.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        except OSError:
            listener.close()
            raise
        self._socket = listener
        self._address = listener.getsockname()
        self._process = serving_process(self._world, self.node)
        await self._listen()
        return int(self._address[1])

    async def _listen(self) -> None:
        if self._socket is None:
            self._socket = self._bound_anew()
        if self._process is not None or self._dark:
            listener, self._socket = self._socket, None
            self._server = await asyncio.start_server(self._take, sock=listener, backlog=BACKLOG)

    def _bound_anew(self) -> socket.socket:
        """Raises OSError."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setblocking(False)
            listener.bind(self._address)
        except OSError:
            listener.close()
            raise
        return listener

    @property
    def answers(self) -> bool:
        """Whether the node serves and the operator reaches it."""
        return self._process is not None and self._world.network.connected(OPERATOR, self.node)

    def follow_node(self) -> None:
        """Follow the node's state: reset the connections of an ended process, stop or start listening."""
        present = serving_process(self._world, self.node)
        powered = self._dark and self.node.id in self._world.brokers
        if present is self._process and not powered:
            return
        gone = self._process is not None
        self._process = present
        if powered:
            self._dark = False
        if gone and not self._dark:
            self._reset_all()
        if self._switching is None or self._switching.done():
            self._switching = asyncio.get_running_loop().create_task(self._switch())

    async def _switch(self) -> None:
        wanted = self._process is not None or self._dark
        while (self._server is not None) != wanted:
            if self._server is not None:
                server, self._server = self._server, None
                server.close()
            # The port stays bound, so that it cannot be taken by another while nobody listens.
            pause = 0.0
            try:
                await self._listen()
            except OSError:
                pause = AGAIN
            await asyncio.sleep(pause)
            wanted = self._process is not None or self._dark

    def _reset_all(self) -> None:
        for connection, task in list(self._connections.items()):
            connection.reset()
            task.cancel()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connection = ClientConnection(self._service, reader, writer)
        if len(self._connections) >= AT_MOST:
            connection.reset()
            return
        self._connections[connection] = task
        try:
            await connection.serve()
        except asyncio.CancelledError:
            if self._server is not None and task.uncancel() > 0:
                raise
        finally:
            self._connections.pop(connection, None)
            connection.reset()

    async def close(self) -> None:
        """May be called twice."""
        if self._switching is not None:
            self._switching.cancel()
        if self._saw in self._world.events.subscribers:
            self._world.events.subscribers.remove(self._saw)
        server, self._server = self._server, None
        tasks = list(self._connections.values())
        self._reset_all()
        if server is not None:
            server.close()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        await asyncio.gather(*tasks, return_exceptions=True)
