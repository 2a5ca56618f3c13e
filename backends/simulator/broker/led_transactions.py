"""Transactions at a broker: in the partitions that it leads, and those that it coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from backends.base.consumer_groups import TRANSACTIONS_TOPIC
from backends.base.transactions import Marker
from backends.simulator.broker.broker_access import BrokerAccess, append_stored, coordinator_error
from backends.simulator.broker.replica_log import Log
from backends.simulator.context import Context
from backends.simulator.loop import MILLISECOND
from backends.simulator.messages import Error, ProduceReply
from backends.simulator.record_batches import GeneratedBatch
from backends.simulator.rpc import Answer
from backends.simulator.transaction_logs import (
    NO_TRANSACTION,
    LedPartition,
    ProducerInLog,
    TransactionalBatch,
    marker_record,
    state_record,
)
from recovery.model import TopicPartition
from recovery.transactions.transaction_values import CoordinatedTransaction


def hosted_partition(context: Context, broker: BrokerAccess, tp: TopicPartition) -> LedPartition:
    """DescribeProducers of one partition, from any of its replicas, and how far read_committed consumers read."""
    if tp not in broker.state.image.partitions:
        return LedPartition(tp, Error.UNKNOWN_TOPIC_OR_PARTITION)
    if tp not in broker.storage.disk.logs or broker.storage.offline(tp):
        return LedPartition(tp, Error.NOT_LEADER_OR_FOLLOWER)
    log = broker.storage.log(tp)
    producers = tuple(_producers(context, tp, log))
    last_stable = context.transactions.last_stable(tp, log)
    return LedPartition(tp, None, producers, last_stable, log.high_watermark)


def _producers(context: Context, tp: TopicPartition, log: Log) -> Iterator[ProducerInLog]:
    """A marker of a later epoch than the last batch leaves no sequence, as in Kafka (transaction.version 2)."""
    newest = context.producers.newest(tp, log)
    for one in context.transactions.producers(tp, log).values():
        batch = newest.pop(one.producer_id, None)
        known = batch is not None and batch.epoch == one.epoch
        yield one._replace(last_sequence=batch.last) if batch is not None and known else one
    for producer, batch in newest.items():
        written_ms, _ = context.times.of(tp, batch.span.epoch, batch.span.end - 1)
        yield ProducerInLog(producer, batch.epoch, written_ms, -1, NO_TRANSACTION, batch.last)


def led_partition(context: Context, broker: BrokerAccess, tp: TopicPartition) -> LedPartition:
    """As :func:`hosted_partition`, from the leader only."""
    partition = broker.state.image.partitions.get(tp)
    if partition is not None and partition.leader != broker.state.id:
        return LedPartition(tp, Error.NOT_LEADER_OR_FOLLOWER)
    return hosted_partition(context, broker, tp)


def coordinated(context: Context, broker: BrokerAccess) -> dict[str, CoordinatedTransaction]:
    """What the logs of __transaction_state tell that this broker leads."""
    found: dict[str, CoordinatedTransaction] = {}
    for tp, partition in broker.state.image.partitions.items():
        leads = tp.topic == TRANSACTIONS_TOPIC and partition.leader == broker.state.id
        if leads and not broker.storage.offline(tp):
            found.update(context.transactions.coordinated(tp, broker.storage.log(tp)))
    return found


def append_markers(context: Context, broker: BrokerAccess, markers: Sequence[Marker], answer: Answer) -> None:
    """WriteTxnMarkers: answered with the error of each marker or None, once all are replicated or refused."""
    if not markers:
        answer(())
    errors: dict[int, Error | None] = {}

    def answered(index: int, error: Error | None) -> None:
        errors[index] = error
        if len(errors) == len(markers):
            answer(tuple(errors[i] for i in range(len(markers))))

    for index, marker in enumerate(markers):
        append_marker(context, broker, marker, partial(answered, index))


def append_records(
    context: Context,
    broker: BrokerAccess,
    tp: TopicPartition,
    transaction: CoordinatedTransaction,
    count: int,
) -> Error | None:
    """A batch of the transaction's producer, with acks=1."""
    batch = GeneratedBatch(count, transaction.producer_id, transaction.epoch)
    replies: list[ProduceReply] = []
    span = append_stored(context, broker, tp, batch, acks=1, answer=replies.append)
    if span is None:
        return replies[0].error if replies else Error.REQUEST_TIMED_OUT
    now = context.loop.now // MILLISECOND
    written = TransactionalBatch(span, transaction.producer_id, transaction.epoch, now)
    context.transactions.appended(tp, written)
    return None


def append_marker(context: Context, broker: BrokerAccess, marker: Marker, answer: Answer) -> None:
    """Answers with the error, or with None once the marker is replicated."""
    led = led_partition(context, broker, marker.tp)
    if led.error is not None:
        answer(led.error)
        return
    known = next((one for one in led.producers if one.producer_id == marker.producer_id), None)
    if known is not None and marker.epoch < known.epoch:
        answer(Error.INVALID_PRODUCER_EPOCH)
        return
    if known is not None and marker.coordinator_epoch < known.coordinator_epoch:
        answer(Error.TRANSACTION_COORDINATOR_FENCED)
        return
    record = marker_record(marker.commit, marker.coordinator_epoch)
    batch = GeneratedBatch(1, marker.producer_id, marker.epoch, control=True, records=(record,))
    span = append_stored(
        context, broker, marker.tp, batch, acks=-1, answer=lambda reply: answer(_error_of(reply))
    )
    if span is not None:
        now = context.loop.now // MILLISECOND
        written = TransactionalBatch(
            span, marker.producer_id, marker.epoch, now, marker.commit, marker.coordinator_epoch
        )
        context.transactions.appended(marker.tp, written)


def _error_of(reply: ProduceReply) -> Error | None:
    return reply.error


def append_state(
    context: Context,
    broker: BrokerAccess,
    tp: TopicPartition,
    state: CoordinatedTransaction,
    answer: Callable[[Error | None], None] | None = None,
) -> bool:
    """The coordinator writes a transaction's new state to its partition of __transaction_state. ``answer`` is
    called with the error, or with None when it is replicated; False: it was refused at once.
    """
    now = context.loop.now // MILLISECOND
    record = state_record(state, now, context.transactions.timeout_ms(state.transactional_id))

    def replied(reply: ProduceReply) -> None:
        if answer is not None:
            answer(coordinator_error(reply))

    span = append_stored(context, broker, tp, GeneratedBatch(1, records=(record,)), acks=-1, answer=replied)
    if span is not None:
        context.transactions.state_appended(tp, span, state)
    return span is not None
