"""The follower's side of Fetch: one fetcher for each leader, which truncates to the leader's epochs and appends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from backends.simulator.broker.broker_state import BrokerState
from backends.simulator.broker.fetch_sessions import WARM
from backends.simulator.broker.log_storage import LogStorage
from backends.simulator.broker.replica_log import (
    appended,
    marked,
    restarted_at,
    truncated,
    truncation,
    without_head,
)
from backends.simulator.config import Config
from backends.simulator.loop import TimerGroup
from backends.simulator.messages import Error, Fetch, Fetched, FetchedPartition, Position
from backends.simulator.network import broker as node
from backends.simulator.partition_table import PartitionTable, generation_of
from backends.simulator.rpc import RpcEndpoint
from recovery.controller.registration import Registration
from recovery.model import NO_LEADER, TopicPartition

_NEW = 0


class FetcherContext(NamedTuple):
    """What all fetchers of one broker share. ``note`` adds a line to the history."""

    state: BrokerState
    storage: LogStorage
    timers: TimerGroup
    endpoint: RpcEndpoint
    config: Config
    note: Callable[[str], None]


class PartitionFetcher:
    """Follows ``leader`` while any partition is followed there.

    ``changed`` are the partitions whose position the next request must contain; the session knows all others.
    """

    def __init__(self, context: FetcherContext, leader: int, *, warm: bool) -> None:
        self._state, self._storage, self._timers, self._endpoint, self._config, self._note = context
        self._leader = leader
        self._session = WARM if warm else _NEW
        self._changed: dict[TopicPartition, None] = {}
        self._forgotten: dict[TopicPartition, None] = {}
        self._sending = False
        self._stopped = False

    def start(self) -> None:
        """Begin at a random point of the wait, as in a running cluster."""
        wait = self._config.replica_fetch_wait_max
        self._sending = True
        self._timers.later(self._timers.loop.random.randrange(wait), self._send)

    def stop(self) -> None:
        self._stopped = True

    def add(self, tp: TopicPartition) -> None:
        """Follow the partition from now on, or in a new leader epoch."""
        self._changed[tp] = None
        self._forgotten.pop(tp, None)
        if not self._sending:
            self._sending = True
            self._timers.later(0, self._send)

    def forget(self, tp: TopicPartition) -> None:
        """Follow it no longer; the next request tells the leader."""
        self._changed.pop(tp, None)
        self._forgotten[tp] = None

    def _send(self) -> None:
        if self._stopped:
            self._sending = False
            return
        positions: list[Position] = []
        if self._session != _NEW:
            found = (self._position(tp) for tp in self._changed)
            positions = [position for position in found if position is not None]
            self._changed = {}
        config = self._config
        forgotten, self._forgotten = self._forgotten, {}
        body = Fetch(self._state.id, self._state.epoch, self._session, tuple(positions), tuple(forgotten))
        timeout = config.replica_fetch_wait_max + config.request_timeout
        self._endpoint.ask(node(self._leader), body, timeout, self._fetched)

    def _position(self, tp: TopicPartition) -> Position | None:
        partition = self._state.image.partitions.get(tp)
        if partition is None or partition.leader != self._leader or self._storage.offline(tp):
            return None
        log = self._storage.log(tp)
        generation = generation_of(self._state.image, tp.topic)
        return Position(tp, partition.leader_epoch, log.end, log.last_epoch, generation)

    def _fetched(self, reply: Any) -> None:
        if self._stopped:
            self._sending = False
            return
        if not isinstance(reply, Fetched) or reply.session < 0:
            known = isinstance(reply, Fetched)
            self._session = _NEW
            backoff = 0 if known else self._config.replica_fetch_backoff
            self._timers.later(backoff, self._send)
            return
        if self._session == _NEW:
            # The leader has made a session: send it the position of every partition.
            self._changed = dict.fromkeys(followed_from(self._state, self._leader))
        self._session = reply.session
        for result in reply.partitions:
            self._take(result)
        self._send()

    def _take(self, result: FetchedPartition) -> None:
        tp = result.tp
        partition = self._state.image.partitions.get(tp)
        if partition is None or partition.leader != self._leader or self._storage.offline(tp):
            return
        if result.generation != generation_of(self._state.image, tp.topic):
            # The leader or this broker does not know yet that the topic was deleted and made again.
            self._timers.later(self._config.replica_fetch_backoff, self._retry, tp)
            return
        if result.error is Error.OFFSET_OUT_OF_RANGE and result.leader_epoch == partition.leader_epoch:
            self._storage.write(tp, restarted_at(self._storage.log(tp), result.start))
            self._changed[tp] = None
            return
        if result.error is not None or result.leader_epoch != partition.leader_epoch:
            # The leader or this broker does not know the newest leader epoch yet.
            self._timers.later(self._config.replica_fetch_backoff, self._retry, tp)
            return
        log = self._storage.read(tp)
        if log is None:
            return
        if result.diverging is not None:
            log = truncated(log, truncation(log, *result.diverging))
            self._storage.write(tp, log)
            self._note(f"truncated {tp} to {log.end}")
            self._changed[tp] = None
            return
        if result.spans:
            self._changed[tp] = None
            if result.spans[0].start == log.end:
                log = appended(log, result.spans)
        high_watermark = min(result.high_watermark, log.end)
        log = marked(log, high_watermark)
        self._storage.write(tp, without_head(log, min(result.start, high_watermark)))

    def _retry(self, tp: TopicPartition) -> None:
        if not self._stopped:
            self.add(tp)


def followed_from(state: BrokerState, leader: int) -> Iterator[TopicPartition]:
    """The partitions that this broker follows on ``leader``, by its metadata."""
    for tp, partition in state.image.partitions.items():
        if partition.leader == leader and state.id in partition.replicas:
            yield tp


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
