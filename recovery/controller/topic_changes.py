"""What a topic's or the cluster's configuration, and a topic's deletion, do to the ELR."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from recovery.controller.cluster_image import ClusterImage, ControllerOutcome, Effect, apply, refused
from recovery.controller.controller_errors import ControllerError
from recovery.controller.registration import PartitionChange, Registration
from recovery.model import TopicPartition


class ConfigLevel(StrEnum):
    """Where a configuration is set. NODE is one broker's, or as shipped the active controller's own."""

    TOPIC = "topic"
    NODE = "node"
    CLUSTER = "cluster"


def change_min_isr(
    image: ClusterImage, level: ConfigLevel, value: int | None, topic: str = "", broker: int | None = None
) -> ControllerOutcome:
    """Set ``min.insync.replicas``, or remove it with None; of NODE for ``broker``, None: the active controller.

    Shipped Kafka then empties ELR and LastKnownELR of every partition concerned, also of those that are offline
    and only have the ELR to be elected from. KIP-966 does so only where the ISR reaches the new min ISR. Setting
    the value that is set already at that level changes nothing (tried on 4.3.1).
    With the ELR feature on, brokers cannot have a value of their own and the cluster must keep one.
    """
    if image.rules.elr and level is ConfigLevel.NODE:
        return refused(
            image,
            ControllerError.INVALID_CONFIG,
            "brokers cannot have a min.insync.replicas of their own while the ELR is on",
        )
    if image.rules.elr and level is ConfigLevel.CLUSTER and value is None:
        return refused(
            image,
            ControllerError.INVALID_CONFIG,
            "the cluster's min.insync.replicas cannot be removed while the ELR is on",
        )
    changed = _configured(image, level, value, topic, broker)
    if changed.min_isr == image.min_isr:
        return ControllerOutcome(None, Effect(image, {}))
    if not image.rules.elr:
        return ControllerOutcome(None, Effect(changed, {}))
    concerned = (tp for tp in image.partitions if level is not ConfigLevel.TOPIC or tp.topic == topic)
    changes = {tp: _EMPTIED for tp in concerned if _empties_elr(changed, tp)}
    return ControllerOutcome(None, apply(changed, changes))


_EMPTIED = PartitionChange(elr=(), last_known_elr=())


def delete_topic(image: ClusterImage, topic: str) -> ClusterImage:
    """``image`` without ``topic``'s partitions and configuration."""
    partitions = {tp: partition for tp, partition in image.partitions.items() if tp.topic != topic}
    min_isr = {name: value for name, value in image.min_isr.topics.items() if name != topic}
    strategies = {name: value for name, value in image.strategies.topics.items() if name != topic}
    return replace(
        image,
        partitions=partitions,
        min_isr=replace(image.min_isr, topics=min_isr),
        strategies=replace(image.strategies, topics=strategies),
    )


def _configured(
    image: ClusterImage, level: ConfigLevel, value: int | None, topic: str, broker: int | None
) -> ClusterImage:
    if level is ConfigLevel.CLUSTER:
        return replace(image, min_isr=replace(image.min_isr, cluster=value))
    if level is ConfigLevel.NODE and broker is None:
        return replace(image, min_isr=replace(image.min_isr, node=value))
    if broker is not None:
        brokers = {other: min_isr for other, min_isr in image.min_isr.brokers.items() if other != broker}
        if value is not None:
            brokers[broker] = value
        return replace(image, min_isr=replace(image.min_isr, brokers=brokers))
    topics = {name: min_isr for name, min_isr in image.min_isr.topics.items() if name != topic}
    if value is not None:
        topics[topic] = value
    return replace(image, min_isr=replace(image.min_isr, topics=topics))


def _empties_elr(image: ClusterImage, tp: TopicPartition) -> bool:
    partition: Registration = image.partitions[tp]
    if not partition.elr and not partition.last_known_elr:
        return False
    if not image.rules.kip966_min_isr_change:
        return True
    return len(partition.isr) >= image.effective_min_isr(tp.topic)
