"""What must hold of every partition, and of every step from one state to the next, by name (KIP-966, "ELR
invariants"). A simulator checks them after each step; a violation is a defect of the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from recovery.controller.registration import PartitionChange, Registration, merge
from recovery.model import NO_LEADER


class Invariant(StrEnum):
    """The invariants' names."""

    ELR_OUTSIDE_ISR = "no member of the ELR is in the ISR"
    ELR_ONLY_UNDER_MIN_ISR = "an ELR exists only while the ISR is under min ISR"
    LEADER_IN_ISR = "the leader is in the ISR"
    MEMBERS_ARE_REPLICAS = "ISR and ELR members are replicas"
    NO_MEMBER_TWICE = "no broker is listed twice"
    ISR_KEPT_WITHOUT_ELR = "without the ELR feature the ISR is never empty"
    DURABLE_MEMBERS_KEPT = "ISR and ELR together do not drop below min ISR"
    ONLY_RECORDS_CHANGE = "nothing changes without a record"
    NO_EMPTY_RECORD = "a record changes something"
    EPOCHS_RISE = "a new leader has a new leader epoch, and every record a new partition epoch"


class Excuse(StrEnum):
    """The allowed exceptions to the invariants: those that KIP-966 names, and those that shipped Kafka adds.

    UNCLEAN_SHUTDOWN and UNCLEAN_ELECTION remove members permanently. MIN_ISR_CHANGED empties the ELR as
    shipped. REASSIGNMENT removes replicas, and as shipped leaves removed ones in the ELR; of partition 0 it
    also changes the topic's effective min ISR.
    """

    UNCLEAN_SHUTDOWN = "unclean shutdown"
    UNCLEAN_ELECTION = "unclean election"
    MIN_ISR_CHANGED = "min ISR changed"
    REASSIGNMENT = "reassignment"


class Violation(NamedTuple):
    """A broken invariant, and the values that break it in one line."""

    invariant: Invariant
    detail: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.detail}"


def state_violations(
    partition: Registration, min_isr: int, *, elr: bool, excuses: frozenset[Excuse] = frozenset()
) -> Iterator[Violation]:
    """What is wrong with a partition in its current state. ``min_isr`` is effective, ``elr`` whether the
    feature is on.
    """
    isr, members = set(partition.isr), set(partition.elr)
    shared = isr & members
    if shared:
        yield Violation(Invariant.ELR_OUTSIDE_ISR, f"{sorted(shared)} in both")
    reassigned = Excuse.REASSIGNMENT in excuses
    if members and len(isr) >= min_isr and not reassigned:
        yield Violation(
            Invariant.ELR_ONLY_UNDER_MIN_ISR, f"ISR {sorted(isr)}, ELR {sorted(members)}, min ISR {min_isr}"
        )
    if partition.has_leader and partition.leader not in isr:
        yield Violation(Invariant.LEADER_IN_ISR, f"leader {partition.leader}, ISR {sorted(isr)}")
    strangers = (isr if reassigned else isr | members) - set(partition.replicas)
    if strangers:
        yield Violation(Invariant.MEMBERS_ARE_REPLICAS, f"{sorted(strangers)}")
    for name, brokers in (
        ("replicas", partition.replicas),
        ("ISR", partition.isr),
        ("ELR", partition.elr),
        ("LastKnownELR", partition.last_known_elr),
    ):
        if len(set(brokers)) != len(brokers) or NO_LEADER in brokers:
            yield Violation(Invariant.NO_MEMBER_TWICE, f"{name} {brokers}")
    if not elr and not isr:
        yield Violation(Invariant.ISR_KEPT_WITHOUT_ELR, "the ISR is empty")


def step_violations(
    before: Registration,
    change: PartitionChange | None,
    after: Registration,
    min_isr: int,
    *,
    elr: bool,
    excuses: frozenset[Excuse] = frozenset(),
) -> Iterator[Violation]:
    """What is wrong with a step. ``min_isr`` is the one that the step was decided with."""
    if change is None:
        if after != before:
            yield Violation(Invariant.ONLY_RECORDS_CHANGE, f"{before} became {after}")
        return
    if merge(before, change) != after:
        yield Violation(Invariant.ONLY_RECORDS_CHANGE, f"{change} does not lead to {after}")
    unchanged = after._replace(leader_epoch=before.leader_epoch, partition_epoch=before.partition_epoch)
    if unchanged == before and change.leader is None:
        yield Violation(Invariant.NO_EMPTY_RECORD, f"{change}")
    led = after.leader_epoch - before.leader_epoch
    if after.partition_epoch != before.partition_epoch + 1 or led != (change.leader is not None):
        yield Violation(Invariant.EPOCHS_RISE, f"{before} to {after}")
    if after.leader != before.leader and led != 1:
        yield Violation(Invariant.EPOCHS_RISE, f"leader {before.leader} to {after.leader} in one epoch")
    if elr and not excuses:
        durable_after = len({*after.isr, *after.elr})
        durable_before = len({*before.isr, *before.elr})
        if durable_after < min(durable_before, min_isr):
            yield Violation(
                Invariant.DURABLE_MEMBERS_KEPT,
                f"{durable_before} members became {durable_after}, min ISR is {min_isr}",
            )
