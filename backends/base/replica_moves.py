"""What moves and keeps replicas, as a backend offers it: assignments, configurations, a broker's registration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from recovery.model import TopicPartition, Unknown

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
"""Of a broker: bytes a second, sent by it as a leader and taken as a follower, in throttled replicas only."""
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
"""Of a topic: the throttled replicas, ``partition:broker`` with commas between them."""


class ConfiguredKind(StrEnum):
    """What has configurations."""

    BROKER = "broker"
    TOPIC = "topic"


class Configured(NamedTuple):
    """A broker (its id as text) or a topic."""

    kind: ConfiguredKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


Throttles = Mapping[str, str]
"""The replication throttles that are set, by the names of their configurations."""


class ReplicaMover(Protocol):
    """Implemented by each adapter. Every call may raise :mod:`backends.base.errors`."""

    async def reassign(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], *, other_factor: bool = False
    ) -> Mapping[TopicPartition, str | None]:
        """Writes the assignments; None cancels the reassignment in progress. A controller that can be told so
        refuses another number of replicas unless ``other_factor``. For each partition None, or in one
        line why it was refused. If it raises, any of them may have been carried out. Needs ALTER on the cluster.
        """
        ...

    async def alter_configs(
        self, values: Mapping[Configured, Mapping[str, str | None]]
    ) -> Mapping[Configured, str | None]:
        """Sets configurations, or removes those whose value is None. For each broker and topic None, or in one line
        why that failed. Needs ALTER_CONFIGS on the cluster and on the topics.
        """
        ...

    async def unregister(self, broker: int) -> None:
        """Removes a broker's registration. Needs ALTER on the cluster."""
        ...


class ThrottleReader(Protocol):
    """Implemented by each adapter. Every call may raise :mod:`backends.base.errors`."""

    async def throttles(self, named: Sequence[Configured]) -> Mapping[Configured, Throttles | Unknown]:
        """The throttles that are set now. Needs DESCRIBE_CONFIGS on the cluster and on the topics."""
        ...
