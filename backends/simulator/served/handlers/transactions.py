"""DescribeProducers, ListTransactions, DescribeTransactions and WriteTxnMarkers (KIP-664), from the logs that the
asked broker leads.
"""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from backends.base.consumer_groups import TRANSACTIONS_TOPIC
from backends.base.transactions import Marker
from backends.live.codec.message_fields import Values
from backends.simulator.broker.broker_access import BrokerAccess
from backends.simulator.broker.led_transactions import append_markers, coordinated, hosted_partition
from backends.simulator.served.served_call import ServedCall, code
from recovery.model import NO_LEADER, TopicPartition
from recovery.transactions.decision_records import state_partition
from recovery.transactions.transaction_values import CoordinatedTransaction


async def describe_producers(call: ServedCall) -> Values:
    """The idempotent and transactional producers whose batches the log holds."""
    return await call.read_broker(
        lambda broker: {
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [
                        _described(call, broker, TopicPartition(topic.name, number))
                        for number in topic.partition_indexes
                    ],
                }
                for topic in call.request.topics
            ]
        }
    )


def _described(call: ServedCall, broker: BrokerAccess, tp: TopicPartition) -> Values:
    if not call.rights.topic("READ", tp.topic):
        error = ErrorCode.topic_authorization_failed
        return {"partition_index": tp.partition, "error_code": error, "active_producers": ()}
    hosted = hosted_partition(call.context.world.context, broker, tp)
    producers = [
        {
            "producer_id": one.producer_id,
            "producer_epoch": one.epoch,
            "last_sequence": one.last_sequence,
            "last_timestamp": call.context.in_epoch_ms(one.last_ms),
            "coordinator_epoch": one.coordinator_epoch,
            "current_txn_start_offset": one.start_offset,
        }
        for one in hosted.producers
    ]
    return {
        "partition_index": tp.partition,
        "error_code": code(hosted.error),
        "active_producers": producers,
    }


async def list_transactions(call: ServedCall) -> Values:
    """Filtered by state and producer id."""
    request = call.request
    rows = [
        {
            "transactional_id": one.transactional_id,
            "producer_id": one.producer_id,
            "transaction_state": str(one.state),
        }
        for one in (await _coordinated(call)).values()
        if not request.producer_id_filters or one.producer_id in request.producer_id_filters
        if not request.state_filters or str(one.state) in request.state_filters
    ]
    return {"error_code": ErrorCode.none, "unknown_state_filters": (), "transaction_states": rows}


async def describe_transactions(call: ServedCall) -> Values:
    known = await _coordinated(call)
    led = await call.read_broker(_led_state_partitions)
    rows = [
        _transaction(call, name, known.get(name), led) for name in map(str, call.request.transactional_ids)
    ]
    return {"transaction_states": rows}


def _led_state_partitions(broker: BrokerAccess) -> tuple[int, frozenset[int]]:
    """How many partitions __transaction_state has, and which of them this broker leads."""
    partitions = {
        tp.partition: registration
        for tp, registration in broker.state.image.partitions.items()
        if tp.topic == TRANSACTIONS_TOPIC
    }
    led = (number for number, registration in partitions.items() if registration.leader == broker.state.id)
    return len(partitions), frozenset(led)


def _transaction(
    call: ServedCall, name: str, one: CoordinatedTransaction | None, led: tuple[int, frozenset[int]]
) -> Values:
    if one is None:
        mine = led[0] and state_partition(name, led[0]) in led[1]
        missing = ErrorCode.transactional_id_not_found if mine else ErrorCode.not_coordinator
        empty = {"transaction_state": "", "transaction_timeout": 0, "transaction_start_time": 0, "topics": ()}
        return {
            **empty,
            "error_code": missing,
            "transactional_id": name,
            "producer_id": 0,
            "producer_epoch": 0,
        }
    topics: dict[str, list[int]] = {}
    for tp in sorted(one.partitions):
        topics.setdefault(tp.topic, []).append(tp.partition)
    return {
        "error_code": ErrorCode.none,
        "transactional_id": name,
        "transaction_state": str(one.state),
        "transaction_timeout": call.context.world.context.transactions.timeout_ms(name),
        "transaction_start_time": call.context.in_epoch_ms(one.start_ms),
        "producer_id": one.producer_id,
        "producer_epoch": one.epoch,
        "topics": [{"topic": topic, "partitions": numbers} for topic, numbers in topics.items()],
    }


async def _coordinated(call: ServedCall) -> dict[str, CoordinatedTransaction]:
    return await call.read_broker(lambda broker: coordinated(call.context.world.context, broker))


async def write_txn_markers(call: ServedCall) -> Values:
    """Appends the markers, as a coordinator sends them; answered when they are replicated."""
    asked = [
        Marker(
            TopicPartition(topic.name, number),
            one.producer_id,
            one.producer_epoch,
            one.transaction_result,
            one.coordinator_epoch,
        )
        for one in call.request.markers
        for topic in one.topics
        for number in topic.partition_indexes
    ]
    allowed = call.rights.cluster("ALTER") or call.rights.cluster("CLUSTER_ACTION")
    errors: dict[Marker, ErrorCode] = dict.fromkeys(asked, ErrorCode.cluster_authorization_failed)
    if allowed:
        context = call.context.world.context
        written = await call.perform(lambda broker, answer: append_markers(context, broker, asked, answer))
        errors = dict(zip(asked, map(code, written), strict=True))
    return {"markers": [_written(one, errors) for one in call.request.markers]}


def _written(one: Any, errors: dict[Marker, ErrorCode]) -> Values:
    by_partition = {
        marker.tp: error for marker, error in errors.items() if marker.producer_id == one.producer_id
    }
    topics = [
        {
            "name": topic.name,
            "partitions": [
                {
                    "partition_index": number,
                    "error_code": by_partition[TopicPartition(topic.name, number)],
                }
                for number in topic.partition_indexes
            ],
        }
        for topic in one.topics
    ]
    return {"producer_id": one.producer_id, "topics": topics}


def transaction_coordinator(broker: BrokerAccess, name: str) -> int:
    """The leader of the id's partition of __transaction_state, by this broker's metadata."""
    partitions, _ = _led_state_partitions(broker)
    if not partitions:
        return NO_LEADER
    tp = TopicPartition(TRANSACTIONS_TOPIC, state_partition(name, partitions))
    return broker.state.image.partitions[tp].leader
