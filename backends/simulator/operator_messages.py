"""One page of DescribeTopicPartitions (KIP-966)."""

from __future__ import annotations

from typing import NamedTuple

from backends.simulator.messages import Error
from recovery.model import PartitionState, TopicPartition


class DescribeTopicPartitions(NamedTuple):
    """``topics`` None means all that the caller may see. ``cursor`` is the first partition of the page."""

    topics: tuple[str, ...] | None
    cursor: TopicPartition | None
    limit: int


class TopicPartitionsDescribed(NamedTuple):
    """One page. ``cursor`` is the start of the next page, None after the last.

    ``refused`` are topics that do not exist or may not be described.
    """

    states: tuple[PartitionState, ...]
    cursor: TopicPartition | None
    refused: tuple[tuple[str, Error], ...]
