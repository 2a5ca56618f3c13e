"""KIP-966's counts ("Metrics"; "Other behaviors" for electable leaders)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from recovery.controller.cluster_image import ClusterImage, acceptable_leaders
from recovery.controller.prediction import LeaderWaitReason, PartitionView, waiting_for
from recovery.controller.registration import Registration
from recovery.model import Standing


class PartitionCounts(NamedTuple):
    """Gauges, in numbers of partitions.

    ``under_min_isr`` is ``global_under_min_isr_partition_count``; ``no_electable_leader`` counts those whose ISR
    and ELR are both empty; ``unclean_recovery`` is ``unclean_recovery_partitions_count``, always 0 without the
    recovery manager; ``manual_election_required`` is ``manual_leader_election_required_partition_count``:
    leaderless, and no broker's return alone elects a leader.
    """

    under_min_isr: int = 0
    no_electable_leader: int = 0
    unclean_recovery: int = 0
    manual_election_required: int = 0


def electable_leaders(partition: Registration) -> int:
    """How many replicas a clean election could choose: ISR and ELR members, dead or alive."""
    return len(partition.isr) + len(partition.elr)


def count(views: Iterable[PartitionView]) -> PartitionCounts:
    """The gauges over ``views``."""
    under = none = recovering = manual = 0
    for view in views:
        partition = view.partition
        under += len(partition.isr) < view.min_isr
        none += electable_leaders(partition) == 0
        if not partition.has_leader:
            waits = waiting_for(view).waits
            recovering += waits is LeaderWaitReason.LOGS
            manual += waits is LeaderWaitReason.OPERATOR
    return PartitionCounts(under, none, recovering, manual)


def views(image: ClusterImage) -> Iterator[PartitionView]:
    """A view of every partition of ``image``."""
    for tp, partition in image.partitions.items():
        acceptable = acceptable_leaders(partition, image.brokers)
        standings = {
            replica: _standing(image, replica, replica in acceptable) for replica in partition.replicas
        }
        yield PartitionView(
            partition, standings, image.effective_min_isr(tp.topic), image.rules_for(tp.topic)
        )


def _standing(image: ClusterImage, replica: int, acceptable: bool) -> Standing:
    if acceptable:
        return Standing.ELECTABLE
    registered = image.brokers.get(replica)
    if registered is None:
        return Standing.UNREGISTERED
    return Standing.FENCED if registered.fenced else Standing.OFFLINE_REPLICA
