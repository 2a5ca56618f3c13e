"""The partitions of a cluster, as a mapping that shares unchanged parts.

Each topic is one tuple of registrations, so a changed partition costs a copy of its topic's tuple. Equal
registrations are one object (:class:`Interner`).
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Hashable, ItemsView, Iterator, Mapping
from functools import cache
from itertools import chain
from typing import Any, TypeVar

from recovery.controller.cluster_image import ClusterImage, SharingTable
from recovery.controller.registration import Registration
from recovery.model import TopicPartition

_T = TypeVar("_T", bound=Hashable)


class Interner:
    """Returns the one shared object that equals a value."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Hashable] = {}

    def __call__(self, value: _T) -> _T:
        return self._known.setdefault(value, value)  # type: ignore[return-value]  # it equals value, and is of its type


class PartitionTable(SharingTable):
    """A frozen mapping. The partitions of a topic are numbered from 0 without gaps, as in Kafka. ``cluster``
    makes its topic ids those of one cluster.
    """

    __slots__ = ("_counted", "_deleted", "_keys", "_names", "_size", "_topics", "cluster")

    def __init__(
        self,
        topics: Mapping[str, tuple[Registration, ...]],
        keys: Mapping[str, tuple[TopicPartition, ...]] | None = None,
        size: int = -1,
        deleted: Mapping[str, int] | None = None,
        names: Mapping[str, str] | None = None,
        *,
        cluster: str = "",
    ) -> None:
        self.cluster = cluster
        self._topics = topics
        self._counted: tuple[tuple[Registration, int], ...] | None = None
        self._deleted = deleted or {}
        self._names = names
        self._keys = keys if keys is not None else _keys_of(topics)
        self._size = size if size >= 0 else sum(map(len, topics.values()))

    @property
    def topics(self) -> Mapping[str, tuple[Registration, ...]]:
        return self._topics

    def counted(self) -> tuple[tuple[Registration, int], ...]:
        """Each distinct registration and its number of partitions, in the order of first occurrence."""
        if self._counted is None:
            everything = list(chain.from_iterable(self._topics.values()))
            # By identity: equal ones are mostly one object, and hashing 200,000 would double the time.
            objects = {id(registration): registration for registration in everything}
            counts = Counter(map(id, everything))
            self._counted = tuple((objects[key], count) for key, count in counts.items())
        return self._counted

    def generation(self, topic: str) -> int:
        """How often a topic of that name was deleted; the next one gets another id."""
        return self._deleted.get(topic, 0)

    def id_of(self, topic: str) -> str:
        """The id of the topic that has that name now, or comes next."""
        return topic_id(topic, self.generation(topic), self.cluster)

    def names_by_id(self) -> Mapping[str, str]:
        """Every topic's name by its id; computed on first use."""
        if self._names is None:
            self._names = {self.id_of(name): name for name in self._topics}
        return self._names

    def keys_of(self, topic: str) -> tuple[TopicPartition, ...]:
        """The topic's partitions in order; none if it does not exist."""
        return self._keys[topic] if topic in self._topics else ()

    def __getitem__(self, tp: TopicPartition) -> Registration:
        row = self._topics.get(tp.topic)
        if row is None or not 0 <= tp.partition < len(row):
            raise KeyError(tp)
        return row[tp.partition]

    def get(self, tp: TopicPartition, default: Any = None) -> Any:
        """As for any mapping; the inherited method is slower because it raises and catches KeyError."""
        row = self._topics.get(tp[0])
        return row[tp[1]] if row is not None and 0 <= tp[1] < len(row) else default

    def __contains__(self, tp: object) -> bool:
        return isinstance(tp, tuple) and 0 <= tp[1] < len(self._topics.get(tp[0], ()))

    def __iter__(self) -> Iterator[TopicPartition]:
        for topic in self._topics:
            yield from self._keys[topic]

    def __len__(self) -> int:
        return self._size

    def items(self) -> ItemsView[TopicPartition, Registration]:
        return _Items(self)

    def pairs(self) -> Iterator[tuple[TopicPartition, Registration]]:
        for topic, row in self._topics.items():
            yield from zip(self._keys[topic], row, strict=True)

    def updated(self, changes: Mapping[TopicPartition, Registration]) -> PartitionTable:
        """The table with ``changes`` to existing partitions."""
        rows: dict[str, list[Registration]] = {}
        for tp, registration in changes.items():
            row = rows.get(tp.topic)
            if row is None:
                row = rows[tp.topic] = list(self._topics[tp.topic])
            row[tp.partition] = registration
        topics = dict(self._topics)
        for topic, row in rows.items():
            topics[topic] = tuple(row)
        return PartitionTable(
            topics, self._keys, self._size, self._deleted, self._names, cluster=self.cluster
        )

    def with_topic(self, topic: str, row: tuple[Registration, ...]) -> PartitionTable:
        """The table with one more topic."""
        keys = tuple(TopicPartition(topic, number) for number in range(len(row)))
        return PartitionTable(
            {**self._topics, topic: row},
            {**self._keys, topic: keys},
            deleted=self._deleted,
            cluster=self.cluster,
        )

    def without_topic(self, topic: str) -> PartitionTable:
        """The table without one topic."""
        topics = {name: row for name, row in self._topics.items() if name != topic}
        deleted = {**self._deleted, topic: self.generation(topic) + 1}
        return PartitionTable(topics, self._keys, deleted=deleted, cluster=self.cluster)


class _Items(ItemsView[TopicPartition, Registration]):
    """Iterates over whole rows: five times as fast as a lookup of each of 200,000 keys."""

    _mapping: PartitionTable

    def __iter__(self) -> Iterator[tuple[TopicPartition, Registration]]:
        return self._mapping.pairs()


def _keys_of(topics: Mapping[str, tuple[Registration, ...]]) -> dict[str, tuple[TopicPartition, ...]]:
    return {
        topic: tuple(TopicPartition(topic, number) for number in range(len(row)))
        for topic, row in topics.items()
    }


@cache
def topic_id(topic: str, generation: int = 0, cluster: str = "") -> str:
    """A topic id as Kafka prints it: 22 characters of URL-safe base64. A topic created again has another, and so
    has one of that name in another cluster.
    """
    again = f" {generation}" if generation else ""
    digest = hashlib.sha256(f"{cluster}topic {topic}{again}".encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def id_of(image: ClusterImage, topic: str) -> str:
    """The id of the topic that has that name now."""
    table = image.partitions
    return table.id_of(topic) if isinstance(table, PartitionTable) else topic_id(topic)


def generation_of(image: ClusterImage, topic: str) -> int:
    """Which topic of that name there is now, or comes next: 0 for the first."""
    table = image.partitions
    return table.generation(topic) if isinstance(table, PartitionTable) else 0


def topics_of(image: ClusterImage) -> Mapping[str, tuple[Registration, ...]]:
    """The partitions of every topic, in order; none while no metadata was read."""
    table = image.partitions
    return table.topics if isinstance(table, PartitionTable) else {}


def topic_names(image: ClusterImage) -> Mapping[str, str]:
    """Every topic's name by its id."""
    table = image.partitions
    return table.names_by_id() if isinstance(table, PartitionTable) else {}
