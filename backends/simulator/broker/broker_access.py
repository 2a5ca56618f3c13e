"""What a request may use of the broker at which it arrives, and appending its batches where the broker leads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from backends.simulator.broker.broker_state import BrokerState
from backends.simulator.broker.log_storage import LogStorage
from backends.simulator.broker.partition_leader import PartitionLeader
from backends.simulator.broker.replica_log import Log
from backends.simulator.context import Context
from backends.simulator.loop import MILLISECOND
from backends.simulator.messages import Error, Produce, ProduceReply
from backends.simulator.record_batches import GeneratedBatch, ProducedBatch
from backends.simulator.rpc import Answer, RpcEndpoint
from backends.simulator.transaction_logs import TransactionalBatch
from recovery.model import EpochSpan, TopicPartition

if TYPE_CHECKING:
    from backends.simulator.broker.group_coordinator import GroupCoordinator


class BrokerAccess(Protocol):
    """Handlers read ``state`` and ``storage``, produce through ``leader``, forward through ``endpoint``, and leave
    consumer groups to ``groups``.
    """

    state: BrokerState
    storage: LogStorage
    leader: PartitionLeader
    endpoint: RpcEndpoint
    groups: GroupCoordinator


class Perform(NamedTuple):
    """A request of a client or a broker: calls ``act`` when it arrives at the broker, with the way to answer."""

    act: Callable[[BrokerAccess, Answer], None]


_COORDINATOR_ERRORS = {
    Error.NOT_ENOUGH_REPLICAS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Error.COORDINATOR_NOT_AVAILABLE,
    Error.REQUEST_TIMED_OUT: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_LEADER_OR_FOLLOWER: Error.NOT_COORDINATOR,
    Error.KAFKA_STORAGE_ERROR: Error.NOT_COORDINATOR,
}


def append_batch(
    context: Context,
    broker: BrokerAccess,
    tp: TopicPartition,
    batch: ProducedBatch,
    *,
    acks: int,
    answer: Callable[[ProduceReply], None],
) -> None:
    """Detects a duplicate, appends, and stores the batch before the answer."""
    partition = broker.state.image.partitions.get(tp)
    if partition is None:
        answer(ProduceReply(Error.UNKNOWN_TOPIC_OR_PARTITION))
        return
    before = broker.storage.disk.logs.get(tp)
    leads = partition.leader == broker.state.id and before is not None
    producers = context.producers
    if leads and before is not None and batch.producer_id >= 0:
        if batch.transactional and _fenced(context, tp, batch, before):
            answer(ProduceReply(Error.INVALID_PRODUCER_EPOCH))
            return
        known = producers.duplicate(tp, batch, before)
        if known is not None:
            answer(ProduceReply(None, known.start))
            return
        if not producers.follows(tp, batch, before):
            answer(ProduceReply(Error.OUT_OF_ORDER_SEQUENCE_NUMBER))
            return
    span = append_stored(context, broker, tp, batch, acks=acks, answer=answer)
    if span is not None and batch.producer_id >= 0:
        producers.appended(tp, batch, span)
    if span is not None and batch.transactional:
        now = context.loop.now // MILLISECOND
        written = TransactionalBatch(span, batch.producer_id, batch.producer_epoch, now)
        context.transactions.appended(tp, written)


def _fenced(context: Context, tp: TopicPartition, batch: ProducedBatch, log: Log) -> bool:
    """Whether a later epoch of its producer is in the log, a marker's for example."""
    known = context.transactions.producers(tp, log).get(batch.producer_id)
    return known is not None and batch.producer_epoch < known.epoch


def append_stored(
    context: Context,
    broker: BrokerAccess,
    tp: TopicPartition,
    batch: ProducedBatch | GeneratedBatch,
    *,
    acks: int,
    answer: Callable[[ProduceReply], None],
) -> EpochSpan | None:
    """Appends and stores the batch before the answer. Returns its span, None if it was refused."""
    before = broker.storage.disk.logs.get(tp)
    records = batch.size if isinstance(batch, GeneratedBatch) else batch.records
    broker.leader.produce(Produce(tp, records, acks), answer)
    after = broker.storage.disk.logs.get(tp)
    if before is None or after is None or after.end != before.end + records:
        return None
    span = EpochSpan(after.last_epoch, before.end, after.end)
    context.contents.add(tp, span, batch)
    return span


def coordinator_error(reply: ProduceReply) -> Error | None:
    """How a coordinator of groups or transactions names the errors of its own log."""
    return None if reply.error is None else _COORDINATOR_ERRORS.get(reply.error, reply.error)
