"""Produce: of plain, idempotent and transactional producers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from backends.live.codec.message_fields import Values
from backends.live.codec.primitives import kafka_id
from backends.simulator.broker.broker_access import BrokerAccess, Perform, append_batch
from backends.simulator.loop import MILLISECOND
from backends.simulator.messages import Error, ProduceReply
from backends.simulator.partition_table import id_of, topics_of
from backends.simulator.record_batches import BadRecords, Compressed, ProducedBatch, read_produced
from backends.simulator.rpc import Answer
from backends.simulator.served.served_call import ServedCall, code
from backends.simulator.transaction_coordinators import TransactionCoordinators
from backends.simulator.transaction_logs import NO_TRANSACTION
from backends.simulator.transaction_rules import ProducerEpoch
from recovery.model import TopicPartition

BY_ID_FROM = 13
ADDED_BY_LEADER_FROM = 12
"""Produce of this version is that of transaction.version 2 (KIP-890)."""


class _Ended(NamedTuple):
    """``leader`` is (id, epoch) if the answer names the current leader (KIP-951)."""

    error: ErrorCode
    offset: int = -1
    log_start: int = -1
    leader: tuple[int, int] | None = None
    said: str | None = None


async def produce(call: ServedCall) -> Values | None:
    """acks 0, 1 and all. With acks=0 there is no answer."""
    request = call.request
    if request.acks not in (0, 1, -1):
        ended = _Ended(ErrorCode.invalid_required_acks)
        return _answer(
            [(topic, [(p.index, ended) for p in topic.partition_data]) for topic in request.topic_data]
        )
    names = [await _name(call, topic) for topic in request.topic_data]
    jobs = [
        _one(call, name, asked)
        for topic, name in zip(request.topic_data, names, strict=True)
        for asked in topic.partition_data
    ]
    ended_all = iter(await asyncio.gather(*jobs))
    topics = [
        (topic, [(p.index, next(ended_all)) for p in topic.partition_data]) for topic in request.topic_data
    ]
    if request.acks == 0:
        return None
    return _answer(topics)


async def _name(call: ServedCall, topic: Any) -> str:
    if call.version < BY_ID_FROM:
        return str(topic.name)
    topic_id = kafka_id(topic.topic_id)
    names = await call.read_broker(
        lambda broker: {id_of(broker.state.image, name): name for name in topics_of(broker.state.image)}
    )
    return names.get(topic_id, "")


async def _one(call: ServedCall, name: str, asked: Any) -> _Ended:
    if not name:
        return _Ended(ErrorCode.unknown_topic_id)
    if not call.rights.topic("WRITE", name):
        return _Ended(ErrorCode.topic_authorization_failed)
    batch = _read(call, bytes(asked.records or b""))
    if isinstance(batch, _Ended):
        return batch
    request = call.request
    timeout = round(request.timeout.total_seconds() * 1000) * MILLISECOND
    append = _Appending(call, TopicPartition(name, asked.index), batch, request.acks)
    reply = await call.context.clock.ask(call.node, Perform(append), timeout)
    if reply is None:
        return _Ended(ErrorCode.request_timed_out)
    assert isinstance(reply, _Ended)
    return reply


def _read(call: ServedCall, data: bytes) -> ProducedBatch | _Ended:
    try:
        batch = read_produced(data)
    except Compressed:
        return _Ended(ErrorCode.unsupported_compression_type)
    except BadRecords as error:
        return _Ended(ErrorCode.corrupt_message, said=str(error))
    if batch.transactional and call.field("transactional_id") is None:
        return _Ended(ErrorCode.transactional_id_authorization_failed)
    return batch


class _Appending:
    """Appends one batch when it arrives at the broker."""

    def __init__(self, call: ServedCall, tp: TopicPartition, batch: ProducedBatch, acks: int) -> None:
        self._call = call
        self._tp = tp
        self._batch = batch
        self._acks = acks

    def __call__(self, broker: BrokerAccess, answer: Answer) -> None:
        """The batch is stored before the answer; acks=0 has none of its own."""
        if not self._batch.transactional or self._in_open_transaction(broker):
            self._append(broker, answer)
            return

        def admitted(error: Error | None) -> None:
            if broker.endpoint.closed:
                return
            if error is not None:
                answer(_Ended(_refused(error, by_leader=by_leader)))
            else:
                self._append(broker, answer)

        by_leader = self._call.version >= ADDED_BY_LEADER_FROM
        name = str(self._call.request.transactional_id)
        producer = ProducerEpoch(self._batch.producer_id, self._batch.producer_epoch)
        coordinators = TransactionCoordinators(self._call.context.world)
        if by_leader:
            coordinators.add_partitions(name, producer, frozenset((self._tp,)), admitted)
        else:
            admitted(coordinators.takes_part(name, producer, self._tp))

    def _in_open_transaction(self, broker: BrokerAccess) -> bool:
        """Whether the coordinator need not be asked: the log has the transaction, or is led by another broker."""
        partition = broker.state.image.partitions.get(self._tp)
        log = broker.storage.disk.logs.get(self._tp)
        if partition is None or partition.leader != broker.state.id or log is None:
            return True
        transactions = self._call.context.world.context.transactions
        known = transactions.producers(self._tp, log).get(self._batch.producer_id)
        same = known is not None and known.epoch == self._batch.producer_epoch
        return known is not None and same and known.start_offset != NO_TRANSACTION

    def _append(self, broker: BrokerAccess, answer: Answer) -> None:
        context = self._call.context.world.context
        append_batch(
            context,
            broker,
            self._tp,
            self._batch,
            acks=self._acks,
            answer=self._reply_handler(broker, answer),
        )
        if self._acks == 0:
            answer(_Ended(ErrorCode.none))

    def _reply_handler(self, broker: BrokerAccess, answer: Answer) -> Callable[[Any], None]:
        def on_reply(reply: Any) -> None:
            if self._acks == 0:
                return
            assert isinstance(reply, ProduceReply)
            log = broker.storage.disk.logs.get(self._tp)
            start = -1 if log is None else log.start
            if reply.error is None:
                answer(_Ended(ErrorCode.none, reply.offset, start))
                return
            leader = None
            if reply.error is Error.NOT_LEADER_OR_FOLLOWER:
                registration = broker.state.image.partitions.get(self._tp)
                leader = None if registration is None else (registration.leader, registration.leader_epoch)
            answer(_Ended(code(reply.error), leader=leader))

        return on_reply


_COORDINATOR_MISSING = frozenset(
    (Error.CONCURRENT_TRANSACTIONS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR)
)


def _refused(error: Error, *, by_leader: bool) -> ErrorCode:
    """As leaders tell producers what a coordinator said; they try again where it may change."""
    if error in _COORDINATOR_MISSING:
        return ErrorCode.not_enough_replicas
    if error is Error.PRODUCER_FENCED:
        return ErrorCode.invalid_producer_epoch
    if error is Error.INVALID_TXN_STATE and by_leader:
        return ErrorCode.transaction_abortable
    return code(error)


def _answer(topics: list[tuple[Any, list[tuple[int, _Ended]]]]) -> Values:
    responses = []
    for topic, rows in topics:
        encoded = [_row(index, ended) for index, ended in rows]
        by_id = kafka_id(topic.topic_id) if hasattr(topic, "topic_id") else None
        responses.append(
            {"name": getattr(topic, "name", ""), "topic_id": by_id, "partition_responses": encoded}
        )
    return {"responses": responses}


def _row(index: int, ended: _Ended) -> Values:
    row = {
        "index": index,
        "error_code": ended.error,
        "base_offset": ended.offset,
        "log_append_time": -1,
        "log_start_offset": ended.log_start,
        "record_errors": (),
        "error_message": ended.said,
    }
    if ended.leader is not None:
        row["current_leader"] = {"leader_id": ended.leader[0], "leader_epoch": ended.leader[1]}
    return row
