"""Reassignments that somebody asks for: AlterPartitionReassignments (KIP-455), started and cancelled.

A reassignment first adds the new replicas to the old, and completes when they are in the ISR: at once where
nothing is added, so that another *order* of the same replicas is written straight away.
"""

from __future__ import annotations

from collections.abc import Mapping

from recovery.controller.cluster_image import (
    BrokerRegistration,
    ClusterImage,
    ControllerOutcome,
    Effect,
    acceptable_leaders,
    apply,
    refused,
)
from recovery.controller.controller_errors import ControllerError, ControllerRefusal
from recovery.controller.registration import (
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    PartitionChange,
    Registration,
)
from recovery.controller.transition import transition
from recovery.controller.transition_targets import Proposal, without
from recovery.model import TopicPartition


def reassign(
    image: ClusterImage,
    tp: TopicPartition,
    target: tuple[int, ...],
    *,
    allow_replication_factor_change: bool = True,
) -> ControllerOutcome:
    """Give ``tp`` the replicas ``target``, in that order.

    ``allow_replication_factor_change`` is KIP-860's, in AlterPartitionReassignments v1, since 4.1.
    """
    partition = image.partitions.get(tp)
    if partition is None:
        return refused(image, ControllerError.UNKNOWN_TOPIC_OR_PARTITION, f"no partition {tp}")
    refusal = _check_target(partition, target, image.brokers, allow_replication_factor_change)
    if refusal is not None:
        return ControllerOutcome(refusal, Effect(image, {}))
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    proposal = Proposal(
        acceptable=acceptable_leaders(partition, image.brokers),
        min_isr=image.effective_min_isr(tp.topic),
        replicas=(*target, *removing),
        # As shipped: replicas that the new target neither adds nor removes keep their role in the running
        # reassignment.
        removing=removing or None,
        adding=adding or None,
        new_directories=tuple((broker, _default_directory(image.brokers[broker])) for broker in adding),
    )
    return _done(image, tp, transition(partition, proposal, image.rules_for(tp.topic)))


def cancel(image: ClusterImage, tp: TopicPartition) -> ControllerOutcome:
    """Take the added replicas out again.

    Where they were the whole ISR, the first of the old replicas would lead without being in sync: that is an
    unclean election, and refused unless the topic allows one.
    """
    partition = image.partitions.get(tp)
    if partition is None:
        return refused(image, ControllerError.UNKNOWN_TOPIC_OR_PARTITION, f"no partition {tp}")
    if not partition.reassigning:
        return refused(image, ControllerError.NO_REASSIGNMENT_IN_PROGRESS, f"{tp} is not being reassigned")
    replicas = without(partition.replicas, partition.adding)
    isr = without(partition.isr, partition.adding)
    rules = image.rules_for(tp.topic)
    if not replicas:
        return _invalid(image, "every replica is an added one")
    if not isr:
        if not rules.elects_uncleanly:
            return _invalid(image, "going back needs an unclean election")
        isr = replicas[:1]
    min_isr = image.effective_min_isr(tp.topic)
    if rules.kip966_reassignment and len(isr) < min(min_isr, len(replicas)):
        return _invalid(image, f"the ISR would be {list(isr)}, below min ISR {min_isr}")
    proposal = Proposal(
        acceptable=acceptable_leaders(partition, image.brokers),
        min_isr=min_isr,
        election=image.election_for(tp.topic),
        isr=isr,
        replicas=replicas,
        removing=(),
        adding=(),
    )
    return _done(image, tp, transition(partition, proposal, rules))


def _check_target(
    partition: Registration,
    target: tuple[int, ...],
    brokers: Mapping[int, BrokerRegistration],
    allow_replication_factor_change: bool,
) -> ControllerRefusal | None:
    if not target:
        return ControllerRefusal(ControllerError.INVALID_REPLICA_ASSIGNMENT, "the replica list is empty")
    for broker in sorted(target):
        if broker not in brokers:
            return ControllerRefusal(
                ControllerError.INVALID_REPLICA_ASSIGNMENT, f"no broker {broker} is registered"
            )
        if target.count(broker) > 1:
            return ControllerRefusal(
                ControllerError.INVALID_REPLICA_ASSIGNMENT, f"broker {broker} is listed more than once"
            )
    now = len(without(partition.replicas, partition.removing))
    if not allow_replication_factor_change and len(target) != now:
        return ControllerRefusal(
            ControllerError.INVALID_REPLICATION_FACTOR,
            f"the replication factor would change from {now} to {len(target)}",
        )
    return None


def _default_directory(broker: BrokerRegistration) -> str:
    if not broker.directories:
        return MIGRATING_DIRECTORY
    return broker.directories[0] if len(broker.directories) == 1 else UNASSIGNED_DIRECTORY


def _done(image: ClusterImage, tp: TopicPartition, change: PartitionChange | None) -> ControllerOutcome:
    return ControllerOutcome(None, apply(image, {} if change is None else {tp: change}))


def _invalid(image: ClusterImage, reason: str) -> ControllerOutcome:
    return refused(image, ControllerError.INVALID_REPLICA_ASSIGNMENT, reason)
