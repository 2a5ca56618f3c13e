"""Moving replicas on a running cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from backends.base.errors import BackendError
from backends.base.replica_moves import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    Configured,
    ConfiguredKind,
    Throttles,
)
from backends.live.calls.configs import (
    alter_broker_config,
    alter_topic_configs,
    describe_broker_configs,
    describe_topic_configs,
)
from backends.live.calls.partition_errors import PartitionRefusal
from backends.live.calls.reassignments import write_assignments
from backends.live.calls.unregister_broker import unregister_broker
from backends.live.errors import as_unknown
from backends.live.nodes.brokers import BrokerFleet
from recovery.model import TopicPartition, Unknown, Why

NO_LIMIT = str(2**63 - 1)
"""What a broker tells for a rate that is not set."""
BROKER_SECONDS = 10.0
"""For one broker: one that hangs must not keep the others waiting."""


class LiveReplicaMover:
    """Implements :class:`backends.base.replica_moves.ReplicaMover`."""

    def __init__(self, fleet: BrokerFleet) -> None:
        self._fleet = fleet

    async def reassign(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], *, other_factor: bool = False
    ) -> Mapping[TopicPartition, str | None]:
        """Sent once only."""
        results = await self._fleet.any(
            lambda conn: write_assignments(conn, targets, other_factor=other_factor), again=False
        )
        return {tp: None if why is None else _refusal_text(why) for tp, why in results.value.items()}

    async def alter_configs(
        self, values: Mapping[Configured, Mapping[str, str | None]]
    ) -> Mapping[Configured, str | None]:
        """Each broker is asked itself: no other takes its configuration."""
        topics = {one.name: changes for one, changes in values.items() if one.kind is ConfiguredKind.TOPIC}
        brokers = [one for one in values if one.kind is ConfiguredKind.BROKER]
        found: dict[Configured, str | None] = {}
        if topics:
            found.update(await self._set_topics(topics))
        answers = await asyncio.gather(*(self._set_broker(one, values[one]) for one in brokers))
        found.update(zip(brokers, answers, strict=True))
        return found

    async def _set_topics(
        self, topics: Mapping[str, Mapping[str, str | None]]
    ) -> dict[Configured, str | None]:
        try:
            results = (
                await self._fleet.any(lambda conn: alter_topic_configs(conn, topics), again=False)
            ).value
        except BackendError as error:
            results = dict.fromkeys(topics, str(error))
        return {Configured(ConfiguredKind.TOPIC, name): why for name, why in results.items()}

    async def _set_broker(self, one: Configured, changes: Mapping[str, str | None]) -> str | None:
        broker = int(one.name)
        try:
            async with asyncio.timeout(BROKER_SECONDS):
                return await alter_broker_config(await self._fleet.connection(broker), broker, changes)
        except TimeoutError:
            return f"no answer within {BROKER_SECONDS:g} s"
        except BackendError as error:
            return str(error)

    async def unregister(self, broker: int) -> None:
        """Sent once only."""
        await self._fleet.any(lambda conn: unregister_broker(conn, broker), again=False)


class LiveThrottleReader:
    """Implements :class:`backends.base.replica_moves.ThrottleReader`."""

    def __init__(self, fleet: BrokerFleet) -> None:
        self._fleet = fleet

    async def throttles(self, named: Sequence[Configured]) -> Mapping[Configured, Throttles | Unknown]:
        """Each broker is asked itself."""
        topics = [one.name for one in named if one.kind is ConfiguredKind.TOPIC]
        brokers = [one for one in named if one.kind is ConfiguredKind.BROKER]
        found: dict[Configured, Throttles | Unknown] = {}
        if topics:
            keys = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
            try:
                described = (
                    await self._fleet.any(lambda conn: describe_topic_configs(conn, topics, keys))
                ).value
            except BackendError as error:
                described = dict.fromkeys(topics, as_unknown(error))
            found.update(
                {Configured(ConfiguredKind.TOPIC, name): _set(one) for name, one in described.items()}
            )
        answers = await asyncio.gather(*map(self._of_broker, brokers))
        found.update(zip(brokers, answers, strict=True))
        return found

    async def _of_broker(self, one: Configured) -> Throttles | Unknown:
        broker, keys = int(one.name), (LEADER_RATE, FOLLOWER_RATE)
        try:
            async with asyncio.timeout(BROKER_SECONDS):
                return _set(await describe_broker_configs(await self._fleet.connection(broker), broker, keys))
        except TimeoutError:
            return Unknown(Why.NOT_ANSWERED, f"broker {broker}: no answer within {BROKER_SECONDS:g} s")
        except BackendError as error:
            return as_unknown(error)


def _set(values: Mapping[str, str] | Unknown) -> Throttles | Unknown:
    """Without those that have their default."""
    if isinstance(values, Unknown):
        return values
    return {name: value for name, value in values.items() if value not in ("", NO_LIMIT)}


def _refusal_text(why: PartitionRefusal) -> str:
    return str(why)
