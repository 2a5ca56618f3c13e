"""One request while it is answered, what its handlers share with those of every node, and the types of handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from kio.schema.errors import ErrorCode

from backends.live.codec.apis import Api, Versions
from backends.live.codec.message_fields import Values
from backends.simulator.broker.broker_access import BrokerAccess, Perform
from backends.simulator.encoded_metadata_log import EncodedMetadataLog
from backends.simulator.loop import MILLISECOND, SECOND
from backends.simulator.messages import Error
from backends.simulator.network import NetworkNode, NetworkRole
from backends.simulator.rpc import Answer
from backends.simulator.served.principals import PrincipalRights
from backends.simulator.world import World
from recovery.controller.controller_errors import ControllerError, ControllerRefusal

HOST = "127.0.0.1"


class NodeClock(Protocol):
    """The time in which nodes answer."""

    @property
    def now(self) -> int:
        """Virtual µs."""
        ...

    @property
    def speed(self) -> float:
        """Virtual seconds per second of the event loop; 0: time is stopped."""
        ...

    def wall_clock_ms(self) -> int:
        """Now, in ms since the epoch, for clients that compare times with their own."""
        ...

    async def ask(self, node: NetworkNode, body: Any, timeout: int) -> Any:
        """An operator's request to a node; None if there was no answer in ``timeout`` virtual µs."""
        ...


@dataclass(frozen=True, slots=True)
class ServedContext:
    """``offered`` is what ApiVersions says at a node of each role. ``began_ms`` is virtual time 0 in ms since
    the epoch. ``metadata_log`` is what controllers answer Fetch with. ``addresses`` is filled while the nodes
    begin to listen.
    """

    cluster_id: str
    world: World
    clock: NodeClock
    offered: Mapping[NetworkRole, Versions]
    began_ms: int
    metadata_log: EncodedMetadataLog
    addresses: dict[NetworkNode, tuple[str, int]] = field(default_factory=dict)

    @property
    def inert_configs(self) -> dict[tuple[int, str], dict[str, str]]:
        """The values of resources, by (type, name), on which the simulator does not act."""
        return self.world.context.inert_configs

    def nodes(self, role: NetworkRole) -> Sequence[NetworkNode]:
        """The nodes of that role in the scenario."""
        return [node for node in self.addresses if node.role is role]

    def servers(self, role: NetworkRole) -> str:
        """``host:port`` of every node of that role, separated by commas."""
        return ",".join(map(self.server, self.nodes(role)))

    def server(self, node: NetworkNode) -> str:
        """``host:port`` of that node."""
        host, port = self.addresses[node]
        return f"{host}:{port}"

    def in_epoch_ms(self, virtual_ms: int) -> int:
        """A time of the simulation as ms since the epoch; -1 stays -1."""
        return virtual_ms if virtual_ms < 0 else self.began_ms + virtual_ms

    def wall_clock_ms(self, virtual_ms: int) -> int:
        """As :meth:`in_epoch_ms`, for a time that is compared with now: as long ago as it is in virtual time."""
        if virtual_ms < 0:
            return virtual_ms
        return self.clock.wall_clock_ms() - (self.clock.now // MILLISECOND - virtual_ms)


T = TypeVar("T")

READ_COMMITTED = 1
"""The isolation level in Fetch and ListOffsets."""
PATIENCE = 30 * SECOND
"""Virtual µs to wait for a silent node; its client then gets no answer."""


class NodeSilent(Exception):
    """There will be no answer: the request hangs, as at a node that is cut off."""


@dataclass(frozen=True, slots=True)
class ServedCall:
    """``request`` is the decoded message; ``version`` is also that of the answer. ``client`` is what the client
    calls itself, ``host`` where it is connected from.
    """

    context: ServedContext
    node: NetworkNode
    rights: PrincipalRights
    version: int
    request: Any
    client: str = ""
    host: str = ""

    @property
    def at_broker(self) -> bool:
        return self.node.role is NetworkRole.BROKER

    async def ask(self, body: Any, timeout: int = PATIENCE) -> Any:
        """The node's answer to a message of the simulator. Raises NodeSilent."""
        reply = await self.context.clock.ask(self.node, body, timeout)
        if reply is None:
            raise NodeSilent
        return reply

    async def perform(self, act: Callable[[BrokerAccess, Answer], None], timeout: int = PATIENCE) -> Any:
        """What ``act`` answers at the broker when the request arrives there. Raises NodeSilent."""

        def arrived(broker: BrokerAccess, answer: Answer) -> None:
            act(broker, lambda found: answer((found,)))

        (found,) = await self.ask(Perform(arrived), timeout)
        return found

    async def read_broker(self, read: Callable[[BrokerAccess], T]) -> T:
        """What ``read`` returns at the broker when the request arrives there. Raises NodeSilent."""
        found: T = await self.perform(lambda broker, answer: answer(read(broker)))
        return found

    @property
    def read_committed(self) -> bool:
        """Whether a consumer asks for committed records only."""
        return bool(self.field("isolation_level", 0) == READ_COMMITTED)

    def field(self, name: str, absent: Any = None) -> Any:
        """A field of the request; ``absent`` if its version has none."""
        return getattr(self.request, name, absent)


Handler = Callable[[ServedCall], Awaitable[Values | bytes | None]]
"""Answers one request: with values, with encoded bytes, or with None for no answer (acks=0)."""

FastPath = Callable[[ServedCall, memoryview], Awaitable[bytes | None]]
"""Answers the bytes of one request with bytes; None where the request needs the general handler."""


class HandlerTable(NamedTuple):
    """The general handler of each API, and the fast paths by API and version."""

    handlers: Mapping[Api, Handler]
    fast_paths: Mapping[tuple[Api, int], FastPath]


def code(error: Error | ControllerRefusal | None) -> ErrorCode:
    """The error code of that name."""
    if error is None:
        return ErrorCode.none
    name = error.error.value if isinstance(error, ControllerRefusal) else error.value
    if name == ControllerError.REQUEST_LIMIT_REACHED.value:
        # KIP-966 gives it no number. As this code it is retriable, which is what it means; its message names it.
        return ErrorCode.throttling_quota_exceeded
    return ErrorCode.__members__.get(name.lower(), ErrorCode.invalid_request)


def message(error: Error | ControllerRefusal | None) -> str | None:
    """Kafka's error message with the code."""
    return error.reason if isinstance(error, ControllerRefusal) else None
