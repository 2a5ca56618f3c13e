"""One fetcher for each leader that a broker follows."""

from __future__ import annotations

from backends.simulator.broker.fetcher import FetcherContext, PartitionFetcher
from backends.simulator.partition_table import PartitionTable
from recovery.controller.registration import Registration
from recovery.model import NO_LEADER, TopicPartition


class FetcherManager:
    """Starts a fetcher with the first partition that is followed on a leader, and stops it after the last one."""

    def __init__(self, context: FetcherContext) -> None:
        self._context = context
        self._state = context.state
        self._fetchers: dict[int, PartitionFetcher] = {}
        self._counts: dict[int, int] = {}
        self._left: dict[TopicPartition, None] = {}

    def load(self) -> None:
        """Follow every partition as the metadata says, already caught up."""
        table = self._state.image.partitions
        assert isinstance(table, PartitionTable)
        for partition, count in table.counted():
            if self._from(partition) is not None:
                self._counts[partition.leader] = self._counts.get(partition.leader, 0) + count
        for leader in sorted(self._counts):
            self._fetchers[leader] = PartitionFetcher(self._context, leader, warm=True)
            self._fetchers[leader].start()

    def _from(self, partition: Registration | None) -> int | None:
        """The leader that this broker follows for the partition; None if it follows none."""
        me = self._state.id
        if partition is None or me not in partition.replicas or partition.leader in (me, NO_LEADER):
            return None
        return partition.leader

    def changed(self, tp: TopicPartition, before: Registration | None, after: Registration | None) -> None:
        """The metadata of the partition changed. ``before`` is None if this process followed no leader for it
        yet.
        """
        old = None if tp in self._left else self._from(before)
        new = self._from(after)
        if old is not None and old != new:
            self._less(old)
        if new is None or after is None:
            return
        if old != new:
            self._left.pop(tp, None)
            self._counts[new] = self._counts.get(new, 0) + 1
            if new not in self._fetchers:
                self._fetchers[new] = PartitionFetcher(self._context, new, warm=False)
        if old != new or before is None or before.leader_epoch != after.leader_epoch:
            self._fetchers[new].add(tp)

    def leave(self, tp: TopicPartition) -> None:
        """Stop following the partition: its log went offline. May be called twice."""
        old = self._from(self._state.image.partitions.get(tp))
        if tp not in self._left:
            self._left[tp] = None
            if old is not None:
                self._fetchers[old].forget(tp)
                self._less(old)

    def exclude(self, tp: TopicPartition) -> None:
        """The partition is offline here, or has no log: it was never followed."""
        self._left[tp] = None

    def _less(self, leader: int) -> None:
        self._counts[leader] -= 1
        if not self._counts[leader]:
            del self._counts[leader]
            self._fetchers.pop(leader).stop()
