"""What an ordinary consumer is given of partitions: the witness beside our own protocol code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from recovery.consumer_sight import ConsumerSight
from recovery.model import TopicPartition, Unknown


class ConsumerWitness(Protocol):
    """Another implementation of Kafka's protocol than ours, the one that applications use."""

    @property
    def client(self) -> str:
        """Its name and version."""
        ...

    async def read(
        self,
        partitions: Sequence[TopicPartition],
        seconds: float,
        starts: Mapping[TopicPartition, int] = MappingProxyType({}),
    ) -> Mapping[TopicPartition, ConsumerSight | Unknown]:
        """Reads the end of each partition as consumers with either isolation level do, within ``seconds``; commits
        nothing, and joins no group. ``starts``: where the reading begins instead. Needs READ on the topics.
        """
        ...

    async def committed(
        self, groups: Mapping[str, Sequence[TopicPartition]], seconds: float
    ) -> Mapping[str, Mapping[TopicPartition, int | None] | Unknown]:
        """The offsets at which consumers of these groups would go on; None: nothing is committed. Needs DESCRIBE
        on the groups and the topics.
        """
        ...
