"""Partitions and topic configurations, as a broker describes them from its own metadata."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from backends.simulator.messages import Error
from backends.simulator.partition_table import id_of, topics_of
from backends.simulator.permissions import DeniedPermissions
from recovery.controller.cluster_image import ClusterImage, offline_replicas
from recovery.controller.registration import Registration
from recovery.model import PartitionState, TopicPartition

Offline = dict[tuple[tuple[int, ...], tuple[str, ...]], tuple[int, ...]]


class TopicPartitionsDescribed(NamedTuple):
    """One page. ``cursor`` is the start of the next page, None after the last.

    ``refused`` are topics that do not exist or may not be described.
    """

    states: tuple[PartitionState, ...]
    cursor: TopicPartition | None
    refused: tuple[tuple[str, Error], ...]


def describe_page(
    image: ClusterImage,
    topics: Collection[str],
    cursor: TopicPartition | None,
    limit: int,
    denied: DeniedPermissions,
) -> TopicPartitionsDescribed:
    """One page of DescribeTopicPartitions v0: at most ``limit`` partitions from ``cursor`` on, topics by name.

    Without ``topics`` all are described; those that the caller may not see are then left out without an error.
    """
    topics_here = topics_of(image)
    names = sorted(set(topics) or topics_here)
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic]
    states: list[PartitionState] = []
    refused: list[tuple[str, Error]] = []
    offline: Offline = {}
    for name in names:
        if f"DESCRIBE topic {name}" in denied:
            if topics:
                refused.append((name, Error.TOPIC_AUTHORIZATION_FAILED))
            continue
        if name not in topics_here:
            refused.append((name, Error.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        topic = id_of(image, name)
        first = cursor.partition if cursor is not None and cursor.topic == name else 0
        for number in range(first, len(topics_here[name])):
            if len(states) == limit:
                return TopicPartitionsDescribed(tuple(states), TopicPartition(name, number), tuple(refused))
            states.append(_state(image, (name, topic), number, topics_here[name][number], offline))
    return TopicPartitionsDescribed(tuple(states), None, tuple(refused))


def _state(
    image: ClusterImage, topic: tuple[str, str], number: int, partition: Registration, offline: Offline
) -> PartitionState:
    elr = image.rules.elr
    return PartitionState(
        topic[0],
        number,
        topic[1],
        partition.leader,
        partition.leader_epoch,
        partition.replicas,
        partition.isr,
        partition.elr if elr else None,
        partition.last_known_elr if elr else None,
        _offline(image, partition, offline),
    )


def _offline(image: ClusterImage, partition: Registration, known: Offline) -> tuple[int, ...]:
    key = (partition.replicas, partition.directories)
    found = known.get(key)
    if found is None:
        found = known[key] = offline_replicas(partition, image.brokers)
    return found
