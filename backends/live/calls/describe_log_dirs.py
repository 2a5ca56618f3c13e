"""A broker's log dirs: DescribeLogDirs, which only that broker can answer (KIP-113, KIP-827).

A broker lists tens of thousands of replicas, and most callers only count them: they stay columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Any, NamedTuple, overload

from backends.base.answers import LogDir, LogDirReplica
from backends.live.calls.partition_errors import by_topic
from backends.live.codec.apis import Api
from backends.live.codec.column_reader import ColumnReader, Columns, NeedsFullDecoder, RowFormat
from backends.live.codec.message_fields import build, request_type, response_type
from backends.live.codec.names import numbers
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import check, on_cluster
from recovery.model import TopicPartition


class DirReplicas(Sequence[LogDirReplica]):
    """Each replica is created when it is read. Equal to any sequence of the same replicas.

    ``topics`` hold columns of partitions, sizes, offset lags, and which are future ones.
    """

    __slots__ = ("_size", "_topics")

    def __init__(self, topics: Sequence[tuple[str, Columns]]) -> None:
        self._topics = tuple((topic, columns) for topic, columns in topics if columns and columns[0])
        self._size = sum(len(columns[0]) for _, columns in self._topics)

    def topics(self) -> set[str]:
        """The names of the topics that have a replica here."""
        return {topic for topic, _ in self._topics}

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[LogDirReplica]:
        return chain.from_iterable(_made(topic, columns) for topic, columns in self._topics)

    @overload
    def __getitem__(self, at: int) -> LogDirReplica: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[LogDirReplica, ...]: ...

    def __getitem__(self, at: int | slice) -> LogDirReplica | tuple[LogDirReplica, ...]:
        return tuple(self)[at]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"<{self._size:,} replicas>"


def _made(topic: str, columns: Columns) -> Iterator[LogDirReplica]:
    partitions, sizes, lags, future = columns
    moving: Iterable[bool] = map(bool, future) if any(future) else repeat(False)
    rows: Iterable[Any] = zip(numbers(topic).all(partitions), sizes, lags, moving, strict=False)
    return map(tuple.__new__, repeat(LogDirReplica), rows)  # as LogDirReplica(...) does, quicker


_NOWHERE = ("", -1)
OneDir = tuple[str, Columns]
"""A log dir, and the columns of a topic's replicas in it, as :class:`DirReplicas` has them."""


class ReplicaSizes:
    """``topics`` maps a topic to the log dirs with replicas of it; future replicas do not count."""

    def __init__(self, topics: Mapping[str, Sequence[OneDir]]) -> None:
        self._topics = topics
        self._read: dict[str, Sequence[tuple[str, Mapping[int, int]]]] = {}

    def _dirs(self, topic: str) -> Sequence[tuple[str, Mapping[int, int]]]:
        """The topic's log dirs, each with the bytes of its partitions."""
        dirs = self._read.get(topic)
        if dirs is None:
            found = self._topics.get(topic, ())
            dirs = self._read[topic] = [(path, _settled(columns)) for path, columns in found]
        return dirs

    def one(self, tp: TopicPartition) -> tuple[str, int]:
        """The log dir and the bytes; nowhere is ``("", -1)``."""
        for path, sizes in reversed(self._dirs(tp.topic)):
            if tp.partition in sizes:
                return path, sizes[tp.partition]
        return _NOWHERE

    def of(self, topic: str, partitions: Sequence[int]) -> tuple[Iterable[str], Iterable[int]]:
        """The same of several, the log dirs and the bytes apart."""
        dirs = self._dirs(topic)
        if len(dirs) == 1:
            ((path, sizes),) = dirs
            if len(sizes) >= len(partitions) and sizes.keys() >= set(partitions):
                return repeat(path, len(partitions)), map(sizes.__getitem__, partitions)
        found = [self.one(TopicPartition(topic, partition)) for partition in partitions]
        return [path for path, _ in found], [size for _, size in found]


def _settled(columns: Columns) -> dict[int, int]:
    partitions, sizes, _, future = columns
    if not any(future):
        return dict(zip(partitions, sizes, strict=True))
    return {
        number: size for number, size, moving in zip(partitions, sizes, future, strict=True) if not moving
    }


NO_SIZES = ReplicaSizes({})


_CALL = "DescribeLogDirs"
_NEED = on_cluster("DESCRIBE")
_CORDONED = 5
"""The version that tells it, one byte behind each log dir's space."""
# Partition, size, offset lag, whether it is a future one.
_ROW = RowFormat("iqqBx", 4, 22, ((20, b"\0\1"), (21, b"\0")))


class BrokerLogDirs(NamedTuple):
    """A broker's log dirs, and the sizes of their replicas by topic."""

    dirs: tuple[LogDir, ...]
    sizes: ReplicaSizes


class _LogDirRow(NamedTuple):
    """One log dir of the answer. ``topics`` hold partitions, sizes, offset lags, and which are future ones."""

    path: str
    error: str | None
    total_bytes: int
    usable_bytes: int
    topics: Sequence[tuple[str, Columns]]
    cordoned: bool | None = None


class _LogDirRows(NamedTuple):
    throttle_ms: int
    dirs: Sequence[_LogDirRow]


async def describe_log_dirs(
    conn: BrokerConnection,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    timeout: float | None = None,
) -> tuple[LogDir, ...]:
    """Every log dir of the broker behind ``conn``, with its replicas (of ``partitions``, or all).

    A failed dir has ``error`` (KAFKA_STORAGE_ERROR), bytes -1 and no replicas. Needs DESCRIBE on the cluster.
    Raises BrokerError, NotAllowed, NotOffered, BackendError.
    """
    return (await replicas_by_dir(conn, partitions, timeout=timeout)).dirs


async def replicas_by_dir(
    conn: BrokerConnection,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    timeout: float | None = None,
) -> BrokerLogDirs:
    """As :func:`describe_log_dirs`."""
    version = conn.require(Api.DescribeLogDirs)
    topics = None if partitions is None else by_topic(partitions)
    rows = topics and [{"topic": topic, "partitions": tuple(indexes)} for topic, indexes in topics.items()]
    request = build(request_type(Api.DescribeLogDirs, version), {"topics": rows})
    raw = await conn.raw(request, timeout=timeout, ahead=True)
    reported = conn.columns(raw, partial(read_log_dirs, version))
    response = response_type(Api.DescribeLogDirs, version)
    dirs = _decoded(conn.decoded(raw, response)) if reported is None else reported.dirs
    return _broker_log_dirs(-1 if conn.broker is None else conn.broker, dirs)


def read_log_dirs(version: int, data: bytes, at: int) -> _LogDirRows:
    """An answer of ``version`` (4, 5) with no errors and usual rows only. Raises NeedsFullDecoder."""
    reader = ColumnReader(data, at)
    throttle, error = reader.fields("ih")
    if error:
        raise NeedsFullDecoder
    dirs = [_dir(version, reader) for _ in range(reader.length())]
    reader.end()
    return _LogDirRows(throttle, dirs)


def _dir(version: int, reader: ColumnReader) -> _LogDirRow:
    (error,) = reader.fields("h")
    if error:
        raise NeedsFullDecoder
    path = reader.string()
    topics = []
    for _ in range(reader.length()):
        topics.append((reader.string(), reader.columns(_ROW, reader.length())))
        reader.no_tags()
    total, usable = reader.fields("qq")
    cordoned = reader.boolean() if version >= _CORDONED else None
    reader.no_tags()
    return _LogDirRow(path, None, total, usable, topics, cordoned)


def _decoded(answer: Any) -> Iterator[_LogDirRow]:
    """The rows of kio's DescribeLogDirsResponse, v4 or v5. Raises NotAllowed, BackendError."""
    check(answer.error_code, _CALL, _NEED)
    for result in answer.results:
        error = result.error_code.name.upper() if result.error_code else None
        topics = [(str(topic.name), _columns(topic.partitions)) for topic in result.topics]
        cordoned = getattr(result, "is_cordoned", None)
        yield _LogDirRow(result.log_dir, error, result.total_bytes, result.usable_bytes, topics, cordoned)


def _columns(rows: Any) -> Columns:
    return tuple(
        zip(
            *((p.partition_index, p.partition_size, p.offset_lag, p.is_future_key) for p in rows), strict=True
        )
    )


def _broker_log_dirs(broker: int, dirs: Iterable[_LogDirRow]) -> BrokerLogDirs:
    found = []
    topics: dict[str, list[OneDir]] = {}
    for one in dirs:
        replicas = DirReplicas(one.topics)
        space = one.total_bytes, one.usable_bytes
        found.append(LogDir(broker, one.path, one.error, *space, replicas, one.cordoned))
        for topic, columns in one.topics:
            if columns:
                topics.setdefault(topic, []).append((one.path, columns))
    return BrokerLogDirs(tuple(found), ReplicaSizes(topics))
