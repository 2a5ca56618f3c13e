"""Log ends by GetReplicaLogInfo where a broker offers it, by ListOffsets where not or where that does not work.

The native call returns the log end and the partition's leader epoch; the epoch of the last record still takes a
Fetch. A broker whose native answer does not follow the specification is asked by ListOffsets from then on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from backends.live.codec.aiokafka_requests import RawAnswer
from backends.live.codec.apis import Api
from backends.live.codec.log_columns import read_log_info
from backends.live.codec.names import numbers
from backends.live.codec.primitives import kafka_id
from backends.live.codec.request_encoder import pack_log_info, pack_log_info_of, topic_id_bytes
from backends.live.connections.connection import BrokerConnection
from backends.live.survey import log_queries
from backends.live.survey.log_queries import LogQueryError, ReplicaLogEnd
from backends.live.survey.topic_batch import LogEndColumns, TopicBatch, per_request
from recovery.model import TopicPartition, Unknown, Why

if TYPE_CHECKING:
    from backends.live.codec.recovery_tool_messages import GetReplicaLogInfoResponse

CALL = "GetReplicaLogInfo (native), epochs by Fetch"
AT_MOST = 1_000
"""Partitions in one request ("GetReplicaLogInfo RPC")."""

B = TypeVar("B")
T = TypeVar("T")

_CLUSTER_AUTHORIZATION_FAILED = 31
_UNKNOWN_TOPIC_ID = 100

Ends = dict[TopicPartition, ReplicaLogEnd | LogQueryError]


class LogEnds:
    """Asks brokers for log ends, and remembers who cannot be asked natively.

    ``behind`` are the brokers that knew less of their partitions than the last survey did, and did not catch up:
    the next survey does not wait for that again.
    """

    def __init__(self) -> None:
        self._emulated: set[int] = set()
        self.behind: set[int] = set()

    def native(self, connection: BrokerConnection) -> bool:
        """Whether that broker is asked by GetReplicaLogInfo."""
        offered = connection.highest(Api.GetReplicaLogInfo) is not None
        return offered and (connection.broker or 0) not in self._emulated

    def call(self, connection: BrokerConnection) -> str:
        """What stands behind that broker's answers."""
        return CALL if self.native(connection) else log_queries.CALL

    async def ask(
        self, connection: BrokerConnection, topics: Mapping[TopicPartition, str], timeout: float
    ) -> Ends:
        """The log end of each partition's replica on this broker. Raises BrokerError.

        ``topics`` maps each partition to its topic's id, sorted by topic.
        """
        if not self.native(connection):
            return await log_queries.log_ends(connection, topics, timeout)
        partitions = list(topics)
        batches = (partitions[first : first + AT_MOST] for first in range(0, len(partitions), AT_MOST))
        reported = await self._natively(
            connection, batches, lambda batch: _native(connection, batch, topics, timeout)
        )
        if reported is None:
            return await log_queries.log_ends(connection, topics, timeout)
        return {tp: end for found in reported for tp, end in found.items()}

    async def ask_of(
        self, connection: BrokerConnection, batches: Sequence[TopicBatch], timeout: float
    ) -> Sequence[LogEndColumns | Mapping[TopicPartition, ReplicaLogEnd | LogQueryError]]:
        """The same for whole batches, each of another topic; row by row if the full decoder is needed."""
        if not self.native(connection):
            return await log_queries.log_ends_of(connection, batches, timeout)
        requests = per_request(batches, AT_MOST)
        reported = await self._natively(
            connection, requests, lambda several: _native_of(connection, several, timeout)
        )
        if reported is None:
            return await log_queries.log_ends_of(connection, batches, timeout)
        return [ends for found in reported for ends in found]

    async def _natively(
        self, connection: BrokerConnection, batches: Iterable[B], ask: Callable[[B], Awaitable[T | None]]
    ) -> list[T] | None:
        """Every batch's answer; None where one of them was not to be had so."""
        broker = connection.broker or 0
        self._emulated.add(broker)  # a broker that hangs up over it is asked otherwise next time
        reported = await asyncio.gather(*(ask(batch) for batch in batches))
        known = [found for found in reported if found is not None]
        if len(known) < len(reported):
            return None
        self._emulated.discard(broker)
        return known


async def _native_of(
    connection: BrokerConnection, batches: Sequence[TopicBatch], timeout: float
) -> Sequence[LogEndColumns | Mapping[TopicPartition, ReplicaLogEnd | LogQueryError]] | None:
    asked = [(topic_id_bytes(batch.topic_id), batch.numbers) for batch in batches]
    raw = await connection.raw(pack_log_info_of(asked), timeout=timeout, ahead=True)
    reported = connection.columns(raw, partial(read_log_info, asked))
    if reported is not None and len(dict(asked)) == len(asked):
        return [LogEndColumns(offsets, epochs) for _, epochs, offsets in reported.topics]
    topics = {tp: batch.topic_id for batch in batches for tp in batch.tps()}
    found = await _native(connection, list(topics), topics, timeout, raw)
    return None if found is None else [found] * len(batches)


async def _native(
    connection: BrokerConnection,
    partitions: Sequence[TopicPartition],
    ids: Mapping[TopicPartition, str],
    timeout: float,
    raw: RawAnswer | None = None,
) -> Ends | None:
    """None where the answer is not the specification's, or the caller may not ask natively.

    ``raw`` is the answer about all of them where it is there already.
    """
    from backends.live.codec.recovery_tool_messages import GetReplicaLogInfoResponse

    names = {ids[tp]: tp.topic for tp in partitions}
    waiting = list(partitions)
    ends: Ends = {}
    while waiting:
        if raw is None:
            raw = await connection.raw(pack_log_info(waiting, ids), timeout=timeout, ahead=True)
        answer = connection.decoded_exactly(raw, GetReplicaLogInfoResponse)
        raw = None
        if answer is None:
            return None
        found = _read(answer, names)
        if found is None:
            return None
        ends.update(found)
        left = [tp for tp in waiting if tp not in found]
        if not answer.has_more_data or len(left) == len(waiting):
            break  # missing partitions show that the answer is incomplete
        waiting = left
    return ends


def _read(answer: GetReplicaLogInfoResponse, names: Mapping[str, str]) -> Ends | None:
    ends: Ends = {}
    for topic in answer.topic_partition_log_info_list:
        name = names.get(kafka_id(topic.topic_id))
        if name is None:
            continue  # nobody asked for it
        named = numbers(name)
        for row in topic.partition_log_info:
            tp = named[row.partition]
            if not row.error_code:
                ends[tp] = ReplicaLogEnd(row.partition_leader_epoch, row.log_end_offset)
            elif row.error_code == _CLUSTER_AUTHORIZATION_FAILED:
                return None  # ListOffsets needs DESCRIBE on the topic only
            elif row.error_code == _UNKNOWN_TOPIC_ID:
                ends[tp] = LogQueryError(
                    Unknown(Why.FAILED, "the broker has no such replica"), retryable=True
                )
            else:
                ends[tp] = log_queries.log_query_error(row.error_code, tp, "DESCRIBE")
    return ends
