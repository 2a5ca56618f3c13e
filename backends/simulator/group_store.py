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
        self._pending: dict[int, dict[str, dict[TopicPartition, CommittedOffset]]] = {}

    def commit(self, group: str, offsets: Iterable[tuple[TopicPartition, CommittedOffset]]) -> None:
        """Takes the place of what the group has committed on these partitions."""
        self._committed.setdefault(group, {}).update(offsets)

    def prepare(
        self, producer_id: int, group: str, offsets: Iterable[tuple[TopicPartition, CommittedOffset]]
    ) -> None:
        """Of a transaction that is open: they count once it is committed (TxnOffsetCommit, KIP-98)."""
        self._pending.setdefault(producer_id, {}).setdefault(group, {}).update(offsets)

    def end(self, producer_id: int, *, commit: bool) -> None:
        """The producer's transaction has ended; may be called again."""
        for group, offsets in self._pending.pop(producer_id, {}).items():
            if commit:
                self.commit(group, offsets.items())

    def unstable(self, group: str) -> frozenset[TopicPartition]:
        """The partitions for which an open transaction has prepared an offset of the group (KIP-447)."""
        return frozenset(tp for groups in self._pending.values() for tp in groups.get(group, ()))

    def all(self) -> tuple[tuple[str, tuple[tuple[TopicPartition, CommittedOffset], ...]], ...]:
        """Every group with its offsets, by name."""
        return tuple(
            (group, tuple(sorted(offsets.items()))) for group, offsets in sorted(self._committed.items())
        )
