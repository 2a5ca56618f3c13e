"""One request while it is answered: who asks, what, of which node, and the ways to find the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from kio.schema.errors import ErrorCode

from backends.simulator.broker.broker_access import BrokerAccess, Perform
from backends.simulator.loop import SECOND
from backends.simulator.messages import Error
from backends.simulator.network import NetworkNode, NetworkRole
from backends.simulator.rpc import Answer
from backends.simulator.served.api_versions import Api
from backends.simulator.served.entities import Values
from backends.simulator.served.principals import PrincipalRights
from backends.simulator.served.served_context import ServedContext
from recovery.controller.controller_errors import ControllerRefusal

T = TypeVar("T")

PATIENCE = 30 * SECOND
"""Virtual µs after which a node that does not answer is given up: its client hears nothing."""


class NodeSilent(Exception):
    """No answer comes: the request hangs, as it does at a node that is cut off."""


@dataclass(frozen=True, slots=True)
class ServedCall:
    """``request`` is the decoded message; ``version`` the one that the answer is written in."""

    context: ServedContext
    node: NetworkNode
    rights: PrincipalRights
    version: int
    request: Any

    @property
    def at_broker(self) -> bool:
        return self.node.role is NetworkRole.BROKER

    async def ask(self, body: Any, timeout: int = PATIENCE) -> Any:
        """The node's answer to one of the simulator's own messages. Raises Silent."""
        reply = await self.context.clock.ask(self.node, body, timeout)
        if reply is None:
            raise NodeSilent
        return reply

    async def there(self, look: Callable[[BrokerAccess], T]) -> T:
        """What ``look`` finds at the broker when the question arrives there. Raises Silent."""

        def act(broker: BrokerAccess, answer: Answer) -> None:
            answer((look(broker),))

        (found,) = await self.ask(Perform(act))
        return found  # type: ignore[no-any-return]  # what look returned, through the simulator's network

    def field(self, name: str, absent: Any = None) -> Any:
        """A field of the request, or ``absent`` where its version has none."""
        return getattr(self.request, name, absent)


Handler = Callable[[ServedCall], Awaitable[Values | bytes | None]]
"""Answers one call: by values, by bytes that are encoded already, or with None, by nothing (acks=0)."""

FastPath = Callable[[ServedCall, memoryview], Awaitable[bytes | None]]
"""Answers the bytes of one request with bytes; None where the request needs the general handler."""


class HandlerTable(NamedTuple):
    """The handler of each API, and the fast paths by API and version."""

    handlers: Mapping[Api, Handler]
    fast_paths: Mapping[tuple[Api, int], FastPath]


def code(error: Error | ControllerRefusal | None) -> ErrorCode:
    """Kafka's error of that name."""
    if error is None:
        return ErrorCode.none
    name = error.error.value if isinstance(error, ControllerRefusal) else error.value
    # The limit's error is of the specification's own, and has no number.
    return ErrorCode.__members__.get(name.lower(), ErrorCode.invalid_request)


def message(error: Error | ControllerRefusal | None) -> str | None:
    """What Kafka says beside the code."""
    return error.reason if isinstance(error, ControllerRefusal) else None
