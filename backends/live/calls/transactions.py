"""Transactions at partition leaders and coordinators (KIP-664): DescribeProducers, ListTransactions,
DescribeTransactions and WriteTxnMarkers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from backends.base.errors import BackendError
from backends.base.transactions import Marker
from backends.live.calls.partition_errors import by_topic
from backends.live.codec.apis import Api
from backends.live.codec.column_reader import NeedsFullDecoder
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import Permission, check, on_cluster, on_topic, one_line, unknown
from recovery.metadata_log.field_reader import FieldReader, MalformedRecordError
from recovery.model import TopicPartition, Unknown, Why
from recovery.transactions.producer_sequences import ProducerSequence
from recovery.transactions.transaction_values import (
    CoordinatedTransaction,
    OpenTransaction,
    TransactionState,
)

LATEST = -1
UNCOMMITTED, COMMITTED = 0, 1
NO_TRANSACTION = -1


class DescribedProducers(NamedTuple):
    """Of one partition."""

    open: tuple[OpenTransaction, ...]
    producers: tuple[ProducerSequence, ...]


async def describe_producers(
    conn: BrokerConnection, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, DescribedProducers | Unknown]:
    """The producers, and the open transactions, in partitions that this broker leads. Raises BrokerError,
    NotOffered.
    """
    from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
    from kio.schema.describe_producers.v0.response import DescribeProducersResponse
    from kio.schema.types import TopicName
    from kio.static.primitive import i32

    request = DescribeProducersRequest(
        topics=tuple(
            TopicRequest(name=TopicName(topic), partition_indexes=tuple(map(i32, numbers)))
            for topic, numbers in by_topic(partitions).items()
        )
    )
    answer = await conn.send(request, DescribeProducersResponse)
    found: dict[TopicPartition, DescribedProducers | Unknown] = {}
    for topic in answer.topics:
        for row in topic.partitions:
            tp = TopicPartition(str(topic.name), row.partition_index)
            if row.error_code:
                need = on_topic("READ", tp.topic)
                found[tp] = unknown(row.error_code, "DescribeProducers", need, row.error_message)
                continue
            open_ones = tuple(
                OpenTransaction(
                    tp,
                    producer.producer_id,
                    producer.producer_epoch,
                    producer.current_txn_start_offset,
                    producer.last_timestamp,
                    producer.coordinator_epoch,
                )
                for producer in row.active_producers
                if producer.current_txn_start_offset != NO_TRANSACTION
            )
            producers = tuple(
                ProducerSequence(one.producer_id, one.producer_epoch, one.last_sequence)
                for one in row.active_producers
            )
            found[tp] = DescribedProducers(open_ones, producers)
    return found


async def latest_offsets(
    conn: BrokerConnection, partitions: Iterable[TopicPartition], isolation: int
) -> dict[TopicPartition, int | Unknown]:
    """The high watermark (UNCOMMITTED) or the last stable offset (COMMITTED) of partitions that this broker leads.

    Raises BrokerError, NotOffered.
    """
    from kio.schema.list_offsets.v7.request import (
        ListOffsetsPartition,
        ListOffsetsRequest,
        ListOffsetsTopic,
    )
    from kio.schema.list_offsets.v7.response import ListOffsetsResponse
    from kio.schema.types import BrokerId, TopicName
    from kio.static.primitive import i8, i32, i64

    request = ListOffsetsRequest(
        replica_id=BrokerId(-1),
        isolation_level=i8(isolation),
        topics=tuple(
            ListOffsetsTopic(
                name=TopicName(topic),
                partitions=tuple(
                    ListOffsetsPartition(partition_index=i32(number), timestamp=i64(LATEST))
                    for number in numbers
                ),
            )
            for topic, numbers in by_topic(partitions).items()
        ),
    )
    answer = await conn.send(request, ListOffsetsResponse)
    return {
        TopicPartition(str(topic.name), row.partition_index): unknown(
            row.error_code, "ListOffsets", on_topic("DESCRIBE", str(topic.name))
        )
        if row.error_code
        else row.offset
        for topic in answer.topics
        for row in topic.partitions
    }


async def list_transactions(conn: BrokerConnection, producers: Sequence[int]) -> list[str]:
    """The transactional ids of these producers that this broker coordinates; without those that the caller may not
    describe. Raises BrokerError, NotOffered, and BackendError while the coordinator loads its transactions.
    """
    from kio.schema.list_transactions.v0.request import ListTransactionsRequest
    from kio.schema.list_transactions.v0.response import ListTransactionsResponse
    from kio.schema.types import ProducerId

    request = ListTransactionsRequest(producer_id_filters=tuple(map(ProducerId, producers)))
    answer = await conn.send(request, ListTransactionsResponse)
    check(answer.error_code, f"{conn.where}: ListTransactions", on_transactional_id("DESCRIBE", "*"))
    return [str(state.transactional_id) for state in answer.transaction_states]


async def describe_transactions(
    conn: BrokerConnection, ids: Sequence[str]
) -> dict[str, CoordinatedTransaction | Unknown]:
    """By transactional id. Raises BrokerError, NotOffered."""
    from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
    from kio.schema.types import TransactionalId

    conn.require(Api.DescribeTransactions)
    request = DescribeTransactionsRequest(transactional_ids=tuple(map(TransactionalId, ids)))
    raw = await conn.raw(request)
    answer = conn.columns(raw, described_transactions)
    if answer is None:
        raise BackendError(f"{conn.where}: the answer to DescribeTransactions is not understood")
    return dict(answer.transactions)


async def may_describe_transactional_id(conn: BrokerConnection, name: str) -> bool:
    """Whether the caller has DESCRIBE on it: a broker says so before it looks who coordinates the id, or whether it
    exists. Raises BrokerError, NotOffered, BackendError.
    """
    answer = (await describe_transactions(conn, (name,))).get(name)
    return not (isinstance(answer, Unknown) and answer.why is Why.NOT_ALLOWED)


class DescribedTransactions(NamedTuple):
    """A coordinator's answer: each transactional id with what is known of it."""

    throttle_ms: int
    transactions: tuple[tuple[str, CoordinatedTransaction | Unknown], ...]


def described_transactions(data: bytes, offset: int) -> DescribedTransactions:
    """The answer that begins at ``offset``. Not by kio's decoder: it refuses the start time -1 of an id without a
    transaction.

    Raises NeedsFullDecoder.
    """
    fields = FieldReader(data, offset)
    try:
        throttle_ms = fields.int32()
        transactions = fields.array(lambda: _coordinated(fields))
        fields.skip_tags()
    except MalformedRecordError:
        raise NeedsFullDecoder from None
    return DescribedTransactions(throttle_ms, transactions)


def _coordinated(fields: FieldReader) -> tuple[str, CoordinatedTransaction | Unknown]:
    code, name, state = fields.int16(), fields.string(), fields.string()
    fields.int32()  # its timeout
    start_ms, producer, epoch = fields.int64(), fields.int64(), fields.int16()

    def topic() -> tuple[TopicPartition, ...]:
        topic_name, numbers = fields.string(), fields.int32s()
        fields.skip_tags()
        return tuple(TopicPartition(topic_name, number) for number in numbers)

    topics = fields.array(topic)
    fields.skip_tags()
    if code:
        from backends.live.codec.unknown_error_codes import error_code

        need = on_transactional_id("DESCRIBE", name)
        return name, unknown(error_code(code), "DescribeTransactions", need)
    try:
        known = TransactionState(state)
    except ValueError:
        return name, Unknown(Why.FAILED, f"DescribeTransactions answered state {one_line(state)}")
    partitions = frozenset(tp for tps in topics for tp in tps)
    return name, CoordinatedTransaction(name, known, producer, epoch, start_ms, partitions)


async def write_markers(conn: BrokerConnection, markers: Sequence[Marker]) -> Mapping[Marker, str | None]:
    """WriteTxnMarkers v1, as a coordinator sends it. Raises BrokerError (``sent``: it may have been done)."""
    from kio.schema.types import ProducerId, TopicName
    from kio.schema.write_txn_markers.v1.request import (
        WritableTxnMarker,
        WritableTxnMarkerTopic,
        WriteTxnMarkersRequest,
    )
    from kio.schema.write_txn_markers.v1.response import WriteTxnMarkersResponse
    from kio.static.primitive import i16, i32

    request = WriteTxnMarkersRequest(
        markers=tuple(
            WritableTxnMarker(
                producer_id=ProducerId(marker.producer_id),
                producer_epoch=i16(marker.epoch),
                transaction_result=marker.commit,
                topics=(
                    WritableTxnMarkerTopic(
                        name=TopicName(marker.tp.topic), partition_indexes=(i32(marker.tp.partition),)
                    ),
                ),
                coordinator_epoch=i32(marker.coordinator_epoch),
            )
            for marker in markers
        )
    )
    answer = await conn.send(request, WriteTxnMarkersResponse)
    ended: dict[tuple[int, TopicPartition], str | None] = {}
    for result in answer.markers:
        for topic in result.topics:
            for row in topic.partitions:
                tp = TopicPartition(str(topic.name), row.partition_index)
                refused = unknown(row.error_code, "WriteTxnMarkers", on_cluster("ALTER"))
                ended[result.producer_id, tp] = str(refused) if row.error_code else None
    unreported = "the leader's answer leaves it out"
    return {marker: ended.get((marker.producer_id, marker.tp), unreported) for marker in markers}


def on_transactional_id(operation: str, name: str) -> Permission:
    """The permission for ``operation`` on a transactional id."""
    return Permission(operation, f"TransactionalId:{name}")
