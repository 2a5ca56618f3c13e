"""The served cluster: a simulation with its clock, and a listener for each node."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import NoReturn

from backends.simulator.encoded_metadata_log import EncodedMetadataLog
from backends.simulator.loop import MILLISECOND
from backends.simulator.network import NetworkNode, NetworkRole
from backends.simulator.scenario.build import Scenario
from backends.simulator.served.api_versions import offered
from backends.simulator.served.clock import Clock, SimulatorFailed
from backends.simulator.served.handler_table import HANDLER_TABLE
from backends.simulator.served.node_listener import NodeListener
from backends.simulator.served.principals import Principal
from backends.simulator.served.served_call import HOST, HandlerTable, ServedContext
from backends.simulator.simulation import Simulation


@dataclass(frozen=True, slots=True)
class ServedClusterOptions:
    """``speed`` in virtual seconds per second; 0: time stands still. ``port_base`` 0: any free ports.

    ``without`` are hidden APIs, with a version from that version on. With ``users`` every listener requires
    SASL PLAIN. An empty ``cluster_id`` is derived from scenario and seed.
    """

    seed: int = 1
    speed: float = 1.0
    port_base: int = 0
    without: frozenset[tuple[int, int | None]] = frozenset()
    users: Mapping[str, Principal] = field(default_factory=dict)
    cluster_id: str = ""


class ServedCluster:
    """One scenario on the wire, from the arrival of its operator on; or a ``simulation`` that the caller owns,
    as it is.

    Start and close it in one running event loop. ``ports`` are known once it is started, and stay with their
    nodes. A defect of the simulator stops the cluster; ``async with`` then raises it.
    """

    def __init__(
        self,
        scenario: Scenario,
        options: ServedClusterOptions | None = None,
        simulation: Simulation | None = None,
        handlers: HandlerTable = HANDLER_TABLE,
    ) -> None:
        self.options = options or ServedClusterOptions()
        self.scenario = scenario
        self.simulation = simulation or Simulation(scenario, self.options.seed)
        self.world = self.simulation.world
        if simulation is None:
            self.simulation.advance_to(scenario.operator_at)
        self.cluster_id = self.options.cluster_id or _cluster_id(scenario.name, self.options.seed)
        self.clock = Clock(self.simulation, self.options.speed, self._follow_nodes, self._fail)
        self.failure: SimulatorFailed | None = None
        """The first defect of the simulator or of a request handler."""
        self._failed = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        without, released = self.options.without, self.world.topology.config.released_calls
        began_ms = int(time.time() * 1000) - self.simulation.now // MILLISECOND
        self.context = ServedContext(
            self.cluster_id,
            self.world,
            self.clock,
            {
                role: offered(role, without, released=released)
                for role in (NetworkRole.BROKER, NetworkRole.CONTROLLER)
            },
            began_ms,
            EncodedMetadataLog(self.world.committed_records, began_ms),
        )
        self.inert_configs = self.context.inert_configs
        self._handlers = handlers
        self._listeners: dict[NetworkNode, NodeListener] = {}

    async def start(self) -> None:
        """Listen at every node that is up. Raises OSError if a port is taken; then nothing listens."""
        nodes = sorted(self.world.nodes(), key=lambda node: (node.role is not NetworkRole.BROKER, node.id))
        try:
            for number, node in enumerate(nodes):
                listener = self._listeners[node] = NodeListener(
                    self.context, node, self.options.users, self._handlers, self.handler_failed
                )
                base = self.options.port_base
                port = base + number if base else 0
                self.context.addresses[node] = HOST, await listener.bind(HOST, port)
        except OSError as error:
            await self.close()
            raise OSError(error.errno, f"port {port}: {error.strerror}") from None
        self._follow_nodes()
        self.clock.start()

    async def close(self) -> None:
        """Stop listening and drop every connection; in any state, and twice."""
        self.clock.stop()
        if self._stopping is not None:
            await self._stopping
        await self._stop_listening()
        self._listeners.clear()

    async def _stop_listening(self) -> None:
        for listener in self._listeners.values():
            await listener.close()

    def _fail(self, failure: SimulatorFailed) -> None:
        """The simulator cannot go on: no client may take what it said for a healthy cluster's answer."""
        if self._stopping is None:
            self.failure = failure
            self._stopping = asyncio.get_running_loop().create_task(self._stop_listening())
            self._failed.set()

    def handler_failed(self, defect: Exception) -> None:
        """A request handler has a defect: the cluster serves on, and ``async with`` raises it at the end."""
        if self.failure is None:
            self.failure = SimulatorFailed(self.simulation, defect)
            self.failure.__cause__ = defect

    async def run_until_failure(self) -> NoReturn:
        """Serve until the simulator fails; raises SimulatorFailed."""
        await self._failed.wait()
        assert self.failure is not None
        raise self.failure

    async def __aenter__(self) -> ServedCluster:
        await self.start()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.close()
        if self.failure is not None and error is not self.failure:
            raise self.failure

    @property
    def bootstrap(self) -> str:
        """Every broker's address."""
        return self.context.servers(NetworkRole.BROKER)

    @property
    def bootstrap_controllers(self) -> str:
        return self.context.servers(NetworkRole.CONTROLLER)

    @property
    def ports(self) -> dict[NetworkNode, int]:
        """The port of every node."""
        return {node: port for node, (_, port) in self.context.addresses.items()}

    def listener(self, node: NetworkNode) -> NodeListener:
        return self._listeners[node]

    def _follow_nodes(self) -> None:
        """The state may have changed: nodes that are down stop listening."""
        for listener in self._listeners.values():
            listener.follow_node()


def _cluster_id(name: str, seed: int) -> str:
    """22 characters of URL-safe base64, as Kafka prints it; the same for a scenario and seed."""
    return cluster_id_of(hashlib.sha256(f"cluster {name} {seed}".encode()).digest()[:16])


def cluster_id_of(sixteen: bytes) -> str:
    """16 bytes as Kafka prints an id; never with a leading dash, which a command would read as an option."""
    text = base64.urlsafe_b64encode(sixteen).decode().rstrip("=")
    return f"A{text[1:]}" if text.startswith("-") else text
