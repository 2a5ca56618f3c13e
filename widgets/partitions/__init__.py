"""Pane 1: what is offline or under min ISR, whom to elect, and what that loses."""

from widgets.partitions.pane import PartitionsPane, PartitionsView
from widgets.partitions.row import Health, PartitionRow, bare_row, partition_row, worst_first
from widgets.partitions.tally import Tally, tally

__all__ = [
    "Health",
    "PartitionRow",
    "PartitionsPane",
    "PartitionsView",
    "Tally",
    "bare_row",
    "partition_row",
    "tally",
    "worst_first",
]
