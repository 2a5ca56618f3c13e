"""Leader elections that somebody asks for: preconditions and errors of ElectLeaders.

Preferred and unclean elections are shipped Kafka's (KIP-460); designated ones are the recovery tool's, for an
ElectLeaders version that no release has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from recovery.controller.cluster_image import ClusterImage, Effect, acceptable_leaders, apply
from recovery.controller.controller_errors import ControllerError, ControllerRefusal
from recovery.controller.registration import PartitionChange, Registration
from recovery.controller.rules import ControllerRules
from recovery.controller.transition import transition
from recovery.controller.transition_targets import ElectionKind, Proposal
from recovery.model import NO_LEADER, TopicPartition

DESIGNATED_LIMIT = 1000


class ElectionRequest(NamedTuple):
    """An election of ``kind`` (PREFERRED, UNCLEAN or DESIGNATED). ``partitions`` is None for all of them, and holds
    the designated leaders where the kind is DESIGNATED, -1 otherwise.
    """

    kind: ElectionKind
    partitions: Mapping[TopicPartition, int] | None = None


class ElectionOutcome(NamedTuple):
    """``refusals`` holds each partition asked for, None where it was elected. For a request of all partitions those
    that need no election are left out, as Kafka does.
    """

    refusals: Mapping[TopicPartition, ControllerRefusal | None]
    effect: Effect


def elect_leaders(image: ClusterImage, request: ElectionRequest) -> ElectionOutcome:
    """The elections of ``request``, each decided on its own. Beyond 1000 designated ones:
    REQUEST_LIMIT_REACHED.

    Raises ValueError for an election that no client can request.
    """
    if request.kind is ElectionKind.ONLINE:
        raise ValueError("an ONLINE election is the controller's own: it cannot be asked for")
    wanted = dict.fromkeys(image.partitions, NO_LEADER) if request.partitions is None else request.partitions
    refusals: dict[TopicPartition, ControllerRefusal | None] = {}
    changes = {}
    for position, (tp, leader) in enumerate(wanted.items()):
        if request.kind is ElectionKind.DESIGNATED and position >= DESIGNATED_LIMIT:
            refusals[tp] = ControllerRefusal(
                ControllerError.REQUEST_LIMIT_REACHED,
                f"more than {DESIGNATED_LIMIT} partitions in one request",
            )
            continue
        outcome = _elect_one(image, tp, request.kind, leader)
        if isinstance(outcome, PartitionChange):
            changes[tp] = outcome
            refusals[tp] = None
        elif request.partitions is not None or outcome.error is not ControllerError.ELECTION_NOT_NEEDED:
            refusals[tp] = outcome
    return ElectionOutcome(refusals, apply(image, changes))


def _elect_one(
    image: ClusterImage, tp: TopicPartition, kind: ElectionKind, leader: int
) -> PartitionChange | ControllerRefusal:
    partition = image.partitions.get(tp)
    if partition is None:
        return ControllerRefusal(ControllerError.UNKNOWN_TOPIC_OR_PARTITION, f"no partition {tp}")
    proposal = Proposal(
        acceptable=acceptable_leaders(partition, image.brokers),
        min_isr=image.effective_min_isr(tp.topic),
        election=kind,
        designated=leader,
    )
    return elect_leader(partition, proposal, image.rules_for(tp.topic))


def elect_leader(
    partition: Registration, proposal: Proposal, rules: ControllerRules
) -> PartitionChange | ControllerRefusal:
    """One election that was asked for: the change, or why there is none.

    A preferred election of an offline partition elects the same leader as an ordinary election; a designated
    election elects the named replica or nobody.
    """
    refusal = _precondition(partition, proposal)
    if refusal is not None:
        return refusal
    change = transition(partition, proposal, rules)
    return change if change is not None else _nobody(proposal)


def _precondition(partition: Registration, proposal: Proposal) -> ControllerRefusal | None:
    kind = proposal.election
    if kind is ElectionKind.PREFERRED:
        if partition.leader == partition.replicas[0]:
            return ControllerRefusal(
                ControllerError.ELECTION_NOT_NEEDED, f"{partition.leader} is leader and preferred"
            )
        return None
    if partition.has_leader:
        return ControllerRefusal(
            ControllerError.ELECTION_NOT_NEEDED, f"the partition has a leader, {partition.leader}"
        )
    if kind is ElectionKind.DESIGNATED:
        chosen = proposal.designated
        if chosen not in partition.replicas:
            return _not_available(f"{chosen} is not a replica of the partition")
        if chosen not in proposal.acceptable:
            return _not_available(f"{chosen} is fenced, shutting down, or its log directory is offline")
    return None


def _nobody(proposal: Proposal) -> ControllerRefusal:
    if proposal.election is ElectionKind.PREFERRED:
        return ControllerRefusal(
            ControllerError.PREFERRED_LEADER_NOT_AVAILABLE,
            "the preferred replica is not in the ISR, or not alive",
        )
    return _not_available("no replica is alive")


def _not_available(reason: str) -> ControllerRefusal:
    return ControllerRefusal(ControllerError.ELIGIBLE_LEADERS_NOT_AVAILABLE, reason)
