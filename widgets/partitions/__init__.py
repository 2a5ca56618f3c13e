"""Pane 1: what is offline or under min ISR, whom to elect, and what that loses."""

from widgets.partitions.partition_row import (
    PartitionHealth,
    PartitionHealthCounts,
    PartitionRow,
    bare_row,
    count_partitions,
    leader_unknown_row,
    partition_row,
    unjudged_row,
)
from widgets.partitions.partitions_pane import PartitionsPane, PartitionsView

__all__ = [
    "PartitionHealth",
    "PartitionHealthCounts",
    "PartitionRow",
    "PartitionsPane",
    "PartitionsView",
    "bare_row",
    "count_partitions",
    "leader_unknown_row",
    "partition_row",
    "unjudged_row",
]
