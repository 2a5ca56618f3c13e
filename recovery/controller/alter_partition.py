"""A leader asks the controller for a new ISR: every check in Kafka's order, then the change (KIP-903, KIP-497)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from recovery.controller.cluster_image import (
    BrokerRegistration,
    ClusterImage,
    Effect,
    acceptable_leaders,
    apply,
)
from recovery.controller.controller_errors import ControllerError, ControllerRefusal
from recovery.controller.registration import LeaderRecoveryState, PartitionChange, Registration
from recovery.controller.transition import transition
from recovery.controller.transition_targets import Proposal
from recovery.model import TopicPartition

UNCHECKED_EPOCH = -1


class IsrMember(NamedTuple):
    """A broker of the proposed ISR, with the broker epoch its Fetch requests carried. -1 skips the check, as
    requests before version 3 do.
    """

    broker: int
    epoch: int = UNCHECKED_EPOCH


class AlterPartition(NamedTuple):
    """One partition of an AlterPartition request that ``leader`` sends."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[IsrMember, ...]
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED


class AlterPartitionAnswer(NamedTuple):
    """The controller's answer. NEW_LEADER_ELECTED comes *with* a change: the ISR completed a reassignment that
    took the leadership away from the sender.
    """

    refusal: ControllerRefusal | None
    partition: Registration | None
    effect: Effect


def check_sender(
    brokers: Mapping[int, BrokerRegistration], broker: int, epoch: int
) -> ControllerRefusal | None:
    """Whether the request as a whole is accepted: it must carry the sender's current broker epoch."""
    registered = brokers.get(broker)
    if registered is None:
        return _stale(f"broker {broker} is not registered")
    if registered.epoch != epoch:
        return _stale(f"broker {broker} has epoch {registered.epoch}, not {epoch}")
    return None


def alter_partitions(
    image: ClusterImage, requests: Mapping[TopicPartition, AlterPartition]
) -> tuple[Mapping[TopicPartition, AlterPartitionAnswer], Effect]:
    """The result for each partition of one request, and all changes that are written."""
    refusals: dict[TopicPartition, ControllerRefusal] = {}
    changes: dict[TopicPartition, PartitionChange] = {}
    for tp, request in requests.items():
        partition = image.partitions.get(tp)
        refusal = _unknown(image, tp) if partition is None else check(partition, request, image.brokers)
        if partition is None or refusal is not None:
            refusals[tp] = refusal or _unknown(image, tp)
            continue
        change = _change(image, tp, partition, request)
        if change is not None:
            changes[tp] = change
    effect = apply(image, changes)
    nothing = Effect(effect.image, {})
    answers = {
        tp: AlterPartitionAnswer(refusals[tp], None, nothing)
        if tp in refusals
        else AlterPartitionAnswer(
            _leadership_lost(request, changes.get(tp)), effect.image.partitions[tp], effect
        )
        for tp, request in requests.items()
    }
    return answers, effect


def _change(
    image: ClusterImage, tp: TopicPartition, partition: Registration, request: AlterPartition
) -> PartitionChange | None:
    proposal = Proposal(
        acceptable=acceptable_leaders(partition, image.brokers),
        min_isr=image.effective_min_isr(tp.topic),
        election=image.election_for(tp.topic),
        isr=tuple(member.broker for member in request.isr),
        leader_recovery_state=request.leader_recovery_state,
    )
    return transition(partition, proposal, image.rules_for(tp.topic))


def check(
    partition: Registration, request: AlterPartition, brokers: Mapping[int, BrokerRegistration]
) -> ControllerRefusal | None:
    """The first of Kafka's checks that ``request`` fails, epochs before the ISR it asks for."""
    return _epochs(partition, request) or _isr(partition, request) or _eligibility(request, brokers)


def _epochs(partition: Registration, request: AlterPartition) -> ControllerRefusal | None:
    if request.leader_epoch > partition.leader_epoch:
        return _refuse(
            ControllerError.NOT_CONTROLLER,
            f"leader epoch {request.leader_epoch} is newer than {partition.leader_epoch}",
        )
    if request.partition_epoch > partition.partition_epoch:
        return _refuse(
            ControllerError.NOT_CONTROLLER,
            f"partition epoch {request.partition_epoch} is newer than {partition.partition_epoch}",
        )
    if request.leader_epoch < partition.leader_epoch:
        return _refuse(
            ControllerError.FENCED_LEADER_EPOCH,
            f"leader epoch is {partition.leader_epoch}, not {request.leader_epoch}",
        )
    if request.leader != partition.leader:
        return _refuse(
            ControllerError.INVALID_REQUEST, f"the leader is {partition.leader}, not {request.leader}"
        )
    if request.partition_epoch < partition.partition_epoch:
        return _refuse(
            ControllerError.INVALID_UPDATE_VERSION,
            f"partition epoch is {partition.partition_epoch}, not {request.partition_epoch}",
        )
    return None


def _isr(partition: Registration, request: AlterPartition) -> ControllerRefusal | None:
    isr = [member.broker for member in request.isr]
    if len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas):
        return _refuse(ControllerError.INVALID_REQUEST, f"ISR {isr} is not a set of the replicas")
    if partition.leader not in isr:
        return _refuse(ControllerError.INVALID_REQUEST, f"ISR {isr} lacks the leader {partition.leader}")
    if request.leader_recovery_state is LeaderRecoveryState.RECOVERING:
        if len(isr) > 1:
            return _refuse(
                ControllerError.INVALID_REQUEST, "the ISR has more than the leader, which is still recovering"
            )
        if partition.leader_recovery_state is LeaderRecoveryState.RECOVERED:
            return _refuse(
                ControllerError.INVALID_REQUEST, "a recovered partition does not go back to recovering"
            )
    return None


def _eligibility(
    request: AlterPartition, brokers: Mapping[int, BrokerRegistration]
) -> ControllerRefusal | None:
    """KIP-903: who restarted, is fenced or is leaving may not join the ISR."""
    reasons = [
        f"{member.broker} {reason}"
        for member in request.isr
        if (reason := _ineligible(brokers.get(member.broker), member.epoch))
    ]
    if not reasons:
        return None
    return _refuse(ControllerError.INELIGIBLE_REPLICA, ", ".join(reasons))


def _ineligible(registered: BrokerRegistration | None, epoch: int) -> str:
    if registered is None:
        return "is not registered"
    if registered.in_controlled_shutdown:
        return "is shutting down"
    if registered.fenced:
        return "is fenced"
    if epoch not in (UNCHECKED_EPOCH, registered.epoch):
        return f"has broker epoch {registered.epoch}, not {epoch}"
    return ""


def _leadership_lost(request: AlterPartition, change: PartitionChange | None) -> ControllerRefusal | None:
    if change is None or change.leader in (None, request.leader):
        return None
    return _refuse(
        ControllerError.NEW_LEADER_ELECTED, f"the change made {change.leader} leader: fetch metadata"
    )


def _unknown(image: ClusterImage, tp: TopicPartition) -> ControllerRefusal:
    if TopicPartition(tp.topic, 0) in image.partitions:
        return _refuse(ControllerError.UNKNOWN_TOPIC_OR_PARTITION, f"no partition {tp}")
    return _refuse(ControllerError.UNKNOWN_TOPIC_ID, f"no topic {tp.topic}")


def _stale(reason: str) -> ControllerRefusal:
    return ControllerRefusal(ControllerError.STALE_BROKER_EPOCH, reason)


def _refuse(error: ControllerError, reason: str) -> ControllerRefusal:
    return ControllerRefusal(error, reason)
