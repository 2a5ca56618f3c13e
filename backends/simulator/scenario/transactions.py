"""Transactional producers of a scenario (KIP-98)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backends.simulator.broker.led_transactions import append_records
from backends.simulator.loop import MILLISECOND
from backends.simulator.messages import Error
from backends.simulator.transaction_coordinators import TransactionCoordinators
from backends.simulator.transaction_rules import ProducerEpoch, ending, initialised, with_partitions
from backends.simulator.world import World
from recovery.model import TopicPartition
from recovery.transactions.transaction_values import CoordinatedTransaction


class ScenarioTransactions:
    """``refused`` is called with what a producer was refused, and why. Its transactions have no timeout."""

    def __init__(self, world: World, refused: Callable[[str], None]) -> None:
        self._world = world
        self._coordinators = TransactionCoordinators(world)
        self._refused = refused

    def write(self, name: str, partitions: Sequence[TopicPartition], records: int) -> None:
        """The producer with that transactional id writes in its open transaction, or in a new one."""
        known = self._initialised(name)
        if known is None:
            self._refused(f"{name}: its coordinator is not available")
            return
        now = self._world.loop.now // MILLISECOND
        begun = with_partitions(known, _producer(known), partitions, now)
        if isinstance(begun, Error):
            self._refused(f"{name}: its last transaction is not ended yet")
            return
        if not self._coordinators.save(begun):
            self._refused(f"{name}: its coordinator refused to add the partitions")
            return
        for tp in partitions:
            leader = self._coordinators.leader_of(tp)
            error = (
                None if leader is None else append_records(self._world.context, leader, tp, begun, records)
            )
            if leader is None or error is not None:
                self._refused(f"{name}: {tp} {'has no leader' if error is None else f'answered {error}'}")

    def end(self, name: str, *, commit: bool) -> None:
        """The coordinator decides, and writes the markers."""
        known = self._coordinators.state(name)
        found = None if known is None else ending(known, _producer(known), commit=commit, new_epoch=False)
        if found is None or isinstance(found, Error) or found.state is None:
            self._refused(f"{name} has no open transaction, or its coordinator is not available")
        elif not self._coordinators.decide(found.state):
            self._refused(f"{name}: its coordinator could not write the decision")

    def _initialised(self, name: str) -> CoordinatedTransaction | None:
        """What the coordinator knows; None without one. An unknown id is given a producer id, as by
        InitProducerId.
        """
        known = self._coordinators.state(name)
        if known is None and self._coordinators.coordinator(name) is not None:
            made = initialised(None, name, ProducerEpoch(), self._world.context.producers.new_id())
            if not isinstance(made, Error) and self._coordinators.save(made):
                return made
        return known


def _producer(known: CoordinatedTransaction) -> ProducerEpoch:
    return ProducerEpoch(known.producer_id, known.epoch)
