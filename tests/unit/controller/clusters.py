"""Small clusters for the tests: brokers, one or more topics, and the steps an operator would see."""

from __future__ import annotations

from collections.abc import Mapping

from recovery.controller.alter_partition import AlterPartition, AlterPartitionAnswer, alter_partitions
from recovery.controller.cluster_image import BrokerRegistration, ClusterImage, Layered
from recovery.controller.registration import Registration
from recovery.controller.rules import ControllerRules, UncleanRecoveryStrategy, strategy_of
from recovery.model import TopicPartition

FOO = TopicPartition("foo", 0)


def cluster(
    partitions: Mapping[TopicPartition, Registration],
    brokers: int | Mapping[int, BrokerRegistration] = 4,
    *,
    rules: ControllerRules | None = None,
    min_isr: int = 2,
    unclean: bool | UncleanRecoveryStrategy = False,
) -> ClusterImage:
    """A cluster of brokers 0, 1, 2 …, all alive, unless they are given. Broker epochs are 100 + the id."""
    if isinstance(brokers, int):
        brokers = {broker: BrokerRegistration(100 + broker) for broker in range(brokers)}
    strategy = strategy_of(unclean) if isinstance(unclean, bool) else unclean
    return ClusterImage(
        brokers=brokers,
        partitions=partitions,
        rules=rules or ControllerRules(),
        min_isr=Layered(min_isr),
        strategies=Layered(strategy),
    )


def alter_partition(image: ClusterImage, tp: TopicPartition, request: AlterPartition) -> AlterPartitionAnswer:
    """A request for one partition."""
    return alter_partitions(image, {tp: request})[0][tp]


def healthy(*replicas: int) -> Registration:
    """A partition with all its replicas in sync, led by the first."""
    return Registration(replicas=replicas, isr=replicas, leader=replicas[0])


def foo(
    *replicas: int, brokers: int = 4, min_isr: int = 2, rules: ControllerRules | None = None
) -> ClusterImage:
    """A cluster with the one partition ``foo-0``."""
    return cluster({FOO: healthy(*replicas)}, brokers, min_isr=min_isr, rules=rules)
