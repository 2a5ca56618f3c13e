"""The calls that a batch of designated elections needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from backends.base.answers import ClusterInfo, LikelyEpochs
from backends.live.calls.partition_errors import PartitionRefusal
from recovery.model import PartitionState, ReplicaLog, TopicPartition, Unknown


class ElectionApi(Protocol):
    """Implemented by the live adapter over its connections; each call may raise BackendError.

    An error whose ``sent`` is True means that the request may have been carried out.
    """

    async def cluster(self) -> ClusterInfo:
        """The brokers as a caught-up broker lists them now."""
        ...

    async def states(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, PartitionState | Unknown]:
        """The partitions' state now, from a caught-up broker; deleted partitions are left out."""
        ...

    async def reassigning(self, partitions: Sequence[TopicPartition]) -> frozenset[TopicPartition]:
        """Those with a reassignment in progress. Raises BackendError if they cannot be listed."""
        ...

    async def logs(
        self, states: Sequence[PartitionState], cluster: ClusterInfo, likely: LikelyEpochs
    ) -> Mapping[TopicPartition, Mapping[int, ReplicaLog | Unknown]]:
        """Ask every replica of ``states`` for its log end and its last record's epoch, all brokers at once.
        ``likely`` as in SurveyRequest.
        """
        ...

    def connection(self, broker: int) -> object | None:
        """The identity of the open connection to that broker for log queries; a later connection has another
        identity.
        """
        ...

    async def write_orders(
        self, orders: Mapping[TopicPartition, tuple[int, ...]]
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        """AlterPartitionReassignments with the same replicas in another order; None: accepted, else the
        reason.
        """
        ...

    async def elect(
        self, partitions: Iterable[TopicPartition] | None, *, preferred: bool
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        """ElectLeaders, preferred or unclean, None: of all partitions; an answer of None: an election was held."""
        ...

    async def designates(self) -> bool:
        """Whether the cluster elects designated leaders itself, as far as is known. Raises nothing."""
        ...

    async def designate(
        self, leaders: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        """ElectLeaders v3. Raises NotOffered or NotAllowed if nothing was sent for that reason."""
        ...

    async def blocks_on_dead_last_known_leader(self) -> bool:
        """Whether this cluster has KAFKA-19522 (before 4.1) with the ELR feature on."""
        ...
