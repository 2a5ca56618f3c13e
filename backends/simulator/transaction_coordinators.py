"""The transaction coordinators of a simulated cluster (KIP-98): a coordinator is the leader of an id's partition of
__transaction_state, and knows what the log of that partition says.
"""

from __future__ import annotations

from collections.abc import Callable

from backends.base.consumer_groups import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from backends.base.transactions import Marker
from backends.simulator.broker.broker_access import BrokerAccess, Perform
from backends.simulator.broker.led_transactions import append_marker, append_state
from backends.simulator.clients import MARKER_RETRY
from backends.simulator.loop import MILLISECOND
from backends.simulator.messages import Error
from backends.simulator.network import broker as node
from backends.simulator.partition_table import topics_of
from backends.simulator.rpc import Answer
from backends.simulator.transaction_rules import (
    COMPLETE,
    EndTxnDecision,
    ProducerEpoch,
    aborted_by_coordinator,
    ending,
    initialised,
    takes_part,
    with_partitions,
)
from backends.simulator.world import World
from recovery.model import NO_LEADER, TopicPartition
from recovery.transactions.decision_records import state_partition
from recovery.transactions.transaction_values import CoordinatedTransaction, TransactionState

Saved = Callable[[Error | None], None]
"""Called with the error, or with None once a state is replicated."""
Initialised = Callable[[ProducerEpoch | Error], None]
Ended = Callable[[ProducerEpoch | Error], None]


class TransactionCoordinators:
    """Keeps nothing of its own: any number of these may act on one world.

    An id without an available coordinator is answered with COORDINATOR_NOT_AVAILABLE.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    # Requests of clients. ``answer`` is called when the new state is replicated, or at once with an error.

    def init_producer(self, name: str, asked: ProducerEpoch, timeout_ms: int, answer: Initialised) -> None:
        """InitProducerId of a transactional id; the timeout is that of its transactions from now on."""
        broker = self.coordinator(name)
        if broker is None:
            answer(Error.COORDINATOR_NOT_AVAILABLE)
            return
        context = self._world.context
        known = self.state(name)
        made = initialised(known, name, asked, context.producers.new_id())
        if isinstance(made, Error):
            if (
                known is not None
                and known.state is TransactionState.ONGOING
                and made is not Error.PRODUCER_FENCED
            ):
                self.decide(aborted_by_coordinator(known))
            answer(made)
            return
        context.transactions.timeouts[name] = timeout_ms
        producer = ProducerEpoch(made.producer_id, made.epoch)
        self.save(made, lambda error: answer(error or producer))

    def add_partitions(
        self, name: str, producer: ProducerEpoch, partitions: frozenset[TopicPartition], answer: Saved
    ) -> None:
        """Partitions take part in the open transaction, or begin one."""
        if self.coordinator(name) is None:
            answer(Error.COORDINATOR_NOT_AVAILABLE)
            return
        known = self.state(name)
        changed = with_partitions(known, producer, partitions, self._now_ms)
        if isinstance(changed, Error) or changed == known:
            answer(changed if isinstance(changed, Error) else None)
            return
        self.save(changed, answer)
        if known is not None and known.state is not TransactionState.ONGOING:
            self._abort_later(changed)

    def takes_part(self, name: str, producer: ProducerEpoch, tp: TopicPartition) -> Error | None:
        """Whether a leader may take a batch: its coordinator says that the partition is in the transaction."""
        if self.coordinator(name) is None:
            return Error.COORDINATOR_NOT_AVAILABLE
        return takes_part(self.state(name), producer, tp)

    def end(
        self, name: str, producer: ProducerEpoch, answer: Ended, *, commit: bool, new_epoch: bool
    ) -> None:
        """EndTxn: answered when the decision is replicated. The markers follow."""
        if self.coordinator(name) is None:
            answer(Error.COORDINATOR_NOT_AVAILABLE)
            return
        found = ending(self.state(name), producer, commit=commit, new_epoch=new_epoch)
        if isinstance(found, EndTxnDecision) and found.state is not None:
            self.decide(found.state, lambda error: answer(error or found.producer))
        else:
            answer(found.producer if isinstance(found, EndTxnDecision) else found)

    # What a coordinator knows, and does.

    def coordinator(self, name: str) -> BrokerAccess | None:
        """The broker that coordinates the id; None while nobody does."""
        partitions = len(topics_of(self._world.image).get(TRANSACTIONS_TOPIC, ()))
        if not partitions:
            return None
        tp = TopicPartition(TRANSACTIONS_TOPIC, state_partition(name, partitions))
        broker = self.leader_of(tp)
        return None if broker is None or broker.storage.offline(tp) else broker

    def leader_of(self, tp: TopicPartition) -> BrokerAccess | None:
        """The broker that leads the partition, if it runs."""
        return self._world.brokers.get(self._world.image.partitions[tp].leader)

    def state(self, name: str) -> CoordinatedTransaction | None:
        """What the coordinator knows of the id; None for an unknown one, or without a coordinator."""
        broker = self.coordinator(name)
        if broker is None:
            return None
        tp = self._state_partition(name)
        return self._world.context.transactions.coordinated(tp, broker.storage.log(tp)).get(name)

    def save(self, state: CoordinatedTransaction, answer: Saved | None = None) -> bool:
        """Writes the state to the coordinator's log; False if it could not be appended."""
        broker = self.coordinator(state.transactional_id)
        if broker is None:
            if answer is not None:
                answer(Error.COORDINATOR_NOT_AVAILABLE)
            return False
        return append_state(
            self._world.context, broker, self._state_partition(state.transactional_id), state, answer
        )

    def decide(self, decided: CoordinatedTransaction, answer: Saved | None = None) -> bool:
        """Writes a decision, then the markers, again and again until each is acknowledged. False if the decision
        could not be written.
        """
        if not self.save(decided, answer):
            return False
        self._send_markers(decided, decided.partitions)
        return True

    def _send_markers(self, decided: CoordinatedTransaction, left: frozenset[TopicPartition]) -> None:
        """Ends when the decision is no longer the newest that its coordinator knows."""
        coordinator = self.coordinator(decided.transactional_id)
        waiting = set(left)
        if coordinator is not None:
            if self.state(decided.transactional_id) != decided:
                return
            self._end_offsets(decided, waiting)
            if not waiting:
                self._complete(decided)
            for tp in sorted(waiting):
                self._send_marker(coordinator, decided, tp, waiting)
        self._world.loop.call_later(MARKER_RETRY, self._retry_markers, decided, waiting)

    def _end_offsets(self, decided: CoordinatedTransaction, waiting: set[TopicPartition]) -> None:
        """__consumer_offsets is no topic of a simulation: the offsets are applied or dropped at once."""
        self._world.context.groups.end(
            decided.producer_id, commit=decided.state is TransactionState.PREPARE_COMMIT
        )
        waiting -= {tp for tp in waiting if tp.topic == OFFSETS_TOPIC}

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
        partition = self._world.image.partitions.get(tp)
        if partition is None:  # the topic was deleted: its marker is not needed any more
            self._marked(decided, tp, waiting)
            return
        if partition.leader == NO_LEADER:
            return
        commit = decided.state is TransactionState.PREPARE_COMMIT
        marker = Marker(tp, decided.producer_id, decided.epoch, commit, self._epoch(decided))

        def write(leader: BrokerAccess, answer: Answer) -> None:
            append_marker(self._world.context, leader, marker, lambda error: answer((error,)))

        def answered(reply: tuple[Error | None] | None) -> None:
            if reply == (None,):
                self._marked(decided, tp, waiting)

        coordinator.endpoint.ask(node(partition.leader), Perform(write), MARKER_RETRY, answered)

    def _marked(
        self, decided: CoordinatedTransaction, tp: TopicPartition, waiting: set[TopicPartition]
    ) -> None:
        if tp not in waiting:
            return
        waiting.discard(tp)
        if not waiting:
            self._complete(decided)

    def _complete(self, decided: CoordinatedTransaction) -> None:
        if self.state(decided.transactional_id) == decided:
            self.save(decided._replace(state=COMPLETE[decided.state], partitions=frozenset()))

    def _abort_later(self, begun: CoordinatedTransaction) -> None:
        """When the transaction has taken longer than its producer allowed."""
        timeout = self._world.context.transactions.timeout_ms(begun.transactional_id) * MILLISECOND
        self._world.loop.call_later(timeout, self._abort_if_open, begun)

    def _abort_if_open(self, begun: CoordinatedTransaction) -> None:
        known = self.state(begun.transactional_id)
        if known is None:  # no coordinator at present
            self._world.loop.call_later(MARKER_RETRY, self._abort_if_open, begun)
        elif known._replace(partitions=begun.partitions) == begun:
            self.decide(aborted_by_coordinator(known))

    @property
    def _now_ms(self) -> int:
        return self._world.loop.now // MILLISECOND

    def _epoch(self, decided: CoordinatedTransaction) -> int:
        """The coordinator's epoch: the leader epoch of its partition of __transaction_state."""
        return self._world.image.partitions[self._state_partition(decided.transactional_id)].leader_epoch

    def _state_partition(self, name: str) -> TopicPartition:
        partitions = len(topics_of(self._world.image)[TRANSACTIONS_TOPIC])
        return TopicPartition(TRANSACTIONS_TOPIC, state_partition(name, partitions))
