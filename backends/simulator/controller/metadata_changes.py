"""Changes of the metadata: who may write them; configurations, features, topics and log dir assignments."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import replace

from backends.simulator.messages import AssignDirectories, CreateTopic, DeleteTopic, SetConfig, UpdateFeature
from backends.simulator.partition_table import PartitionTable
from recovery.controller.cluster_image import ClusterImage, Effect, Layered, acceptable_leaders, apply
from recovery.controller.controller_errors import ControllerError, ControllerRefusal
from recovery.controller.registration import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    PartitionChange,
    Registration,
)
from recovery.controller.rules import ELR_FEATURE, MIN_ISR, UncleanRecoveryStrategy, strategy_of
from recovery.controller.topic_changes import ConfigLevel, change_min_isr
from recovery.controller.topic_changes import delete_topic as forget_topic
from recovery.controller.transition import transition
from recovery.controller.transition_targets import Proposal, without
from recovery.model import TopicPartition

Then = Callable[[], None]


LARGEST = 2**31 - 1
STRATEGY_VALUES: Mapping[str, Mapping[str, UncleanRecoveryStrategy]] = {
    "unclean.leader.election.enable": {"true": strategy_of(True), "false": strategy_of(False)},
    "unclean.recovery.strategy": {str(strategy): strategy for strategy in UncleanRecoveryStrategy},
}
"""The configurations that choose the strategy, with their values."""
RECOVERY_MANAGER = "unclean.recovery.manager.enabled"
"""KIP-966: whether the recovery manager makes the unclean elections; for the cluster only."""
SWITCH_VALUES = {"true": True, "false": False}


def change_config(image: ClusterImage, body: SetConfig) -> Effect | ControllerRefusal:
    """``min.insync.replicas``, ``unclean.leader.election.enable`` or ``unclean.recovery.strategy``; for the cluster
    ``unclean.recovery.manager.enabled`` too.
    """
    if body.topic and body.topic not in _topics(image):
        return ControllerRefusal(
            ControllerError.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{body.topic}' does not exist."
        )
    if body.name == MIN_ISR:
        return _min_isr(image, body)
    if body.name == RECOVERY_MANAGER and not body.topic and body.broker is None:
        return _recovery_manager(image, body)
    names = STRATEGY_VALUES.get(body.name)
    if names is None or body.broker is not None:
        return _invalid(f"unknown configuration {body.name}")
    if body.value is not None and body.value not in names:
        return _invalid(f"{body.name}: {body.value!r} is none of {', '.join(names)}")
    return _strategy(image, body.topic, None if body.value is None else names[body.value])


def _recovery_manager(image: ClusterImage, body: SetConfig) -> Effect | ControllerRefusal:
    enabled = False if body.value is None else SWITCH_VALUES.get(body.value)
    if enabled is None:
        return _invalid(f"{body.name}: {body.value!r} is none of {', '.join(SWITCH_VALUES)}")
    return Effect(replace(image, rules=replace(image.rules, recovery_manager=enabled)), {})


def _min_isr(image: ClusterImage, body: SetConfig) -> Effect | ControllerRefusal:
    if body.value is not None and not (body.value.isdecimal() and 1 <= int(body.value) <= LARGEST):
        return _invalid(f"{body.name}: {body.value!r} is not a number from 1 to {LARGEST}")
    beneath = ConfigLevel.CLUSTER if body.broker is None else ConfigLevel.NODE
    level = ConfigLevel.TOPIC if body.topic else beneath
    value = None if body.value is None else int(body.value)
    outcome = change_min_isr(image, level, value, body.topic, body.broker)
    return outcome.refusal or outcome.effect


def _strategy(image: ClusterImage, topic: str, strategy: UncleanRecoveryStrategy | None) -> Effect:
    strategies: Layered[UncleanRecoveryStrategy] = image.strategies
    if not topic:
        return Effect(replace(image, strategies=replace(strategies, cluster=strategy)), {})
    topics = {name: value for name, value in strategies.topics.items() if name != topic}
    if strategy is not None:
        topics[topic] = strategy
    return Effect(replace(image, strategies=replace(strategies, topics=topics)), {})


def update_feature(image: ClusterImage, body: UpdateFeature) -> Effect | ControllerRefusal:
    """Switch the ELR on or off. After switching it off, a partition loses its ELR with its next change
    (KIP-966).
    """
    if body.feature != ELR_FEATURE or body.level not in (0, 1):
        return _invalid(f"unknown feature level {body.feature}={body.level}")
    rules = replace(image.rules, elr=body.level == 1)
    min_isr = image.min_isr
    if rules.elr and (min_isr.cluster is None or min_isr.brokers):
        # With the ELR on, the cluster always has a dynamic min ISR, and no broker one of its own
        # (ConfigurationControlManager.maybeGenerateElrSafetyRecords).
        cluster = min_isr.static if min_isr.cluster is None else min_isr.cluster
        min_isr = replace(min_isr, cluster=cluster, brokers={})
    return Effect(replace(image, rules=rules, min_isr=min_isr), {})


def create_topic(image: ClusterImage, body: CreateTopic) -> Effect | ControllerRefusal:
    """A new topic. Replicas on fenced brokers are not in its first ISR."""
    assert isinstance(image.partitions, PartitionTable)
    if body.topic in image.partitions.topics:
        return ControllerRefusal(ControllerError.INVALID_REQUEST, f"topic {body.topic} exists")
    if not body.assignments:
        return ControllerRefusal(ControllerError.INVALID_REPLICA_ASSIGNMENT, "no partition is assigned")
    if body.min_isr is not None and not 1 <= body.min_isr <= LARGEST:
        return _invalid(f"min.insync.replicas: {body.min_isr} is not a number from 1 to {LARGEST}")
    row = []
    for replicas in body.assignments:
        unknown = [broker for broker in replicas if broker not in image.brokers]
        if unknown or not replicas or len(set(replicas)) != len(replicas):
            return ControllerRefusal(ControllerError.INVALID_REPLICA_ASSIGNMENT, f"replicas {list(replicas)}")
        isr = tuple(broker for broker in replicas if image.brokers[broker].active)
        if not isr:
            return ControllerRefusal(
                ControllerError.INVALID_REPLICA_ASSIGNMENT, f"all of {list(replicas)} are fenced"
            )
        row.append(Registration(replicas, isr, isr[0], directories=_directories(image, replicas)))
    table = image.partitions.with_topic(body.topic, tuple(row))
    changed = replace(image, partitions=table)
    if body.min_isr is not None:
        topics = {**image.min_isr.topics, body.topic: body.min_isr}
        changed = replace(changed, min_isr=replace(image.min_isr, topics=topics))
    return Effect(changed, {})


def delete_topic(image: ClusterImage, body: DeleteTopic) -> Effect | ControllerRefusal:
    """Remove the topic's partitions and configurations; brokers then delete its logs."""
    table = image.partitions
    assert isinstance(table, PartitionTable)
    if body.topic not in table.topics:
        return ControllerRefusal(
            ControllerError.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        )
    changed = forget_topic(image, body.topic)
    return Effect(replace(changed, partitions=table.without_topic(body.topic)), {})


def assign_directories(image: ClusterImage, body: AssignDirectories) -> Effect:
    """Where replicas are placed (KIP-858).

    A replica in the LOST directory counts as shut down: it leaves the ISR, and a new leader is chosen
    (jbod-disk-failure, "Restarted Partition Leader Selector").
    """
    broker = body.broker
    changes: dict[TopicPartition, PartitionChange] = {}
    for tp, directory in body.directories:
        partition = image.partitions.get(tp)
        if partition is None or broker not in partition.replicas:
            continue
        placed = partition.directories or (MIGRATING_DIRECTORY,) * len(partition.replicas)
        at = partition.replicas.index(broker)
        if placed[at] == directory:
            continue  # an earlier copy of the request was applied
        directories = (*placed[:at], directory, *placed[at + 1 :])
        change = PartitionChange(directories=directories)
        if directory == LOST_DIRECTORY:
            gone = frozenset((broker,))
            proposal = Proposal(
                acceptable=acceptable_leaders(partition, image.brokers) - gone,
                min_isr=image.effective_min_isr(tp.topic),
                election=image.election_for(tp.topic),
                isr=without(partition.isr, gone),
            )
            left = transition(partition, proposal, image.rules_for(tp.topic))
            change = (left or change)._replace(directories=directories)
        changes[tp] = change
    return apply(image, changes)


def _directories(image: ClusterImage, replicas: tuple[int, ...]) -> tuple[str, ...]:
    """The directory is known for a broker with one log dir; the others report it later (KIP-858)."""
    directories = [image.brokers[broker].directories for broker in replicas]
    if not any(directories):
        return ()
    return tuple(
        MIGRATING_DIRECTORY if not own else own[0] if len(own) == 1 else UNASSIGNED_DIRECTORY
        for own in directories
    )


def _topics(image: ClusterImage) -> Container[str]:
    table = image.partitions
    return table.topics if isinstance(table, PartitionTable) else {tp.topic for tp in table}


def _invalid(reason: str) -> ControllerRefusal:
    return ControllerRefusal(ControllerError.INVALID_CONFIG, reason)
