"""The replicas of a broker by log dir, as columns, and their sizes by topic.

A broker lists tens of thousands of replicas, and most callers only count them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, overload

from backends.base.answers import LogDirReplica
from backends.live.codec.column_reader import Columns
from backends.live.codec.names import numbers
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
