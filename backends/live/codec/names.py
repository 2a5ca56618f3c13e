"""Partition names, each stored once: every broker of a large cluster names the same partitions again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import repeat
from typing import Any

from recovery.model import TopicPartition

TOPICS = 4_096
"""Topics whose names are kept; more of them share less."""


class Numbers(dict[int, TopicPartition]):
    """A topic's partitions by their number, created at first use."""

    __slots__ = ("_topic",)

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def __missing__(self, number: int) -> TopicPartition:
        made = self[number] = TopicPartition(self._topic, number)
        return made

    def all(self, several: Iterable[int]) -> Iterator[TopicPartition]:
        """The names of several partitions, in their order."""
        new = set(several).difference(self)
        rows: Iterable[Any] = zip(repeat(self._topic), new)
        # As TopicPartition(...) does, without a Python call for each.
        self.update(zip(new, map(tuple.__new__, repeat(TopicPartition), rows), strict=False))
        return map(self.__getitem__, several)


@lru_cache(TOPICS)
def numbers(topic: str) -> Numbers:
    """The names of that topic's partitions."""
    return Numbers(topic)
