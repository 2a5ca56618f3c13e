"""What transactional producers ask of their coordinator: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn,
TxnOffsetCommit and EndTxn (KIP-98), and FindCoordinator.

A producer of transaction.version 2 (KIP-890) adds nothing by itself: the leader that takes its batch does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kio.schema.errors import ErrorCode

from backends.base.consumer_groups import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from backends.live.codec.message_fields import Values
from backends.simulator.broker.broker_access import BrokerAccess
from backends.simulator.classic_group import MemberClaim
from backends.simulator.group_store import OFFSETS_PARTITIONS, group_coordinator, offsets_partition
from backends.simulator.messages import CreateTopic, Error
from backends.simulator.network import broker as node
from backends.simulator.partition_table import topics_of
from backends.simulator.rpc import Answer
from backends.simulator.served.handlers.consumer_groups import requested_offsets
from backends.simulator.served.handlers.topics import spread_replicas
from backends.simulator.served.handlers.transactions import transaction_coordinator
from backends.simulator.served.served_call import ServedCall, code
from backends.simulator.transaction_coordinators import TransactionCoordinators
from backends.simulator.transaction_rules import ProducerEpoch
from recovery.model import NO_LEADER, TopicPartition
from recovery.transactions.decision_records import state_partition

TRANSACTIONAL_ID = 1
"""The key type of FindCoordinator."""
LONGEST_TIMEOUT_MS = 900_000
"""transaction.max.timeout.ms"""
STATE_PARTITIONS, STATE_REPLICAS, STATE_MIN_ISR = 50, 3, 2
"""transaction.state.log.num.partitions, .replication.factor and .min.isr; as few replicas as there are brokers."""
BY_LEADERS_FROM = 4
"""AddPartitionsToTxn of this version is between brokers."""
NEW_EPOCH_FROM = 5
"""EndTxn and TxnOffsetCommit of this version are those of transaction.version 2."""

Act = Callable[[TransactionCoordinators, Answer], None]


async def init_producer_id(call: ServedCall) -> Values:
    """A new id for an idempotent producer; for a transactional one a new epoch, which fences those before."""
    request = call.request
    asked = ProducerEpoch(call.field("producer_id", -1), call.field("producer_epoch", -1))
    if request.transactional_id is not None:
        timeout_ms = round(request.transaction_timeout.total_seconds() * 1000)
        if not 0 < timeout_ms <= LONGEST_TIMEOUT_MS:
            return _producer(ErrorCode.invalid_transaction_timeout)
        name = str(request.transactional_id)
        reply = await _at_coordinator(
            call, name, lambda own, answer: own.init_producer(name, asked, timeout_ms, answer)
        )
        return _producer_reply(call, reply, fenced_from=4)
    if not call.rights.cluster("IDEMPOTENT_WRITE"):
        return _producer(ErrorCode.cluster_authorization_failed)
    await call.read_broker(lambda _: None)
    if asked.id >= 0:
        return _producer(ErrorCode.none, asked._replace(epoch=asked.epoch + 1))
    return _producer(ErrorCode.none, ProducerEpoch(call.context.world.context.producers.new_id(), 0))


async def add_partitions_to_txn(call: ServedCall) -> Values:
    """All partitions of a transaction are added or none. From v4 on leaders ask, for clients or to verify."""
    request = call.request
    if call.version >= BY_LEADERS_FROM:
        return await _asked_by_leader(call)
    name = str(request.v3_and_below_transactional_id)
    producer = ProducerEpoch(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
    topics = request.v3_and_below_topics
    asked = _partitions(topics)
    wrong = await _not_writable(call, asked)
    errors = dict.fromkeys(asked, ErrorCode.operation_not_attempted) | wrong
    if not wrong:
        errors = await _added(call, name, producer, asked)
    return {"results_by_topic_v3_and_below": _topic_results(topics, errors)}


async def _asked_by_leader(call: ServedCall) -> Values:
    if not call.rights.cluster("CLUSTER_ACTION"):
        return {"error_code": ErrorCode.cluster_authorization_failed, "results_by_transaction": ()}
    results = []
    for one in call.request.transactions:
        name, producer = str(one.transactional_id), ProducerEpoch(one.producer_id, one.producer_epoch)
        asks = _verified if one.verify_only else _added
        errors = await asks(call, name, producer, _partitions(one.topics))
        results.append({"transactional_id": name, "topic_results": _topic_results(one.topics, errors)})
    return {"error_code": ErrorCode.none, "results_by_transaction": results}


async def _added(
    call: ServedCall, name: str, producer: ProducerEpoch, asked: frozenset[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    reply = await _at_coordinator(
        call, name, lambda own, answer: own.add_partitions(name, producer, asked, answer)
    )
    return dict.fromkeys(asked, _error(call, reply, fenced_from=2))


async def _verified(
    call: ServedCall, name: str, producer: ProducerEpoch, asked: frozenset[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    reply = await _at_coordinator(
        call, name, lambda own, answer: answer({tp: own.takes_part(name, producer, tp) for tp in asked})
    )
    errors = reply if isinstance(reply, dict) else dict.fromkeys(asked, reply)
    return {tp: code(error) for tp, error in errors.items()}


def _partitions(topics: Iterable[Any]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic.name, number) for topic in topics for number in topic.partitions)


def _topic_results(topics: Iterable[Any], errors: Mapping[TopicPartition, ErrorCode]) -> list[Values]:
    return [
        {
            "name": topic.name,
            "results_by_partition": [
                {
                    "partition_index": number,
                    "partition_error_code": errors[TopicPartition(topic.name, number)],
                }
                for number in topic.partitions
            ],
        }
        for topic in topics
    ]


async def _not_writable(
    call: ServedCall, asked: frozenset[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    known = await call.read_broker(lambda broker: asked.intersection(broker.state.image.partitions))
    wrong = dict.fromkeys(asked - known, ErrorCode.unknown_topic_or_partition)
    denied = (tp for tp in asked if not call.rights.topic("WRITE", tp.topic))
    return wrong | dict.fromkeys(denied, ErrorCode.topic_authorization_failed)


async def add_offsets_to_txn(call: ServedCall) -> Values:
    """The group's partition of __consumer_offsets takes part in the transaction."""
    request = call.request
    if _denied_group(call, request.group_id):
        return {"error_code": ErrorCode.group_authorization_failed}
    reply = await _add_offsets(call, request)
    return {"error_code": _error(call, reply, fenced_from=2)}


async def _add_offsets(call: ServedCall, request: Any) -> Error | None:
    name = str(request.transactional_id)
    producer = ProducerEpoch(request.producer_id, request.producer_epoch)
    group = str(request.group_id)
    tp = await call.read_broker(lambda broker: offsets_partition(broker.state.image, group))
    number = state_partition(group, OFFSETS_PARTITIONS)
    asked = frozenset((tp or TopicPartition(OFFSETS_TOPIC, number),))
    found: Error | None = await _at_coordinator(
        call,
        name,
        lambda own, answer: own.add_partitions(name, producer, asked, answer),
        anywhere=call.version >= NEW_EPOCH_FROM,
    )
    return found


async def txn_offset_commit(call: ServedCall) -> Values:
    """At the group's coordinator: the offsets count when the transaction is committed. From v5 on the transaction
    begins with them where none is open.
    """
    request = call.request
    error = ErrorCode.group_authorization_failed
    if not _denied_group(call, request.group_id):
        error = await _prepare_offsets(call)
    topics = [
        {
            "name": topic.name,
            "partitions": [
                {"partition_index": row.partition_index, "error_code": error} for row in topic.partitions
            ],
        }
        for topic in request.topics
    ]
    return {"topics": topics}


async def _prepare_offsets(call: ServedCall) -> ErrorCode:
    request = call.request
    claim = MemberClaim(
        call.field("member_id", ""), call.field("generation_id", -1), call.field("group_instance_id")
    )
    group = str(request.group_id)
    refusal = await call.read_broker(
        lambda broker: broker.groups.member_error(group, claim, transactional=True)
    )
    if refusal is not None:
        return code(refusal)
    if call.version >= NEW_EPOCH_FROM:
        error = _error(call, await _add_offsets(call, request), fenced_from=0)
        if error is not ErrorCode.none:
            return error
    groups = call.context.world.context.groups
    groups.prepare(request.producer_id, group, requested_offsets(request))
    return ErrorCode.none


def _denied_group(call: ServedCall, group: str) -> bool:
    return f"READ group {group}" in call.rights


async def end_txn(call: ServedCall) -> Values:
    """Commit or abort; answered when the decision is written, before the markers are."""
    request = call.request
    name = str(request.transactional_id)
    producer = ProducerEpoch(request.producer_id, request.producer_epoch)

    def end(own: TransactionCoordinators, answer: Answer) -> None:
        new_epoch = call.version >= NEW_EPOCH_FROM
        own.end(name, producer, answer, commit=request.committed, new_epoch=new_epoch)

    return _producer_reply(call, await _at_coordinator(call, name, end), fenced_from=2)


async def _at_coordinator(call: ServedCall, name: str, act: Act, *, anywhere: bool = False) -> Any:
    """What ``act`` answers at the coordinator of the id. ``anywhere``: a broker asks for its client."""

    def perform(broker: BrokerAccess, answer: Answer) -> None:
        coordinators = TransactionCoordinators(call.context.world)
        own = coordinators.coordinator(name)
        if not anywhere and (own is None or own.state.id != broker.state.id):
            answer(Error.NOT_COORDINATOR)
        else:
            act(coordinators, answer)

    return await call.perform(perform)


def _error(call: ServedCall, reply: Any, *, fenced_from: int) -> ErrorCode:
    """Clients before ``fenced_from`` do not know PRODUCER_FENCED."""
    if reply is Error.PRODUCER_FENCED and call.version < fenced_from:
        return ErrorCode.invalid_producer_epoch
    return code(reply) if isinstance(reply, Error) else ErrorCode.none


def _producer_reply(call: ServedCall, reply: Any, *, fenced_from: int) -> Values:
    if isinstance(reply, ProducerEpoch):
        return _producer(ErrorCode.none, reply)
    return _producer(_error(call, reply, fenced_from=fenced_from))


def _producer(error: ErrorCode, producer: ProducerEpoch | None = None) -> Values:
    identity = producer or ProducerEpoch()
    return {"error_code": error, "producer_id": identity.id, "producer_epoch": identity.epoch}


async def find_coordinator(call: ServedCall) -> Values:
    """Of groups and of transactional ids. The first client that asks creates the topic of its coordinators."""
    keys = call.field("coordinator_keys", ())
    asked = keys or (call.field("key", ""),)
    if call.field("key_type", 0) == TRANSACTIONAL_ID:
        await _create_if_missing(call, TRANSACTIONS_TOPIC, STATE_PARTITIONS, STATE_MIN_ISR)
        leaders = await call.read_broker(
            lambda broker: [transaction_coordinator(broker, str(key)) for key in asked]
        )
    else:
        await _create_if_missing(call, OFFSETS_TOPIC, OFFSETS_PARTITIONS, None)
        leaders = await call.read_broker(
            lambda broker: [
                group_coordinator(broker.state.image, str(key))
                if offsets_partition(broker.state.image, str(key))
                else NO_LEADER
                for key in asked
            ]
        )
    rows = [_coordinator(call, leader) for leader in leaders]
    return {**rows[0], "coordinators": [{**row, "key": key} for row, key in zip(rows, asked, strict=True)]}


async def _create_if_missing(call: ServedCall, topic: str, partitions: int, min_isr: int | None) -> None:
    """The client asks again until the topic has leaders."""
    image = call.context.world.image
    if topic not in topics_of(image):
        replicas = min(STATE_REPLICAS, len(image.brokers))
        rows = spread_replicas(call, image, partitions, replicas)
        await call.ask(CreateTopic(topic, rows, None if min_isr is None else min(min_isr, replicas)))


def _coordinator(call: ServedCall, broker: int) -> Values:
    address = call.context.addresses.get(node(broker))
    if address is None:
        none = ErrorCode.coordinator_not_available
        return {"node_id": -1, "host": "", "port": -1, "error_code": none, "error_message": None}
    host, port = address
    where = {"node_id": broker, "host": host, "port": port}
    return {**where, "error_code": ErrorCode.none, "error_message": None}
