"""The workload: consumers, and producers with and without transactions. They find the leader of a partition."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Any

from backends.simulator.context import Context
from backends.simulator.events import TransactionEnded, TransactionMarked
from backends.simulator.loop import SECOND
from backends.simulator.messages import (
    Consume,
    ConsumeReply,
    Error,
    Produce,
    ProduceReply,
    TransactionalWrite,
)
from backends.simulator.network import NetworkNode, NetworkRole, broker
from backends.simulator.rpc import RpcEndpoint
from backends.simulator.topology import ConsumerSpec, ProducerSpec, TransactionSpec
from recovery.model import NO_LEADER, TopicPartition

FindLeader = Callable[[TopicPartition], int]
"""The leader as the clients' metadata has it, -1 without one."""


class Producer:
    """One producer with one batch per partition in flight. A refused batch is not sent again.

    ``acknowledged`` counts the records that the leader acknowledged.
    """

    def __init__(self, context: Context, number: int, spec: ProducerSpec, find_leader: FindLeader) -> None:
        self._context = context
        self._spec = spec
        self._find_leader = find_leader
        self._endpoint = RpcEndpoint(
            context.loop, context.network, NetworkNode(NetworkRole.CLIENT, number), serves_nothing
        )
        self.acknowledged = 0
        self.refused = 0
        self._stopped = False
        self._sending: dict[TopicPartition, None] = {}
        self._known_leaders: dict[TopicPartition, int] = {}
        context.loop.call_at(spec.start, self._tick)

    def stop(self) -> None:
        """Send nothing more."""
        self._stopped = True

    def _tick(self) -> None:
        spec = self._spec
        if self._stopped or (spec.stop is not None and self._context.loop.now >= spec.stop):
            return
        for partition in spec.partitions:
            tp = TopicPartition(spec.topic, partition)
            if tp not in self._sending:
                self._send(tp)
        self._context.loop.call_later(spec.interval, self._tick)

    def _send(self, tp: TopicPartition) -> None:
        leader = self._known_leaders.get(tp, NO_LEADER)
        if leader == NO_LEADER:
            leader = self._find_leader(tp)
        if leader == NO_LEADER:
            return
        if self._spec.keeps_leader:
            self._known_leaders[tp] = leader
        body = Produce(tp, self._spec.records, self._spec.acks)
        if self._spec.acks == 0:
            self._endpoint.send_one_way(broker(leader), body)
            return
        self._sending[tp] = None
        timeout = self._context.config.request_timeout

        def answered(reply: Any) -> None:
            del self._sending[tp]
            if isinstance(reply, ProduceReply) and reply.error is None:
                self.acknowledged += self._spec.records
            else:
                self.refused += self._spec.records
                self._known_leaders.pop(tp, None)

        self._endpoint.ask(broker(leader), body, timeout, answered)


class Consumer:
    """One consumer with one request per partition in flight. ``read`` counts records.

    If its position is out of range it continues at the end (``auto.offset.reset=latest``).
    """

    def __init__(self, context: Context, number: int, spec: ConsumerSpec, find_leader: FindLeader) -> None:
        self._context = context
        self._spec = spec
        self._find_leader = find_leader
        self._endpoint = RpcEndpoint(
            context.loop, context.network, NetworkNode(NetworkRole.CLIENT, number), serves_nothing
        )
        self.read = 0
        self._positions: dict[TopicPartition, int] = {}
        self._asking: dict[TopicPartition, None] = {}
        context.loop.call_at(0, self._tick)

    def _tick(self) -> None:
        for partition in self._spec.partitions:
            tp = TopicPartition(self._spec.topic, partition)
            leader = self._find_leader(tp)
            if tp not in self._asking and leader != NO_LEADER:
                self._asking[tp] = None
                body = Consume(tp, self._positions.get(tp, -1))
                timeout = self._context.config.request_timeout
                self._endpoint.ask(broker(leader), body, timeout, partial(self._answered, tp))
        self._context.loop.call_later(self._spec.interval, self._tick)

    def _answered(self, tp: TopicPartition, reply: Any) -> None:
        del self._asking[tp]
        if not isinstance(reply, ConsumeReply):
            return
        if reply.error is Error.OFFSET_OUT_OF_RANGE:
            self._positions.pop(tp, None)
        elif reply.error is None:
            self.read += sum(span.end - span.start for span in reply.spans)
            before = self._positions.get(tp, reply.high_watermark)
            self._positions[tp] = max([before, *(span.end for span in reply.spans)])


def serves_nothing(_source: NetworkNode, _body: Any, _answer: Any) -> None:
    """Clients serve no requests."""


MARKER_RETRY = SECOND
"""A marker that was not acknowledged is sent again, as coordinators do, possibly after it was written."""
TRANSACTIONS_OF_ONE_PRODUCER = 1_000_000


class _Outcome(StrEnum):
    COMMIT = "commit"
    ABORT = "abort"
    ABANDON = "abandon"


_OUTCOMES = (_Outcome.COMMIT,) * 6 + (_Outcome.ABORT,) * 2 + (_Outcome.ABANDON,) * 2


class TransactionalProducer:
    """One transaction after another, with one batch per partition in flight; a refused batch aborts it.

    The coordinator is a part of it: its decision is durable at once, and the markers follow. The next transaction
    begins when every marker is acknowledged.
    """

    def __init__(self, context: Context, number: int, spec: TransactionSpec, find_leader: FindLeader) -> None:
        self._context = context
        self._spec = spec
        self._find_leader = find_leader
        node = NetworkNode(NetworkRole.CLIENT, number)
        self._endpoint = RpcEndpoint(context.loop, context.network, node, serves_nothing)
        self._transaction = number * TRANSACTIONS_OF_ONE_PRODUCER
        self._begin()

    def _begin(self) -> None:
        self._transaction += 1
        self._left = self._spec.batches
        self._outcome = self._context.loop.random.choice(_OUTCOMES)
        self._refused = False
        self._sending: set[TopicPartition] = set()
        self._written: dict[TopicPartition, None] = {}
        self._context.loop.call_later(self._spec.interval, self._tick)

    def _tick(self) -> None:
        if self._sending:
            self._context.loop.call_later(self._spec.interval, self._tick)
        elif self._left and not self._refused:
            self._left -= 1
            for partition in self._spec.partitions:
                self._send(TopicPartition(self._spec.topic, partition))
            self._context.loop.call_later(self._spec.interval, self._tick)
        elif self._outcome is _Outcome.ABANDON:
            self._context.loop.call_later(self._spec.timeout, self._end)
        else:
            self._end()

    def _send(self, tp: TopicPartition) -> None:
        leader = self._find_leader(tp)
        if leader == NO_LEADER:
            return
        self._sending.add(tp)
        self._written[tp] = None
        self._ask(leader, tp, self._spec.records, marker=False)

    def _ask(self, leader: int, tp: TopicPartition, records: int, *, marker: bool) -> None:
        body = Produce(tp, records, -1, TransactionalWrite(self._transaction, marker))
        answered = partial(self._ended if marker else self._answered, tp)
        self._endpoint.ask(broker(leader), body, self._context.config.request_timeout, answered)

    def _answered(self, tp: TopicPartition, reply: Any) -> None:
        self._sending.discard(tp)
        self._refused = self._refused or not _acknowledged(reply)

    # The coordinator

    def _end(self) -> None:
        committed = self._outcome is _Outcome.COMMIT and not self._refused
        self._context.emit(TransactionEnded(self._transaction, committed))
        if not self._written:
            self._begin()
        for tp in list(self._written):
            self._mark(tp)

    def _mark(self, tp: TopicPartition) -> None:
        leader = self._find_leader(tp)
        if leader == NO_LEADER:
            self._context.loop.call_later(MARKER_RETRY, self._mark, tp)
        else:
            self._ask(leader, tp, 1, marker=True)

    def _ended(self, tp: TopicPartition, reply: Any) -> None:
        if not _acknowledged(reply):
            self._context.loop.call_later(MARKER_RETRY, self._mark, tp)
            return
        self._context.emit(TransactionMarked(tp, self._transaction))
        del self._written[tp]
        if not self._written:
            self._begin()


def _acknowledged(reply: Any) -> bool:
    return isinstance(reply, ProduceReply) and reply.error is None
