"""Transactional producers of a scenario, and the coordinator that ends their transactions (KIP-98)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from backends.base.consumer_groups import TRANSACTIONS_TOPIC
from backends.base.transactions import Marker
from backends.simulator.broker.broker_access import BrokerAccess
from backends.simulator.broker.led_transactions import append_records, append_state
from backends.simulator.loop import MILLISECOND
from backends.simulator.network import broker as node
from backends.simulator.operator_messages import TxnMarkersWritten, WriteTxnMarkers
from backends.simulator.partition_table import topics_of
from backends.simulator.transactional_producer import MARKER_RETRY
from backends.simulator.world import World
from recovery.model import NO_LEADER, TopicPartition
from recovery.transactions.decision_records import state_partition
from recovery.transactions.transaction_values import CoordinatedTransaction, TransactionState

_PREPARED = {True: TransactionState.PREPARE_COMMIT, False: TransactionState.PREPARE_ABORT}
_COMPLETE = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}


class ScenarioTransactions:
    """``refused`` is called with what a producer was refused, and why."""

    def __init__(self, world: World, refused: Callable[[str], None]) -> None:
        self._world = world
        self._refused = refused

    def write(self, name: str, partitions: Sequence[TopicPartition], records: int) -> None:
        """The producer with that transactional id writes in its open transaction, or in a new one."""
        known = self._state(name)
        if known is None:
            self._refused(f"{name}: its coordinator is not available")
            return
        if known.state in _COMPLETE:
            self._refused(f"{name}: its last transaction is not ended yet")
            return
        if known.state is not TransactionState.ONGOING:
            now = self._world.loop.now // MILLISECOND
            known = known._replace(state=TransactionState.ONGOING, partitions=frozenset(), start_ms=now)
        known = known._replace(partitions=known.partitions.union(partitions))
        if not self._save(known):
            self._refused(f"{name}: its coordinator refused to add the partitions")
            return
        for tp in partitions:
            leader = self._leader_of(tp)
            error = (
                None if leader is None else append_records(self._world.context, leader, tp, known, records)
            )
            if leader is None or error is not None:
                self._refused(f"{name}: {tp} {'has no leader' if error is None else f'answered {error}'}")

    def end(self, name: str, *, commit: bool) -> None:
        """The coordinator decides; then it writes the markers, again and again until each is acknowledged."""
        known = self._state(name)
        if known is None or known.state is not TransactionState.ONGOING:
            self._refused(f"{name} has no open transaction, or its coordinator is not available")
            return
        decided = known._replace(state=_PREPARED[commit])
        if not self._save(decided):
            self._refused(f"{name}: its coordinator could not write the decision")
            return
        self._send_markers(decided, decided.partitions)

    def _send_markers(self, decided: CoordinatedTransaction, left: frozenset[TopicPartition]) -> None:
        """Ends when the decision is no longer the newest that its coordinator knows."""
        coordinator = self._coordinator(decided.transactional_id)
        waiting = set(left)
        if coordinator is not None:
            if self._state(decided.transactional_id) != decided:
                return
            for tp in sorted(left):
                self._send_marker(coordinator, decided, tp, waiting)
        self._world.loop.call_later(MARKER_RETRY, self._retry_markers, decided, waiting)

    def _retry_markers(self, decided: CoordinatedTransaction, waiting: set[TopicPartition]) -> None:
        if waiting:
            self._send_markers(decided, frozenset(waiting))

    def _send_marker(
        self,
        coordinator: BrokerAccess,
        decided: CoordinatedTransaction,
        tp: TopicPartition,
        waiting: set[TopicPartition],
    ) -> None:
        leader = self._world.image.partitions[tp].leader
        if leader == NO_LEADER:
            return
        commit = decided.state is TransactionState.PREPARE_COMMIT
        marker = Marker(tp, decided.producer_id, decided.epoch, commit, self._epoch(decided))

        def answered(reply: Any) -> None:
            if not isinstance(reply, TxnMarkersWritten) or reply.errors != (None,) or tp not in waiting:
                return
            waiting.discard(tp)
            if not waiting and self._state(decided.transactional_id) == decided:
                self._save(decided._replace(state=_COMPLETE[decided.state], partitions=frozenset()))

        coordinator.endpoint.ask(node(leader), WriteTxnMarkers((marker,)), MARKER_RETRY, answered)

    def _epoch(self, decided: CoordinatedTransaction) -> int:
        """The coordinator's epoch: the leader epoch of its partition of __transaction_state."""
        return self._world.image.partitions[self._state_partition(decided.transactional_id)].leader_epoch

    def _state_partition(self, name: str) -> TopicPartition:
        partitions = len(topics_of(self._world.image)[TRANSACTIONS_TOPIC])
        return TopicPartition(TRANSACTIONS_TOPIC, state_partition(name, partitions))

    def _leader_of(self, tp: TopicPartition) -> BrokerAccess | None:
        process = self._world.brokers.get(self._world.image.partitions[tp].leader)
        return None if process is None else process.access

    def _coordinator(self, name: str) -> BrokerAccess | None:
        tp = self._state_partition(name)
        broker = self._leader_of(tp)
        return None if broker is None or broker.storage.offline(tp) else broker

    def _state(self, name: str) -> CoordinatedTransaction | None:
        """What the coordinator knows; None without a coordinator. An unknown id is given a producer id,
        as by InitProducerId.
        """
        tp, broker = self._state_partition(name), self._coordinator(name)
        if broker is None:
            return None
        context = self._world.context
        known = context.transactions.coordinated(tp, broker.storage.log(tp)).get(name)
        if known is None:
            producer = context.producers.new_id()
            known = CoordinatedTransaction(name, TransactionState.EMPTY, producer, 0, -1, frozenset())
            if not append_state(context, broker, tp, known):
                return None
        return known

    def _save(self, state: CoordinatedTransaction) -> bool:
        broker = self._coordinator(state.transactional_id)
        return broker is not None and append_state(
            self._world.context, broker, self._state_partition(state.transactional_id), state
        )
