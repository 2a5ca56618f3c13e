"""Committed offsets of a simulated cluster's consumer groups.

__consumer_offsets is no topic of a simulation: what is committed stays, and the unfenced broker with the lowest id
coordinates every group. No group has members when an operator comes.
"""

from __future__ import annotations

from collections.abc import Iterable

from recovery.groups.group_values import CommittedOffset
from recovery.model import TopicPartition


class GroupStore:
    """What each group has committed."""

    def __init__(self) -> None:
        self._committed: dict[str, dict[TopicPartition, CommittedOffset]] = {}

    def commit(self, group: str, offsets: Iterable[tuple[TopicPartition, CommittedOffset]]) -> None:
        """Takes the place of what the group has committed on these partitions."""
        self._committed.setdefault(group, {}).update(offsets)

    def all(self) -> tuple[tuple[str, tuple[tuple[TopicPartition, CommittedOffset], ...]], ...]:
        """Every group with its offsets, by name."""
        return tuple(
            (group, tuple(sorted(offsets.items()))) for group, offsets in sorted(self._committed.items())
        )
