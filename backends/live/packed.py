"""Requests of thousands of partitions, encoded straight to bytes.

kio's writer calls a function a field: 20 µs a partition and request, which was a third of a survey's own time.
Only those that a survey and a recovery send by the thousand are written here (formats: ListOffsetsRequest v7,
FetchRequest v12 and AlterPartitionReassignmentsRequest v0 and v1 of the Kafka protocol, and the recovery tool's
GetReplicaLogInfoRequest v0); a test holds every byte against kio's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from struct import Struct
from uuid import UUID

from kio.schema.fetch.v12.request import FetchRequest
from kio.schema.list_offsets.v7.request import ListOffsetsRequest
from kio.static.protocol import RequestPayload

from backends.live.ids import uuid_of
from backends.live.wire import Packed
from recovery.model import TopicPartition

CONSUMER = -1
_NO_EPOCH = -1
_NO_OFFSET = -1
_ONE_BYTE = 1
_NO_TAGS = b"\0"

_ZERO = UUID(int=0)
_topic = attrgetter("topic")


def pack_list_offsets(partitions: Iterable[TopicPartition], *, replica: int, timestamp: int) -> Packed:
    """ListOffsets v7, read uncommitted; ``partitions`` sorted by topic. Raises struct.error for a bad integer."""
    row = Struct(">iiqB").pack  # partition, current leader epoch, timestamp, tags
    topics = [
        _with_partitions(topic, [row(tp.partition, _NO_EPOCH, timestamp, 0) for tp in group])
        for topic, group in groupby(partitions, _topic)
    ]
    head = Struct(">ib").pack(replica, 0)
    return Packed(ListOffsetsRequest, b"".join((head, _array(topics), _NO_TAGS)))


def pack_fetch(questions: Mapping[TopicPartition, tuple[int, int]]) -> Packed:
    """Fetch v12 by an ordinary consumer, without a session and without waiting, for at most one byte.

    ``questions``, sorted by topic, map a partition to (fetch offset, last fetched epoch).
    """
    # Partition, current leader epoch, fetch offset, last fetched epoch, log start, most bytes, tags.
    row = Struct(">iiqiqiB").pack
    topics = [
        _with_partitions(
            topic,
            [row(tp.partition, _NO_EPOCH, *questions[tp], _NO_OFFSET, _ONE_BYTE, 0) for tp in group],
        )
        for topic, group in groupby(questions, _topic)
    ]
    # Replica, longest wait, least and most bytes, isolation, session id and epoch (-1: none).
    head = Struct(">iiiibii").pack(CONSUMER, 0, 0, _ONE_BYTE, 0, 0, -1)
    nothing_forgotten, no_rack = _array([]), _string("")
    return Packed(FetchRequest, b"".join((head, _array(topics), nothing_forgotten, no_rack, _NO_TAGS)))


def pack_assignments(
    request: type[RequestPayload], orders: Mapping[TopicPartition, Sequence[int]], *, timeout_ms: int
) -> Packed:
    """``request``: AlterPartitionReassignments v0, or v1, which allows no other replication factor then.

    ``orders`` sorted by topic. Raises struct.error for a bad integer.
    """
    index = Struct(">i").pack
    topics = [
        _with_partitions(
            topic,
            [
                b"".join((index(tp.partition), _array([index(broker) for broker in orders[tp]]), _NO_TAGS))
                for tp in group
            ],
        )
        for topic, group in groupby(orders, _topic)
    ]
    same_factor = b"\0" if request.__version__ else b""
    return Packed(request, b"".join((index(timeout_ms), same_factor, _array(topics), _NO_TAGS)))


def pack_log_info(partitions: Iterable[TopicPartition], ids: Mapping[TopicPartition, str]) -> Packed:
    """GetReplicaLogInfo v0; ``ids`` map each partition to its topic's id. Raises struct.error for a bad integer."""
    from backends.live.native import GetReplicaLogInfoRequest  # only where a broker offers it

    topics: dict[str, list[int]] = {}
    for tp in partitions:
        topics.setdefault(ids[tp], []).append(tp.partition)
    rows = []
    for topic, numbers in topics.items():
        packed = Struct(f">{len(numbers)}i").pack(*numbers)
        rows.append(b"".join(((uuid_of(topic) or _ZERO).bytes, _varint(len(numbers) + 1), packed, _NO_TAGS)))
    return Packed(GetReplicaLogInfoRequest, _array(rows) + _NO_TAGS)


def _with_partitions(topic: str, rows: list[bytes]) -> bytes:
    return b"".join((_string(topic), _array(rows), _NO_TAGS))


def _array(items: list[bytes]) -> bytes:
    """A compact array: its length plus one, then the items."""
    return _varint(len(items) + 1) + b"".join(items)


def _string(text: str) -> bytes:
    """A compact string: its length in bytes plus one, then UTF-8."""
    data = text.encode()
    return _varint(len(data) + 1) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
