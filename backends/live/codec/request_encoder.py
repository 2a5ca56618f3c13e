"""Encodes requests with thousands of partitions directly to bytes.

kio's writer calls a function per field: 20 µs per partition, which was a third of a survey's own time. Only the
requests that a survey or a recovery sends for thousands of partitions are here: ListOffsetsRequest v7, FetchRequest
v12, AlterPartitionReassignmentsRequest v0 and v1 (Kafka protocol), and GetReplicaLogInfoRequest v0 (recovery tool).
A test compares every byte with kio's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby, repeat
from operator import attrgetter
from struct import Struct
from typing import cast
from uuid import UUID

from kio.schema.fetch.v12.request import FetchRequest
from kio.schema.list_offsets.v7.request import ListOffsetsRequest
from kio.static.protocol import RequestPayload

from backends.live.codec.aiokafka_requests import Packed
from backends.live.codec.names import TOPICS
from backends.live.codec.primitives import NO_TAGS, compact_array, compact_string, unsigned_varint, uuid_of
from recovery.model import TopicPartition

CONSUMER = -1
_NO_EPOCH = -1
_NO_OFFSET = -1
_ONE_BYTE = 1
_NULL_ARRAY = b"\0"
"""Of the compact kind."""

_ZERO = UUID(int=0)
_topic = attrgetter("topic")


def pack_list_offsets(partitions: Iterable[TopicPartition], *, replica: int, timestamp: int) -> Packed:
    """ListOffsets v7, read uncommitted; ``partitions`` sorted by topic. Raises struct.error for a bad integer."""
    named = [(topic, [tp.partition for tp in group]) for topic, group in groupby(partitions, _topic)]
    return pack_list_offsets_of(named, replica=replica, timestamp=timestamp)


def pack_list_offsets_of(
    named: Iterable[tuple[str, Sequence[int]]], *, replica: int, timestamp: int
) -> Packed:
    """The same, of topics with their partitions."""
    row = Struct(">iiqB").pack  # partition, current leader epoch, timestamp, tags
    topics = [
        _with_partitions(topic, list(map(row, numbers, repeat(_NO_EPOCH), repeat(timestamp), repeat(0))))
        for topic, numbers in named
    ]
    head = Struct(">ib").pack(replica, 0)
    return Packed(ListOffsetsRequest, b"".join((head, compact_array(topics), NO_TAGS)))


def pack_fetch(questions: Mapping[TopicPartition, tuple[int, int]]) -> Packed:
    """Fetch v12 as an ordinary consumer, without a session and without waiting, for at most one byte.

    ``questions``, sorted by topic, map a partition to (fetch offset, last fetched epoch).
    """
    named = []
    for topic, group in groupby(questions.items(), lambda question: question[0].topic):
        rows = list(group)
        columns = zip(*((tp.partition, *asked) for tp, asked in rows), strict=True)
        named.append((topic, *columns))
    return pack_fetch_of(cast("list[Question]", named))


Question = tuple[str, Sequence[int], Sequence[int], Sequence[int]]
"""A topic; of each partition its number, the fetch offset and the last fetched epoch."""


def pack_fetch_of(questions: Iterable[Question]) -> Packed:
    """The same, of topics with their partitions."""
    # Partition, current leader epoch, fetch offset, last fetched epoch, log start, most bytes, tags.
    row = partial(map, Struct(">iiqiqiB").pack)
    tail = repeat(_NO_OFFSET), repeat(_ONE_BYTE), repeat(0)
    topics = [
        _with_partitions(topic, list(row(numbers, repeat(_NO_EPOCH), offsets, epochs, *tail)))
        for topic, numbers, offsets, epochs in questions
    ]
    # Replica, longest wait, least and most bytes, isolation, session id and epoch (-1: none).
    head = Struct(">iiiibii").pack(CONSUMER, 0, 0, _ONE_BYTE, 0, 0, -1)
    nothing_forgotten, no_rack = compact_array([]), compact_string("")
    return Packed(FetchRequest, b"".join((head, compact_array(topics), nothing_forgotten, no_rack, NO_TAGS)))


def pack_assignments(
    request: type[RequestPayload],
    orders: Mapping[TopicPartition, Sequence[int] | None],
    *,
    timeout_ms: int,
    other_factor: bool = False,
) -> Packed:
    """``request``: AlterPartitionReassignments v0, or v1, which allows another replication factor with
    ``other_factor`` only.

    ``orders`` sorted by topic; None cancels a reassignment. Raises struct.error for a bad integer.
    """
    index = Struct(">i").pack

    def assignment(brokers: Sequence[int] | None) -> bytes:
        return _NULL_ARRAY if brokers is None else compact_array([index(broker) for broker in brokers])

    topics = [
        _with_partitions(
            topic, [b"".join((index(tp.partition), assignment(orders[tp]), NO_TAGS)) for tp in group]
        )
        for topic, group in groupby(orders, _topic)
    ]
    allowed = bytes((other_factor,)) if request.__version__ else b""
    return Packed(request, b"".join((index(timeout_ms), allowed, compact_array(topics), NO_TAGS)))


def pack_log_info(partitions: Iterable[TopicPartition], ids: Mapping[TopicPartition, str]) -> Packed:
    """GetReplicaLogInfo v0; ``ids`` map each partition to its topic's id. Raises struct.error for a bad integer."""
    topics: dict[str, list[int]] = {}
    for tp in partitions:
        topics.setdefault(ids[tp], []).append(tp.partition)
    return pack_log_info_of((topic_id_bytes(topic), numbers) for topic, numbers in topics.items())


def pack_log_info_of(topics: Iterable[tuple[bytes, Sequence[int]]]) -> Packed:
    """The same, of topics by the bytes of their ids with their partitions."""
    from backends.live.codec.recovery_tool_messages import (
        GetReplicaLogInfoRequest,  # only where a broker offers it
    )

    rows = []
    for topic, numbers in topics:
        packed = Struct(f">{len(numbers)}i").pack(*numbers)
        rows.append(b"".join((topic, unsigned_varint(len(numbers) + 1), packed, NO_TAGS)))
    return Packed(GetReplicaLogInfoRequest, compact_array(rows) + NO_TAGS)


@lru_cache(TOPICS)
def topic_id_bytes(topic_id: str) -> bytes:
    """The 16 bytes of a topic's id; zeros where it has none."""
    return (uuid_of(topic_id) or _ZERO).bytes


def _with_partitions(topic: str, rows: list[bytes]) -> bytes:
    return b"".join((compact_string(topic), compact_array(rows), NO_TAGS))
