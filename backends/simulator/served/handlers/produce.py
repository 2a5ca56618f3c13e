"""Produce, InitProducerId and FindCoordinator (which never finds one)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from backends.live.codec.ids import kafka_id
from backends.simulator.broker.broker_access import BrokerAccess, Perform
from backends.simulator.broker.client_append import append_batch
from backends.simulator.loop import MILLISECOND
from backends.simulator.messages import Error, ProduceReply
from backends.simulator.network import broker as node
from backends.simulator.partition_table import id_of, topics_of
from backends.simulator.record_batches import BadRecords, Compressed, ProducedBatch, read_produced
from backends.simulator.rpc import Answer
from backends.simulator.served.entities import Values
from backends.simulator.served.handlers.transactions import transaction_coordinator
from backends.simulator.served.served_call import ServedCall, code
from backends.simulator.served.served_context import HOST
from recovery.model import NO_LEADER, TopicPartition

BY_ID_FROM = 13
TRANSACTIONAL_ID = 1


class _Ended(NamedTuple):
    """``leader`` is (id, epoch) if the answer names the current leader (KIP-951)."""

    error: ErrorCode
    offset: int = -1
    log_start: int = -1
    leader: tuple[int, int] | None = None
    said: str | None = None


async def produce(call: ServedCall) -> Values | None:
    """acks 0, 1 and all, and idempotent producers; no transactions. With acks=0 there is no answer."""
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
    try:
        batch = read_produced(bytes(asked.records or b""))
    except Compressed:
        return _Ended(ErrorCode.unsupported_compression_type)
    except BadRecords as error:
        return _Ended(ErrorCode.corrupt_message, said=str(error))
    request = call.request
    timeout = round(request.timeout.total_seconds() * 1000) * MILLISECOND
    append = _Appending(call, TopicPartition(name, asked.index), batch, request.acks)
    reply = await call.context.clock.ask(call.node, Perform(append), timeout)
    if reply is None:
        return _Ended(ErrorCode.request_timed_out)
    assert isinstance(reply, _Ended)
    return reply


class _Appending:
    """Appends one batch when it arrives at the broker."""

    def __init__(self, call: ServedCall, tp: TopicPartition, batch: ProducedBatch, acks: int) -> None:
        self._call = call
        self._tp = tp
        self._batch = batch
        self._acks = acks

    def __call__(self, broker: BrokerAccess, answer: Answer) -> None:
        """The batch is stored before the answer; acks=0 has none of its own."""
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


async def init_producer_id(call: ServedCall) -> Values:
    """A new id for an idempotent producer. There is no coordinator for transactions."""
    refused = {"producer_id": -1, "producer_epoch": -1}
    if call.request.transactional_id is not None:
        return {**refused, "error_code": ErrorCode.coordinator_not_available}
    if not call.rights.cluster("IDEMPOTENT_WRITE"):
        return {**refused, "error_code": ErrorCode.cluster_authorization_failed}
    await call.read_broker(lambda _: None)
    known = call.field("producer_id", -1)
    if known >= 0:
        return {
            "error_code": ErrorCode.none,
            "producer_id": known,
            "producer_epoch": call.request.producer_epoch + 1,
        }
    return {
        "error_code": ErrorCode.none,
        "producer_id": call.context.world.context.producers.new_id(),
        "producer_epoch": 0,
    }


async def find_coordinator(call: ServedCall) -> Values:
    """Of transactional ids. Groups have none: clients that assign partitions themselves work."""
    of_transactions = call.field("key_type", 0) == TRANSACTIONAL_ID
    keys = call.field("coordinator_keys", ())
    asked = keys or (call.field("key", ""),)
    leaders = (
        await call.read_broker(lambda broker: [transaction_coordinator(broker, str(key)) for key in asked])
        if of_transactions
        else [NO_LEADER for _ in asked]
    )
    rows = [_coordinator(call, leader) for leader in leaders]
    return {**rows[0], "coordinators": [{**row, "key": key} for row, key in zip(rows, asked, strict=True)]}


def _coordinator(call: ServedCall, broker: int) -> Values:
    port = call.context.ports.get(node(broker))
    if port is None:
        none = ErrorCode.coordinator_not_available
        return {"node_id": -1, "host": "", "port": -1, "error_code": none, "error_message": None}
    where = {"node_id": broker, "host": HOST, "port": port}
    return {**where, "error_code": ErrorCode.none, "error_message": None}
