"""Moving replicas on a simulated cluster: it copies without a throttle, and keeps every registration."""

# ruff: noqa: ARG002  # the signatures are the protocols'

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backends.base.errors import NotOffered
from backends.base.replica_moves import Throttled, Throttles
from backends.simulator.messages import Reassign, ReassignReply
from backends.simulator.network import broker as node
from backends.simulator.operate.operator_client import OperatorClient, check
from backends.simulator.operate.session_store import SessionStore
from recovery.model import TopicPartition, Unknown


class SimulatedReplicaMover:
    """Implements :class:`backends.base.replica_moves.ReplicaMover`."""

    def __init__(self, client: OperatorClient, store: SessionStore) -> None:
        self._client = client
        self._store = store

    async def reassign(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], *, other_factor: bool = False
    ) -> Mapping[TopicPartition, str | None]:
        asked, _ = self._client.caught_up()
        body = Reassign(tuple(sorted(targets.items())), other_factor)
        self._store.sent(node(asked), body)
        answer = self._client.one(node(asked), body)
        self._store.save()
        reply: ReassignReply = check(answer, "ALTER", "reassign partitions")
        return {tp: None if why is None else str(why) for tp, why in reply.refusals.items()}

    async def set_throttles(
        self, values: Mapping[Throttled, Mapping[str, str | None]]
    ) -> Mapping[Throttled, str | None]:
        raise NotOffered("a simulated cluster copies without a throttle")

    async def unregister(self, broker: int) -> None:
        raise NotOffered("a simulated cluster does not unregister brokers")


class SimulatedThrottleReader:
    """Implements :class:`backends.base.replica_moves.ThrottleReader`."""

    async def throttles(self, named: Sequence[Throttled]) -> Mapping[Throttled, Throttles | Unknown]:
        return {one: {} for one in named}
