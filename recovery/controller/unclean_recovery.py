"""KIP-966's unclean recovery manager: which replica to elect, from the replicas' log infos. Not in any
release.

Shipped Kafka elects the first live replica instead; the plan of this project ranks with
:mod:`recovery.ranking`. Here is what the specified controller would do, for the simulator and for comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from recovery.controller.registration import Registration
from recovery.controller.rules import UncleanRecoveryStrategy
from recovery.controller.transition_targets import without
from recovery.model import NO_LEADER


class LogInfo(NamedTuple):
    """A replica's answer to KIP-966's GetReplicaLogInfo.

    ``current_leader_epoch`` is the partition's, as the replica's metadata has it; ``last_written_leader_epoch``
    that of its last record; ``broker_epoch`` that of the incarnation that answered.
    """

    broker: int
    broker_epoch: int
    current_leader_epoch: int
    last_written_leader_epoch: int
    log_end_offset: int


class RecoveryStep(StrEnum):
    """What the manager does next."""

    NOT_NEEDED = "not needed"
    WAIT = "wait"
    ELECT = "elect"
    MANUAL = "manual"


class RecoveryDecision(NamedTuple):
    """``leader`` is -1 unless the step is ELECT; ``waits_for`` are brokers that must return or answer; ``rejected``
    are answers that do not count, with the reason.
    """

    step: RecoveryStep
    reason: str
    leader: int = NO_LEADER
    waits_for: tuple[int, ...] = ()
    rejected: tuple[tuple[int, str], ...] = ()


def recover(
    partition: Registration,
    acceptable: frozenset[int],
    strategy: UncleanRecoveryStrategy,
    answers: Iterable[LogInfo] = (),
    broker_epochs: Mapping[int, int] | None = None,
    *,
    timed_out: bool = False,
) -> RecoveryDecision:
    """The next step for ``partition`` (KIP-966, "Unclean recovery").

    ``timed_out`` tells that ``unclean.recovery.timeout.ms`` has passed. Balanced with an empty LastKnownELR has
    nobody that must answer: the text asks for all of its members, and there are none.
    """
    early = _before_asking(partition, acceptable, strategy)
    if early is not None:
        return early
    valid, rejected = _sift(partition, acceptable, answers, broker_epochs or {})
    required = partition.last_known_elr if strategy is UncleanRecoveryStrategy.BALANCED else ()
    missing = without(required, frozenset(valid))
    if missing:
        return _wait("LastKnownELR members have to answer", missing, rejected)
    outstanding = tuple(r for r in partition.replicas if r in acceptable and r not in valid)
    if not valid:
        return _wait("no replica has answered", outstanding or partition.replicas, rejected)
    if outstanding and not timed_out:
        return _wait("replicas may still answer in time", outstanding, rejected)
    best = max(
        (broker for broker in partition.replicas if broker in valid),
        key=lambda broker: (valid[broker].last_written_leader_epoch, valid[broker].log_end_offset),
    )
    return RecoveryDecision(
        RecoveryStep.ELECT, "the highest leader epoch, then the longest log", best, (), rejected
    )


def _before_asking(
    partition: Registration, acceptable: frozenset[int], strategy: UncleanRecoveryStrategy
) -> RecoveryDecision | None:
    members = partition.isr or partition.elr
    if partition.has_leader or acceptable.intersection(members):
        return RecoveryDecision(
            RecoveryStep.NOT_NEEDED, "the partition has a leader, or a clean election finds one"
        )
    if strategy is UncleanRecoveryStrategy.AGGRESSIVE:
        return None
    if members:
        return _wait("ISR or ELR members have to return", members, ())
    if strategy is UncleanRecoveryStrategy.NONE:
        return RecoveryDecision(RecoveryStep.MANUAL, "the strategy is None: an operator chooses")
    fenced = without(partition.last_known_elr, acceptable)
    return _wait("LastKnownELR members have to return", fenced, ()) if fenced else None


def _sift(
    partition: Registration,
    acceptable: frozenset[int],
    answers: Iterable[LogInfo],
    broker_epochs: Mapping[int, int],
) -> tuple[dict[int, LogInfo], tuple[tuple[int, str], ...]]:
    """Each broker's newest answer that counts: of its present incarnation and the partition's present epoch."""
    valid = {}
    rejected = []
    for answer in answers:
        if answer.broker not in partition.replicas:
            rejected.append((answer.broker, "is not a replica"))
        elif answer.broker not in acceptable:
            rejected.append((answer.broker, "cannot be elected"))
        elif broker_epochs.get(answer.broker) != answer.broker_epoch:
            rejected.append((answer.broker, "has restarted since it answered"))
        elif answer.current_leader_epoch != partition.leader_epoch:
            rejected.append((answer.broker, "answered for another leader epoch"))
        else:
            valid[answer.broker] = answer
    return valid, tuple(rejected)


def _wait(reason: str, brokers: tuple[int, ...], rejected: tuple[tuple[int, str], ...]) -> RecoveryDecision:
    return RecoveryDecision(RecoveryStep.WAIT, reason, NO_LEADER, brokers, rejected)
