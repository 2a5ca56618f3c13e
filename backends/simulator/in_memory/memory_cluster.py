"""The nodes of a simulation, as the connections of a virtual loop reach them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from backends.live.client.addresses import Address
from backends.live.codec.apis import Api
from backends.simulator.encoded_metadata_log import EncodedMetadataLog
from backends.simulator.in_memory.virtual_loop import MemoryTransport, VirtualLoop
from backends.simulator.loop import MILLISECOND
from backends.simulator.network import OPERATOR, NetworkNode, NetworkRole, broker
from backends.simulator.served.api_versions import offered
from backends.simulator.served.client_connection import ClientConnection, NodeService
from backends.simulator.served.frames import FrameFaults
from backends.simulator.served.handler_table import HANDLER_TABLE
from backends.simulator.served.node_listener import serving_process
from backends.simulator.served.served_call import ServedContext
from backends.simulator.simulation import Simulation
from backends.simulator.topology import cluster_id

BROKER_PORT = 9092

CHANGES = frozenset(
    (
        Api.Produce,
        Api.OffsetCommit,
        Api.CreateTopics,
        Api.DeleteTopics,
        Api.InitProducerId,
        Api.WriteTxnMarkers,
        Api.ElectLeaders,
        Api.IncrementalAlterConfigs,
        Api.AlterPartitionReassignments,
        Api.UpdateFeatures,
        Api.AddRaftVoter,
        Api.RemoveRaftVoter,
    )
)
"""The requests of an operator after which the run is another."""

Sent = Callable[[NetworkNode, bytes], None]


class VirtualClock:
    """The time of the loop: nothing has to be moved, for the loop moves the simulation."""

    speed = 1.0

    def __init__(self, simulation: Simulation, loop: VirtualLoop) -> None:
        self._simulation = simulation
        self._loop = loop

    @property
    def now(self) -> int:
        return self._simulation.now

    def wall_clock_ms(self) -> int:
        """The virtual time: it began in 1970."""
        return self.now // MILLISECOND

    async def ask(self, node: NetworkNode, body: Any, timeout: int) -> Any:
        """As the protocol says."""
        waiting = _Waiting(self._loop.create_future())
        self._simulation.world.operator.ask(node, body, timeout, waiting)
        return await waiting.answer


class _Waiting:
    """What the simulation calls with an answer. In a copy of the run nobody waits for it."""

    def __init__(self, answer: asyncio.Future[Any]) -> None:
        self.answer = answer

    def __call__(self, reply: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(reply)

    def __reduce__(self) -> tuple[Callable[[], Callable[[Any], None]], tuple[()]]:
        return _nobody_waits, ()


def _nobody_waits() -> Callable[[Any], None]:
    return _unheard


def _unheard(_reply: Any) -> None:
    """The one who asked is in another copy of the run."""


class MemoryCluster:
    """Serves every node of the simulation in the loop. ``sent`` is given each request that changes the run, with
    its node, before it is handled.
    """

    def __init__(self, simulation: Simulation, loop: VirtualLoop, sent: Sent) -> None:
        world = simulation.world
        self.simulation = simulation
        self.loop = loop
        self._world = world
        self._sent = sent
        self._context = ServedContext(
            cluster_id(simulation.scenario.name, simulation.seed),
            world,
            VirtualClock(simulation, loop),
            {
                role: offered(role, released=world.topology.config.released_calls)
                for role in (NetworkRole.BROKER, NetworkRole.CONTROLLER)
            },
            0,
            EncodedMetadataLog(world.committed_records),
        )
        self._nodes = {node: _MemoryNode(self, node) for node in world.nodes()}
        self._find_addresses()
        loop.connect, loop.moved = self._connect, self._follow_nodes
        self._watcher: Callable[[], None] | None = None
        self._defect: Exception | None = None
        self._handling: set[asyncio.Task[Any]] = set()

    def _find_addresses(self) -> None:
        """An operator may give a controller another address."""
        hosts = self._world.quorum.context.hosts
        for node in self._nodes:
            if node.role is NetworkRole.BROKER:
                self._context.addresses[node] = f"broker-{node.id}.simulated", BROKER_PORT
            else:
                self._context.addresses[node] = hosts[node.id].host, hosts[node.id].port

    @property
    def bootstrap(self) -> tuple[Address, ...]:
        """Every broker's address."""
        brokers = sorted(self._world.specs)
        return tuple(Address(*self._context.addresses[broker(number)]) for number in brokers)

    def service(self, node: NetworkNode, answers: Callable[[], bool]) -> NodeService:
        """What that node answers with."""
        return NodeService(self._context, node, {}, HANDLER_TABLE, answers, FrameFaults(), self._fail)

    def reached(self, node: NetworkNode) -> bool:
        """Whether the operator reaches that node."""
        return self._world.network.connected(OPERATOR, node)

    def serving(self, node: NetworkNode) -> object | None:
        """The process that serves there now."""
        return serving_process(self._world, node)

    def note(self, node: NetworkNode, frame: bytes) -> None:
        """A whole request, without its length, has arrived."""
        if int.from_bytes(frame[:2], "big") in CHANGES:
            self._sent(node, frame)

    async def come_to(self, time: int) -> None:
        """Let virtual time pass until ``time`` (µs)."""
        await self.loop.run(self.loop.come_to(time))

    def watch(self, watcher: Callable[[], None] | None) -> None:
        """``watcher`` is called whenever virtual time has passed; None: nobody is."""
        self._watcher = watcher

    @property
    def replaying(self) -> bool:
        """Whether a request of an earlier run is not answered yet."""
        return bool(self._handling)

    def replay(self, node: NetworkNode, frame: bytes) -> None:
        """Handle a request of an earlier run; nobody gets the answer."""
        at = self._nodes[node]
        if at.process is None:
            return
        reader = asyncio.StreamReader(loop=self.loop)
        reader.feed_data(len(frame).to_bytes(4, "big") + frame)
        reader.feed_eof()
        connection = ClientConnection(self.service(node, lambda: at.answers), reader, _nobody(self.loop))
        task = self.loop.create_task(connection.serve())
        self._handling.add(task)
        task.add_done_callback(self._handling.discard)

    def raise_defect(self) -> None:
        """Raises what a handler of the simulator has raised, if any has."""
        if self._defect is not None:
            raise self._defect

    def _fail(self, defect: Exception) -> None:
        self._defect = self._defect or defect

    async def _connect(self, host: str, port: int, client: asyncio.Transport) -> MemoryTransport:
        self._find_addresses()
        found = [node for node, address in self._context.addresses.items() if address == (host, port)]
        if not found:
            raise ConnectionRefusedError(f"nothing listens at {host}:{port}")
        return await self._nodes[found[0]].accept(self.loop, client)

    def _follow_nodes(self) -> None:
        for node in self._nodes.values():
            node.follow()
        if self._watcher is not None:
            self._watcher()


class _MemoryNode:
    """One node. The connections of a process end with it; a node that is cut off takes none, and answers none."""

    def __init__(self, cluster: MemoryCluster, node: NetworkNode) -> None:
        self._cluster = cluster
        self._node = node
        self.process = cluster.serving(node)
        self._service = cluster.service(node, lambda: self.answers)
        self._connections: dict[MemoryTransport, asyncio.Task[None]] = {}

    @property
    def answers(self) -> bool:
        """Whether it serves, and the operator reaches it."""
        return self.process is not None and self._cluster.reached(self._node)

    async def accept(self, loop: VirtualLoop, client: asyncio.Transport) -> MemoryTransport:
        """The node's end of a new connection. Raises OSError."""
        if self.process is None:
            raise ConnectionRefusedError("connection refused")
        while not self._cluster.reached(self._node):  # noqa: ASYNC110  # as TCP does, it tries again
            await asyncio.sleep(1)
        reader = asyncio.StreamReader(loop=loop)
        protocol = _Noting(reader, loop, lambda frame: self._cluster.note(self._node, frame))
        end = MemoryTransport(loop, protocol, "operator")
        assert isinstance(client, MemoryTransport)
        end.peer = client
        protocol.connection_made(end)
        writer = asyncio.StreamWriter(end, protocol, reader, loop)
        task = loop.create_task(ClientConnection(self._service, reader, writer).serve())
        self._connections[end] = task
        task.add_done_callback(lambda _: self._end(end))
        return end

    def _end(self, end: MemoryTransport) -> None:
        self._connections.pop(end, None)
        end.close()

    def follow(self) -> None:
        """The simulation has gone on: an ended process resets its connections."""
        present = self._cluster.serving(self._node)
        if present is self.process:
            return
        self.process = present
        for end, task in list(self._connections.items()):
            end.abort()
            task.cancel()


class _Noting(asyncio.StreamReaderProtocol):
    """Tells of each frame: a client writes a whole one at once."""

    def __init__(
        self, reader: asyncio.StreamReader, loop: VirtualLoop, note: Callable[[bytes], None]
    ) -> None:
        super().__init__(reader, loop=loop)
        self._note = note

    def data_received(self, data: bytes) -> None:
        self._note(data[4:])
        super().data_received(data)


def _nobody(loop: VirtualLoop) -> asyncio.StreamWriter:
    """Where the answers of a replay go."""
    reader = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    end = MemoryTransport(loop, protocol, "replay")
    protocol.connection_made(end)
    return asyncio.StreamWriter(end, protocol, reader, loop)
