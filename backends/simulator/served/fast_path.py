"""ListOffsets v7 and Fetch v12 of a survey, from bytes to bytes: the general handlers are too slow for
thousands.

Reads only the form in which a survey asks for log ends and epochs. Any other request returns None and takes the
general handler; a test compares the answers of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from backends.live.codec.apis import Api
from backends.live.codec.primitives import NO_TAGS, compact_string
from backends.simulator.broker.broker_access import BrokerAccess
from backends.simulator.partition_table import topics_of
from backends.simulator.served.hosted_replica import HostedReplica, end_of, find
from backends.simulator.served.response_encoding import topic_array
from backends.simulator.served.served_call import ServedCall
from recovery.model import TopicPartition

CONSUMER, DEBUGGING, LATEST = -1, -2, -1
_NO_EPOCH = -1


class FastPathMiss(Exception):
    """The request is not in the form of a survey. Use the general handler."""


class _Topic(NamedTuple):
    name: str
    rows: list[tuple[int, ...]]


class _Bytes:
    """Reads the bytes of a request from front to back."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def take(self, shape: Struct) -> tuple[int, ...]:
        found = shape.unpack_from(self._data, self._at)
        self._at += shape.size
        return found

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise FastPathMiss

    def string(self) -> str:
        size = self.varint() - 1
        if size < 0:
            raise FastPathMiss
        text = bytes(self._data[self._at : self._at + size]).decode()
        self._at += size
        return text

    def rows(self, shape: Struct) -> list[tuple[int, ...]]:
        """An array of fixed-size entries without tags (the last field)."""
        count = self.varint() - 1
        end = self._at + count * shape.size
        if count < 0 or end > len(self._data):
            raise FastPathMiss
        found = list(shape.iter_unpack(self._data[self._at : end]))
        self._at = end
        if any(row[-1] for row in found):
            raise FastPathMiss
        return found

    def topics(self, shape: Struct) -> list[_Topic]:
        found = []
        for _ in range(self.varint() - 1):
            found.append(_Topic(self.string(), self.rows(shape)))
            self.end_of_struct()
        return found

    def end_of_struct(self) -> None:
        if self.varint():
            raise FastPathMiss

    def finish(self) -> None:
        if self._at != len(self._data):
            raise FastPathMiss


class HostedReplicas:
    """The replicas on one broker, during one request."""

    def __init__(self, broker: BrokerAccess) -> None:
        self._broker = broker
        self._partitions = broker.state.image.partitions
        self._rows = topics_of(broker.state.image)
        self._logs = broker.storage.disk.logs
        self._plain = not broker.storage.failed and not broker.storage.failed_partitions
        self._plain = self._plain and not broker.storage.disk.bad
        self._plain = self._plain and not any(log_dir.broken for log_dir in broker.storage.disk.directories)

    def of(self, topic: str, numbers: Sequence[int]) -> list[HostedReplica | ErrorCode]:
        """As :meth:`find`, for several partitions of one topic."""
        row = self._rows.get(topic) if self._plain else None
        if row is None:
            return [self.find(TopicPartition(topic, number)) for number in numbers]
        me, size, logs = self._broker.state.id, len(row), self._logs
        found: list[HostedReplica | ErrorCode] = []
        for number in numbers:
            # A plain tuple equals the key, and is created faster.
            log = logs.get((topic, number))  # type: ignore[call-overload]
            partition = row[number] if 0 <= number < size else None
            if log is not None and partition is not None and me in partition.replicas:
                found.append(HostedReplica(log, partition, partition.leader == me))
            else:
                found.append(find(self._broker, TopicPartition(topic, number)))
        return found

    def find(self, tp: TopicPartition) -> HostedReplica | ErrorCode:
        """As :func:`backends.simulator.served.hosted_replica.find`."""
        if self._plain:
            log = self._logs.get(tp)
            partition = self._partitions.get(tp)
            if log is not None and partition is not None and self._broker.state.id in partition.replicas:
                return HostedReplica(log, partition, partition.leader == self._broker.state.id)
        return find(self._broker, tp)


_HEAD = Struct(">ib")
_ASKED_END = Struct(">iiqB")
_END = Struct(">hqqiB").pack
_INT = Struct(">i").pack


async def list_offsets(call: ServedCall, body: memoryview) -> bytes | None:
    """ListOffsets v7 of the debugging replica for log ends."""
    try:
        data = _Bytes(body)
        replica, _ = data.take(_HEAD)
        topics = data.topics(_ASKED_END)
        data.end_of_struct()
        data.finish()
    except (FastPathMiss, StructError, IndexError, UnicodeDecodeError):
        return None
    if replica != DEBUGGING or any(row[1] != _NO_EPOCH or row[2] != LATEST for t in topics for row in t.rows):
        return None

    def read(broker: BrokerAccess) -> bytes:
        replicas = HostedReplicas(broker)
        reported: dict[object, bytes] = {}
        answers = []
        for topic in topics:
            if not call.rights.topic("DESCRIBE", topic.name):
                refused = _END(ErrorCode.topic_authorization_failed.value, -1, -1, -1, 0)
                answers.append((compact_string(topic.name), [_INT(row[0]) + refused for row in topic.rows]))
                continue
            rows = []
            for row, found in zip(
                topic.rows, replicas.of(topic.name, [row[0] for row in topic.rows]), strict=True
            ):
                if isinstance(found, ErrorCode):
                    rows.append(_INT(row[0]) + _END(found.value, -1, -1, -1, 0))
                    continue
                key = (found.log.end, found.partition.leader_epoch)
                known = reported.get(key)
                if known is None:
                    known = reported[key] = _END(0, -1, *key, 0)
                rows.append(_INT(row[0]) + known)
            answers.append((compact_string(topic.name), rows))
        return b"".join((bytes(4), topic_array(answers), NO_TAGS))

    return await call.read_broker(read)


_FETCH_HEAD = Struct(">iiiibii")
_POSITION = Struct(">iiqiqiB")
_FETCHED = Struct(">hqqqBi").pack
_DIVERGING = Struct(">BBBiqB").pack


async def fetch(call: ServedCall, body: memoryview) -> bytes | None:
    """The answer to a Fetch v12 of a consumer that asks a broker where an epoch ends, without waiting. None: it is
    another request, and the full decoder has to read it.
    """
    if not call.at_broker:
        return None
    try:
        data = _Bytes(body)
        replica, wait, least, *_ = data.take(_FETCH_HEAD)
        topics = data.topics(_POSITION)
        forgotten = data.varint()
        data.string()
        data.end_of_struct()
        data.finish()
    except (FastPathMiss, StructError, IndexError, UnicodeDecodeError):
        return None
    if replica != CONSUMER or wait or least or forgotten != 1:
        return None
    if any(row[1] != _NO_EPOCH or row[3] < 0 for topic in topics for row in topic.rows):
        return None
    return await call.read_broker(lambda broker: _lineages(call, broker, topics))


def _lineages(call: ServedCall, broker: BrokerAccess, topics: list[_Topic]) -> bytes | None:
    replicas = HostedReplicas(broker)
    reported: dict[object, bytes | None] = {}
    answers = []
    for topic in topics:
        numbers = [row[0] for row in topic.rows]
        rows = []
        if not call.rights.topic("READ", topic.name):
            refused = _failed(ErrorCode.topic_authorization_failed)
            answers.append((compact_string(topic.name), [_INT(number) + refused for number in numbers]))
            continue
        for (number, _, offset, epoch, _, _, _), found in zip(
            topic.rows, replicas.of(topic.name, numbers), strict=True
        ):
            if isinstance(found, ErrorCode):
                rows.append(_INT(number) + _failed(found))
                continue
            log, partition, leads = found
            # In a loaded cluster equal logs are one object; all of them outlive this call, so ids are safe keys.
            key = (id(log), offset, epoch, leads and partition.leader_epoch)
            known = reported.get(key)
            if known is None:
                known = reported[key] = _lineage(found, offset, epoch)
            if known is None:
                return None
            rows.append(_INT(number) + known)
        answers.append((compact_string(topic.name), rows))
    return b"".join((bytes(4), b"\0\0", bytes(4), topic_array(answers), NO_TAGS))


def _failed(error: ErrorCode) -> bytes:
    return _FETCHED(error.value, -1, -1, -1, 0, -1) + b"\1" + NO_TAGS


def _lineage(replica: HostedReplica, offset: int, last_epoch: int) -> bytes | None:
    """None if there are records to send."""
    log = replica.log
    if not log.start <= offset <= log.end:
        return _failed(ErrorCode.offset_out_of_range)
    epoch, end = end_of(replica, last_epoch)
    if end < 0:
        return _failed(ErrorCode.offset_out_of_range)
    fixed = _FETCHED(0, log.high_watermark, log.high_watermark, log.start, 0, -1) + b"\1"
    if epoch < last_epoch or end < offset:
        return fixed + _DIVERGING(1, 0, 13, epoch, end, 0)
    return None if offset < log.high_watermark else fixed + NO_TAGS


FAST_PATHS = {(Api.ListOffsets, 7): list_offsets, (Api.Fetch, 12): fetch}
"""By api key and version."""
