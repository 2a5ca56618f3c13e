"""The one transition function of a partition: what the controller writes when a change is asked for.

It computes a change from a partition's registration, a proposal and the rules, and from nothing else. The order
of the rules matters and is Kafka's: a reassignment completes, the ELR follows the proposed ISR, a leader is
elected from both, and the rest follows from who was elected.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from recovery.controller.registration import (
    NO_CHANGE,
    UNASSIGNED_DIRECTORY,
    LeaderRecoveryState,
    PartitionChange,
    Registration,
)
from recovery.controller.rules import ControllerRules
from recovery.controller.transition_targets import ElectionKind, Proposal, Targets, targets_of, without
from recovery.model import NO_LEADER

# Who becomes leader of a partition (KIP-966, "Leader election"; recovery tool, "Designated Leader
# Elections").


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


_T = TypeVar("_T")


def transition(partition: Registration, proposal: Proposal, rules: ControllerRules) -> PartitionChange | None:
    """The change that ``proposal`` results in, None if there is none (KIP-966, "Eligible Leader Replicas").
    One difference from shipped 4.3: if a partition without a leader loses a replica in a reassignment, Kafka
    may write the invalid broker id -1 into LastKnownELR. This function does not.
    """
    targets = complete_reassignment(targets_of(partition, proposal), proposal.min_isr, rules)
    targets = update_elr(partition, targets, proposal, rules)
    elected = elect(partition, targets, proposal, rules)
    targets = _after_election(partition, targets, elected, proposal.min_isr, rules)
    leader = _leader_written(partition, targets, elected, rules)
    change = PartitionChange(
        leader=leader,
        isr=_if_changed(partition.isr, targets.isr),
        elr=_if_other_members(partition.elr, targets.elr),
        last_known_elr=_last_known_elr_written(partition, targets, leader, rules),
        leader_recovery_state=_recovery_state_written(partition, proposal, elected, rules),
        replicas=_if_changed(partition.replicas, targets.replicas),
        removing=_if_changed(partition.removing, targets.removing),
        adding=_if_changed(partition.adding, targets.adding),
        directories=_directories_written(partition, proposal, targets),
    )
    return None if change == NO_CHANGE else change


def complete_reassignment(targets: Targets, min_isr: int, rules: ControllerRules) -> Targets:
    """``targets`` with the reassignment done, where the ISR allows it.

    The added replicas must be in the ISR, and the whole target where the replication factor shrinks: to complete
    with fewer would take in-sync replicas away. KIP-966 asks for an ISR of min ISR too.
    """
    if not targets.removing and not targets.adding:
        return targets
    isr = without(targets.isr, targets.removing)
    replicas = without(targets.replicas, targets.removing)
    if not isr or not replicas or not _needed(targets, replicas, rules) <= set(isr):
        return targets
    if rules.kip966_reassignment and len(isr) < min(min_isr, len(replicas)):
        return targets
    return targets._replace(isr=isr, replicas=replicas, removing=(), adding=())


def _needed(targets: Targets, replicas: tuple[int, ...], rules: ControllerRules) -> set[int]:
    if rules.reassignment_waits_for_all:
        return set(replicas)
    if len(targets.adding) < len(targets.removing):
        return {*targets.adding, *replicas}
    return set(targets.adding)


def update_elr(
    partition: Registration, targets: Targets, proposal: Proposal, rules: ControllerRules
) -> Targets:
    """``targets`` with the ELR that the proposed ISR leaves (KIP-966, "ELR update").

    At min ISR the ELR is empty. Below it the members stay, those that leave the ISR join, and those that are in
    the ISR again, or were shut down uncleanly, leave.
    """
    if not rules.elr:
        return targets
    if len(targets.isr) >= proposal.min_isr:
        return targets._replace(elr=(), last_known_elr=())
    known = {*targets.elr, *partition.isr}
    elr = known.difference(targets.isr, proposal.unclean_shutdown)
    last_known = known.union(targets.last_known_elr).difference(targets.isr, elr)
    if rules.kip966_reassignment:
        elr.intersection_update(targets.replicas)
        last_known.intersection_update(targets.replicas)
    return targets._replace(elr=tuple(sorted(elr)), last_known_elr=tuple(sorted(last_known)))


def _after_election(
    partition: Registration, targets: Targets, elected: ElectedLeader, min_isr: int, rules: ControllerRules
) -> Targets:
    if elected.leader != partition.leader:
        if elected.unclean:
            # No other replica is known to hold what the new leader holds.
            targets = targets._replace(isr=(elected.leader,), elr=(), last_known_elr=())
        elif elected.leader in targets.elr:
            targets = targets._replace(
                isr=(elected.leader,), elr=without(targets.elr, frozenset((elected.leader,)))
            )
    if rules.kip966_min_isr_change and len(targets.isr) >= min_isr:
        # If min ISR was lowered while the ELR had members, the one replica just elected can reach min ISR.
        targets = targets._replace(elr=(), last_known_elr=())
    if not rules.elr:
        # Without the ELR the last in-sync replica stays in the ISR: it alone remembers who may be elected.
        targets = targets._replace(isr=targets.isr or partition.isr, elr=(), last_known_elr=())
    return targets


def _leader_written(
    partition: Registration, targets: Targets, elected: ElectedLeader, rules: ControllerRules
) -> int | None:
    if elected.leader != partition.leader:
        return elected.leader
    if not set(partition.replicas) <= set(targets.replicas):
        # A removed replica must be fenced off by a new leader epoch.
        return partition.leader
    if rules.leader_epoch_bump_on_isr_shrink and not set(partition.isr) <= set(targets.isr):
        return partition.leader
    return None


def _last_known_elr_written(
    partition: Registration, targets: Targets, leader: int | None, rules: ControllerRules
) -> tuple[int, ...] | None:
    if rules.last_known_elr_members:
        return _if_other_members(partition.last_known_elr, targets.last_known_elr)
    if not rules.elr or leader is None:
        return None
    if leader == NO_LEADER and not partition.last_known_elr and partition.has_leader:
        return (partition.leader,)
    if leader != NO_LEADER and partition.last_known_elr:
        return ()
    return None


def _recovery_state_written(
    partition: Registration, proposal: Proposal, elected: ElectedLeader, rules: ControllerRules
) -> LeaderRecoveryState | None:
    wanted = proposal.leader_recovery_state
    if wanted not in (None, partition.leader_recovery_state):
        return wanted
    became_unclean = elected.unclean and elected.leader != partition.leader
    if not became_unclean or not rules.leader_recovery:
        return None
    recovering = LeaderRecoveryState.RECOVERING
    return None if partition.leader_recovery_state is recovering else recovering


def _directories_written(
    partition: Registration, proposal: Proposal, targets: Targets
) -> tuple[str, ...] | None:
    if not partition.directories:
        return None
    known = {
        **dict(proposal.new_directories),
        **dict(zip(partition.replicas, partition.directories, strict=True)),
    }
    directories = tuple(known.get(replica, UNASSIGNED_DIRECTORY) for replica in targets.replicas)
    return _if_changed(partition.directories, directories)


def _if_changed(before: tuple[_T, ...], after: tuple[_T, ...]) -> tuple[_T, ...] | None:
    return None if after == before else after


def _if_other_members(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...] | None:
    return None if set(after) == set(before) else after
