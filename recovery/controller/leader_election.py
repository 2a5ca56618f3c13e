"""Who becomes leader of a partition (KIP-966, "Leader election"; recovery tool, "Designated Leader Elections")."""

from __future__ import annotations

from typing import NamedTuple

from recovery.controller.registration import Registration
from recovery.controller.rules import ControllerRules
from recovery.controller.transition_targets import ElectionKind, Proposal, Targets
from recovery.model import NO_LEADER


class ElectedLeader(NamedTuple):
    """The outcome: -1 is nobody. ``unclean`` tells that the leader may lack committed records."""

    leader: int
    unclean: bool = False


NOBODY = ElectedLeader(NO_LEADER)


def elect(
    partition: Registration, targets: Targets, proposal: Proposal, rules: ControllerRules
) -> ElectedLeader:
    """The leader among the replicas of ``targets``, the present one where it may stay."""
    if proposal.election is ElectionKind.DESIGNATED:
        return _designated(targets, proposal)
    for replica in _order(partition, targets, proposal.election):
        if eligible(replica, targets, proposal.acceptable):
            return ElectedLeader(replica)
    if _last_known_leader_stands(partition, targets, proposal, rules):
        return ElectedLeader(partition.last_known_elr[0], unclean=True)
    if proposal.election is ElectionKind.UNCLEAN:
        for replica in targets.replicas:
            if replica in proposal.acceptable:
                return ElectedLeader(replica, unclean=True)
    return NOBODY


def eligible(replica: int, targets: Targets, acceptable: frozenset[int]) -> bool:
    """Whether a clean election may choose ``replica``: of the ISR, or of the ELR where the ISR is empty."""
    members = targets.isr or targets.elr
    return replica in members and replica in acceptable


def _order(partition: Registration, targets: Targets, election: ElectionKind) -> tuple[int, ...]:
    if election is ElectionKind.PREFERRED:
        return (*targets.replicas[:1], partition.leader, *targets.replicas[1:])
    return (partition.leader, *targets.replicas)


def _designated(targets: Targets, proposal: Proposal) -> ElectedLeader:
    chosen = proposal.designated
    if chosen not in targets.replicas or chosen not in proposal.acceptable:
        return NOBODY
    return ElectedLeader(chosen, unclean=not eligible(chosen, targets, proposal.acceptable))


def _last_known_leader_stands(
    partition: Registration, targets: Targets, proposal: Proposal, rules: ControllerRules
) -> bool:
    if not rules.elects_last_known_leader or targets.isr or targets.elr:
        return False
    # More than one member was written by other rules: none of them is "the" last leader.
    if len(partition.last_known_elr) != 1:
        return False
    return partition.last_known_elr[0] in proposal.acceptable or rules.dead_last_known_leader_elected
