"""Producers of the workload: they find the leader and send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from backends.simulator.context import Context
from backends.simulator.messages import Produce, Produced
from backends.simulator.network import Node, Role, broker
from backends.simulator.rpc import Endpoint
from backends.simulator.topology import ProducerSpec
from recovery.model import NO_LEADER, TopicPartition

FindLeader = Callable[[TopicPartition], int]
"""The leader as the clients' metadata has it, -1 without one."""


class Producer:
    """One producer, with one batch a partition in flight; what is refused counts as lost to the producer and is
    not sent again. ``acknowledged`` counts records that the leader said it has.
    """

    def __init__(self, context: Context, number: int, spec: ProducerSpec, find_leader: FindLeader) -> None:
        self._context = context
        self._spec = spec
        self._find_leader = find_leader
        self._endpoint = Endpoint(context.loop, context.network, Node(Role.CLIENT, number), _nobody)
        self.acknowledged = 0
        self.refused = 0
        self._stopped = False
        self._sending: dict[TopicPartition, None] = {}
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
        leader = self._find_leader(tp)
        if leader == NO_LEADER:
            return
        body = Produce(tp, self._spec.records, self._spec.acks)
        if self._spec.acks == 0:
            self._endpoint.tell(broker(leader), body)
            return
        self._sending[tp] = None
        timeout = self._context.config.request_timeout

        def answered(reply: Any) -> None:
            del self._sending[tp]
            if isinstance(reply, Produced) and reply.error is None:
                self.acknowledged += self._spec.records
            else:
                self.refused += self._spec.records

        self._endpoint.ask(broker(leader), body, timeout, answered)


def _nobody(_source: Node, _body: Any, _answer: Any) -> None:
    """Nobody asks a client anything."""
