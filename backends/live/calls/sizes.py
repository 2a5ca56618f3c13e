"""Where one broker holds its replicas, and how large they are, by topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat

from recovery.model import TopicPartition

_NOWHERE = ("", -1)
OneDir = tuple[str, Mapping[int, int]]
"""A log dir, and the bytes of each partition in it."""


class Sizes:
    """``topics`` maps a topic to the log dirs that hold replicas of it, which are not being moved there."""

    def __init__(self, topics: Mapping[str, Sequence[OneDir]]) -> None:
        self._topics = topics

    def one(self, tp: TopicPartition) -> tuple[str, int]:
        """The log dir and the bytes; nowhere is ``("", -1)``."""
        for path, sizes in reversed(self._topics.get(tp.topic, ())):
            if tp.partition in sizes:
                return path, sizes[tp.partition]
        return _NOWHERE

    def of(self, topic: str, partitions: Sequence[int]) -> tuple[Iterable[str], Iterable[int]]:
        """The same of several, the log dirs and the bytes apart."""
        dirs = self._topics.get(topic, ())
        if len(dirs) == 1:
            ((path, sizes),) = dirs
            if len(sizes) >= len(partitions) and sizes.keys() >= set(partitions):
                return repeat(path, len(partitions)), map(sizes.__getitem__, partitions)
        found = [self.one(TopicPartition(topic, partition)) for partition in partitions]
        return [path for path, _ in found], [size for _, size in found]


NO_SIZES = Sizes({})
