"""Appending record batches as they are: InitProducerId, Produce and CreateTopics."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from kio.schema.create_topics.v5.request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kio.schema.create_topics.v5.response import CreateTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.init_producer_id.v4.request import InitProducerIdRequest
from kio.schema.init_producer_id.v4.response import InitProducerIdResponse
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v9.response import PartitionProduceResponse, ProduceResponse
from kio.schema.types import TopicName
from kio.static.primitive import Records, i16, i32, i32Timedelta

from backends.base.errors import BackendError, NotAllowed
from backends.base.record_writer import AppendResult, BatchToAppend, ProducerIdentity
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import one_line
from backends.live.nodes.brokers import BrokerFleet
from recovery.model import TopicPartition
from recovery.wording.quantity_text import counted

ATTEMPTS, PAUSE = 40, 0.25
"""How often an identity is asked for, and the seconds in between."""
_ALL = i16(-1)
_APPEND_TIMEOUT = timedelta(seconds=20)
_NOT_ALLOWED = (ErrorCode.topic_authorization_failed, ErrorCode.cluster_authorization_failed)


class LiveRecordWriter:
    """Implements :class:`backends.base.record_writer.RecordWriter`."""

    def __init__(self, fleet: BrokerFleet) -> None:
        self._fleet = fleet

    async def new_identity(self) -> ProducerIdentity:
        return (await self._fleet.any(_init_producer_id)).value

    async def append(
        self, broker: int, batches: Sequence[BatchToAppend]
    ) -> Mapping[TopicPartition, AppendResult]:
        by_topic: dict[str, list[PartitionProduceData]] = {}
        for tp, data in batches:
            row = PartitionProduceData(index=i32(tp.partition), records=Records(data))
            by_topic.setdefault(tp.topic, []).append(row)
        request = ProduceRequest(
            transactional_id=None,
            acks=_ALL,
            timeout=i32Timedelta.parse(_APPEND_TIMEOUT),
            topic_data=tuple(
                TopicProduceData(name=TopicName(topic), partition_data=tuple(rows))
                for topic, rows in by_topic.items()
            ),
        )
        conn = await self._fleet.bulk_connection(broker)
        answer = await conn.send(request, ProduceResponse)
        return {
            TopicPartition(str(topic.name), row.index): _result(row)
            for topic in answer.responses
            for row in topic.partition_responses
        }

    async def create_topic(
        self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        wanted = CreatableTopic(
            name=TopicName(topic),
            num_partitions=i32(partitions),
            replication_factor=i16(replicas),
            assignments=(),
            configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in configs.items()),
        )
        request = CreateTopicsRequest(topics=(wanted,), timeout=i32Timedelta.parse(_APPEND_TIMEOUT))

        async def create(conn: BrokerConnection) -> None:
            (made,) = (await conn.send(request, CreateTopicsResponse)).topics
            if made.error_code in _NOT_ALLOWED:
                raise NotAllowed("CREATE", f"topic {topic}", "create it")
            if made.error_code is not ErrorCode.none:
                why = one_line(made.error_message or "")
                raise BackendError(f"topic {topic} was not created: {made.error_code.name.upper()} {why}")

        await self._fleet.any(create, again=False)


async def _init_producer_id(conn: BrokerConnection) -> ProducerIdentity:
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout=i32Timedelta.parse(timedelta(minutes=1))
    )
    for left in reversed(range(ATTEMPTS)):
        answer = await conn.send(request, InitProducerIdResponse)
        # A broker asks the controller for a block of ids first, and answers with a retriable error until then.
        if not (answer.error_code.retriable and left):
            break
        await asyncio.sleep(PAUSE)
    if answer.error_code in _NOT_ALLOWED:
        raise NotAllowed("IDEMPOTENT_WRITE", "the cluster", "write records")
    if answer.error_code is not ErrorCode.none:
        raise BackendError(f"{conn.where}: InitProducerId answered {answer.error_code.name.upper()}")
    return ProducerIdentity(answer.producer_id, answer.producer_epoch)


def _result(row: PartitionProduceResponse) -> AppendResult:
    code = row.error_code
    if code is ErrorCode.none:
        return AppendResult(row.base_offset)
    if code in _NOT_ALLOWED:
        return AppendResult(-1, "needs WRITE on the topic")
    said = [row.error_message, *(_refused_record(row) if row.record_errors else ())]
    detail = "; ".join(one_line(text) for text in dict.fromkeys(said) if text)
    return AppendResult(-1, " ".join(filter(None, (code.name.upper(), detail))), code.retriable)


def _refused_record(row: PartitionProduceResponse) -> Iterator[str]:
    """Which record of the batch the broker refuses first, and why: the rest of the batch may be in order."""
    first, *others = row.record_errors
    more = f", and {counted(len(others), 'more record')}" if others else ""
    why = first.batch_index_error_message or "without a reason"
    yield f"record {first.batch_index} of the batch{more}: {why}"
