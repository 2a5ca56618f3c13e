"""Partitions and topic configurations, as a broker describes them from its own metadata."""

from __future__ import annotations

from backends.simulator import operator_messages as ask
from backends.simulator.messages import Error
from backends.simulator.partition_table import id_of, topics_of
from backends.simulator.permissions import DeniedPermissions
from recovery.controller.cluster_image import ClusterImage, offline_replicas
from recovery.controller.registration import Registration
from recovery.model import PartitionState, TopicPartition

Offline = dict[tuple[tuple[int, ...], tuple[str, ...]], tuple[int, ...]]


def describe_page(
    image: ClusterImage, most: int, body: ask.DescribeTopicPartitions, denied: DeniedPermissions
) -> ask.TopicPartitionsDescribed:
    """One page of DescribeTopicPartitions v0: topics by name, and a cursor to the next page.

    ``topics`` None asks for all topics; those that the caller may not see are left out without an error.
    ``most`` is the broker's own limit of partitions in a page.
    """
    topics_here = topics_of(image)
    names = sorted(topics_here) if body.topics is None else sorted(dict.fromkeys(body.topics))
    if body.cursor is not None:
        names = [name for name in names if name >= body.cursor.topic]
    limit = min(body.limit, most)
    states: list[PartitionState] = []
    refused: list[tuple[str, Error]] = []
    offline: Offline = {}
    for name in names:
        if f"DESCRIBE topic {name}" in denied:
            if body.topics is not None:
                refused.append((name, Error.TOPIC_AUTHORIZATION_FAILED))
            continue
        if name not in topics_here:
            refused.append((name, Error.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        topic = id_of(image, name)
        first = body.cursor.partition if body.cursor is not None and body.cursor.topic == name else 0
        for number in range(first, len(topics_here[name])):
            if len(states) == limit:
                return ask.TopicPartitionsDescribed(
                    tuple(states), TopicPartition(name, number), tuple(refused)
                )
            states.append(_state(image, (name, topic), number, topics_here[name][number], offline))
    return ask.TopicPartitionsDescribed(tuple(states), None, tuple(refused))


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
