"""Writing record batches to a cluster, as an idempotent producer (KIP-98) that sends them as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from recovery.model import TopicPartition


class ProducerIdentity(NamedTuple):
    """What a broker knows a producer by: a batch of the same sequence that it already has is not appended again."""

    producer_id: int
    epoch: int


class BatchToAppend(NamedTuple):
    """One batch for one partition, with the producer's identity and sequence in its header."""

    tp: TopicPartition
    data: bytes


class AppendResult(NamedTuple):
    """``base_offset`` is where the batch is, -1 where it was refused; ``error`` is then one line for a person.

    ``retryable``: sending the same batch again may help, and does no harm.
    """

    base_offset: int
    error: str | None = None
    retryable: bool = False


class RecordWriter(Protocol):
    """Implemented by each adapter. Every call may raise :mod:`backends.base.errors`."""

    async def new_identity(self) -> ProducerIdentity:
        """An identity that nobody else has. Needs IDEMPOTENT_WRITE on the cluster, or WRITE on a topic."""
        ...

    async def append(
        self, broker: int, batches: Sequence[BatchToAppend]
    ) -> Mapping[TopicPartition, AppendResult]:
        """Sends the batches, at most one for a partition, to the leader of all their partitions with acks=all.

        Needs WRITE on the topics. If it raises, any of the batches may have been appended.
        """
        ...

    async def create_topic(
        self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        """Creates a topic. Needs CREATE on the topic. Raises BackendError where the cluster refuses it."""
        ...
