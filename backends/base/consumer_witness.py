"""What an ordinary consumer is given of partitions: the witness beside our own protocol code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        self, partitions: Sequence[TopicPartition], seconds: float
    ) -> Mapping[TopicPartition, ConsumerSight | Unknown]:
        """Reads the end of each partition as consumers with either isolation level do, within ``seconds``; commits
        nothing, and joins no group. Needs READ on the topics.
        """
        ...
