"""What is asked of a partition, and the intermediate value that the rules of a transition hand on."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from recovery.controller.registration import LeaderRecoveryState, Registration
from recovery.model import NO_LEADER


class ElectionKind(StrEnum):
    """How far an election may go.

    PREFERRED puts the first replica first and ONLINE the present leader; both stay in the ISR, or in the ELR
    where the ISR is empty. UNCLEAN goes on to any live replica. DESIGNATED elects the named replica or nobody
    (recovery tool, "Designated Leader Elections").
    """

    PREFERRED = "PREFERRED"
    ONLINE = "ONLINE"
    UNCLEAN = "UNCLEAN"
    DESIGNATED = "DESIGNATED"


class Proposal(NamedTuple):
    """A change that is asked for; None means "as the partition has it".

    ``acceptable`` are the brokers that may lead the partition: unfenced, not in controlled shutdown, with the
    replica's log directory online. ``min_isr`` is the effective min.insync.replicas. ``unclean_shutdown`` are
    brokers found to have shut down uncleanly. ``designated`` is for DESIGNATED. ``new_directories`` are pairs of
    broker and directory id for replicas that are added.
    """

    acceptable: frozenset[int]
    min_isr: int
    election: ElectionKind = ElectionKind.ONLINE
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    leader_recovery_state: LeaderRecoveryState | None = None
    unclean_shutdown: frozenset[int] = frozenset()
    designated: int = NO_LEADER
    new_directories: tuple[tuple[int, str], ...] = ()


class Targets(NamedTuple):
    """Where the partition is going: the proposal over the registration, changed by one rule after the other."""

    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    replicas: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]


def targets_of(partition: Registration, proposal: Proposal) -> Targets:
    """The proposal, with what it leaves open taken from the registration."""
    return Targets(
        isr=partition.isr if proposal.isr is None else proposal.isr,
        elr=partition.elr,
        last_known_elr=partition.last_known_elr,
        replicas=partition.replicas if proposal.replicas is None else proposal.replicas,
        removing=partition.removing if proposal.removing is None else proposal.removing,
        adding=partition.adding if proposal.adding is None else proposal.adding,
    )


def without(brokers: tuple[int, ...], removed: frozenset[int] | tuple[int, ...]) -> tuple[int, ...]:
    """``brokers`` in order, less those in ``removed``."""
    return tuple(broker for broker in brokers if broker not in removed)
