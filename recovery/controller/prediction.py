"""What the controller will do with a partition, for a console: it runs the controller's own transition.

A view holds what clients can see: the registration as DescribeTopicPartitions shows it, and each replica's
standing. A reassignment's added and removed replicas are not in it; they do not decide who is elected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from recovery.controller.registration import Registration, merge
from recovery.controller.rules import ControllerRules, UncleanRecoveryStrategy, with_strategy
from recovery.controller.transition import transition
from recovery.controller.transition_targets import ElectionKind, Proposal, without
from recovery.controller.unclean_recovery import RecoveryStep, recover
from recovery.model import NO_LEADER, Standing, Survey, Unknown


class PartitionView(NamedTuple):
    """One partition, who of its replicas may lead, and the rules of its controller. ``min_isr`` is effective."""

    partition: Registration
    standings: Mapping[int, Standing]
    min_isr: int
    rules: ControllerRules

    @property
    def acceptable(self) -> frozenset[int]:
        return frozenset(
            broker for broker, standing in self.standings.items() if standing is Standing.ELECTABLE
        )


class LeaderWaitReason(StrEnum):
    """What an offline partition waits for."""

    NOTHING = "nothing"
    NEXT_CHANGE = "the controller's next look"
    CLEAN_RETURN = "an ISR or ELR member"
    LAST_KNOWN_LEADER = "the last known leader"
    ANY_REPLICA = "any replica"
    LOGS = "the replicas' logs"
    OPERATOR = "an operator"


class LeaderWait(NamedTuple):
    """``brokers`` are those whose return (or answer) elects; ``unclean``: committed records may be lost by
    it; ``sentence`` is the text for a person.
    """

    waits: LeaderWaitReason
    brokers: tuple[int, ...]
    unclean: bool
    sentence: str


class Prediction(NamedTuple):
    """The partition after an event. ``unclean`` tells that the event caused an unclean election."""

    partition: Registration
    unclean: bool
    under_min_isr: bool


def view_of(survey: Survey, rules: ControllerRules) -> PartitionView | Unknown:
    """The view of a surveyed partition. ``rules.elr`` is taken from the survey: without an ELR it is off.

    Unknown where the effective min ISR is, unless the ELR is off and nothing depends on it.
    """
    state = survey.state
    if state.elr is None:
        rules = replace(rules, elr=False)
    elif isinstance(survey.min_isr, Unknown):
        return survey.min_isr
    partition = Registration(
        replicas=state.replicas,
        isr=state.isr,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        elr=state.elr or (),
        last_known_elr=state.last_known_elr or (),
    )
    standings = {replica.broker: replica.standing for replica in survey.replicas}
    min_isr = 1 if isinstance(survey.min_isr, Unknown) else survey.min_isr
    return PartitionView(partition, standings, min_isr, rules)


def waiting_for(view: PartitionView) -> LeaderWait:
    """What the controller waits for before it elects a leader by itself (KIP-966, "Leader election")."""
    partition = view.partition
    if partition.has_leader:
        return LeaderWait(LeaderWaitReason.NOTHING, (), False, f"led by {partition.leader}")
    now = _checked_registration(partition, view.acceptable, view)
    if now.leader != NO_LEADER:
        unclean = _unclean(partition, now.leader)
        how = "uncleanly, " if unclean else ""
        sentence = f"elects {now.leader} {how}when it next looks at the partition, within five minutes"
        return LeaderWait(LeaderWaitReason.NEXT_CHANGE, (now.leader,), unclean, sentence)
    if view.rules.recovery_manager:
        return _manager_waits(view)
    return _returns(view)


def under_strategies(view: PartitionView) -> dict[UncleanRecoveryStrategy, LeaderWait]:
    """What the controller would wait for under None, Balanced and Aggressive."""
    return {
        strategy: waiting_for(view._replace(rules=with_strategy(view.rules, strategy)))
        for strategy in UncleanRecoveryStrategy
    }


def if_back(view: PartitionView, brokers: Iterable[int], unclean: frozenset[int] = frozenset()) -> Prediction:
    """The partition after ``brokers`` are unfenced one by one, in the order given.

    Those in ``unclean`` come back after an unclean shutdown, and leave ISR and ELR first where the ELR is on.
    """
    partition = view.partition
    acceptable = view.acceptable
    lossy = False
    for broker in brokers:
        if broker in unclean and view.rules.elr:
            partition = _checked_registration(partition, acceptable, view, broker, unclean_shutdown=True)
        acceptable |= {broker}
        if not partition.has_leader:
            after = _checked_registration(partition, acceptable, view)
            lossy = lossy or _unclean(partition, after.leader)
            partition = after
    return _prediction(partition, lossy, view)


def if_fails(view: PartitionView, brokers: Iterable[int]) -> Prediction:
    """The partition after ``brokers`` are fenced one by one, in the order given."""
    partition = view.partition
    acceptable = view.acceptable
    lossy = False
    for broker in brokers:
        acceptable -= {broker}
        if broker in partition.isr:
            after = _checked_registration(partition, acceptable, view, broker)
            lossy = lossy or _unclean(partition, after.leader)
            partition = after
    return _prediction(partition, lossy, view)


def if_nobody_elects(view: PartitionView, brokers: Iterable[int]) -> Prediction:
    """The partition after ``brokers`` fail while no controller leads: nobody takes the place of a leader, and a
    leader that is left cannot shrink its ISR (AlterPartition).
    """
    partition = view.partition
    if partition.leader in frozenset(brokers):
        partition = partition._replace(leader=NO_LEADER)
    return _prediction(partition, False, view)


def _returns(view: PartitionView) -> LeaderWait:
    partition = view.partition
    absent = tuple(replica for replica in partition.replicas if replica not in view.acceptable)
    elects = tuple(
        broker
        for broker in absent
        if _checked_registration(partition, view.acceptable | {broker}, view).leader == broker
    )
    clean = tuple(broker for broker in elects if not _unclean(partition, broker))
    if not elects:
        return LeaderWait(
            LeaderWaitReason.OPERATOR,
            (),
            True,
            "elects nobody by itself, whoever returns: an operator has to choose",
        )
    if len(clean) == len(elects):
        return LeaderWait(LeaderWaitReason.CLEAN_RETURN, elects, False, f"elects {_first_of(elects, view)}")
    if view.rules.elects_uncleanly:
        only = f"; only {_names(clean)} without an unclean election" if clean else ", uncleanly"
        return LeaderWait(
            LeaderWaitReason.ANY_REPLICA, elects, True, f"elects {_first_of(elects, view)}{only}"
        )
    return LeaderWait(
        LeaderWaitReason.LAST_KNOWN_LEADER,
        elects,
        True,
        f"elects {_first_of(elects, view)}: the last known leader, whose unflushed records may be gone",
    )


def _manager_waits(view: PartitionView) -> LeaderWait:
    step = recover(view.partition, view.acceptable, view.rules.strategy)
    if step.step is RecoveryStep.MANUAL:
        return LeaderWait(LeaderWaitReason.OPERATOR, (), True, step.reason)
    members = view.partition.isr or view.partition.elr
    if set(step.waits_for) == set(members) and members:
        return LeaderWait(
            LeaderWaitReason.CLEAN_RETURN, step.waits_for, False, f"elects {_first_of(step.waits_for, view)}"
        )
    names = _names(step.waits_for)
    return LeaderWait(
        LeaderWaitReason.LOGS, step.waits_for, True, f"asks for the logs of {names}: {step.reason}"
    )


def _checked_registration(
    partition: Registration,
    acceptable: frozenset[int],
    view: PartitionView,
    leaving: int = NO_LEADER,
    *,
    unclean_shutdown: bool = False,
) -> Registration:
    """``partition`` after the controller has checked it for an election, with ``leaving`` removed from the
    ISR.
    """
    gone = frozenset((leaving,))
    proposal = Proposal(
        acceptable - gone,
        view.min_isr,
        ElectionKind.UNCLEAN if view.rules.elects_uncleanly else ElectionKind.ONLINE,
        isr=without(partition.isr, gone),
        unclean_shutdown=gone if unclean_shutdown else frozenset(),
    )
    change = transition(partition, proposal, view.rules)
    return partition if change is None else merge(partition, change)


def _unclean(before: Registration, leader: int) -> bool:
    return leader not in (NO_LEADER, before.leader) and leader not in (*before.isr, *before.elr)


def _prediction(partition: Registration, unclean: bool, view: PartitionView) -> Prediction:
    return Prediction(partition, unclean, len(partition.isr) < view.min_isr)


def _first_of(brokers: tuple[int, ...], view: PartitionView) -> str:
    if len(brokers) > 1:
        return f"the first of {', '.join(map(str, brokers))} that returns"
    returns = {
        Standing.FENCED: "as soon as it is unfenced",
        Standing.OFFLINE_REPLICA: "as soon as its replica is online for the controller",
        Standing.UNREGISTERED: "as soon as it is registered and unfenced",
        Standing.ELECTABLE: "at once",
    }
    return f"{brokers[0]} {returns[view.standings.get(brokers[0], Standing.UNREGISTERED)]}"


def _names(brokers: tuple[int, ...]) -> str:
    return " and ".join(str(broker) for broker in brokers)
