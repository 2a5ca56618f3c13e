"""Appending a client's own batch, whose bytes are kept, to a partition that this broker leads."""

from __future__ import annotations

from collections.abc import Callable

from backends.simulator.broker.broker_access import BrokerAccess
from backends.simulator.context import Context
from backends.simulator.messages import Error, Produce, ProduceReply
from backends.simulator.record_batches import ProducedBatch
from recovery.model import EpochSpan, TopicPartition


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
        known = producers.duplicate(tp, batch, before)
        if known is not None:
            answer(ProduceReply(None, known.start))
            return
        if not producers.follows(tp, batch, before):
            answer(ProduceReply(Error.OUT_OF_ORDER_SEQUENCE_NUMBER))
            return
    broker.leader.produce(Produce(tp, batch.records, acks), answer)
    after = broker.storage.disk.logs.get(tp)
    if before is not None and after is not None and after.end == before.end + batch.records:
        span = EpochSpan(after.last_epoch, before.end, after.end)
        context.contents.add(tp, span, batch)
        if batch.producer_id >= 0:
            producers.appended(tp, batch, span)
