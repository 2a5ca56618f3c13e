"""Checks the invariants of ``recovery.controller`` on every change that an active controller writes."""

from __future__ import annotations

from backends.simulator.events import MetadataWritten
from recovery.controller.cluster_image import ClusterImage
from recovery.controller.invariants import (
    Excuse,
    Invariant,
    Violation,
    state_violations,
    step_violations,
)
from recovery.controller.registration import Registration


def check_written(event: MetadataWritten) -> list[tuple[str, str]]:
    """(name, detail) of each invariant that the new state, or the step to it, breaks."""
    found = []
    general = _excuses(event.before, event.after)
    elr = event.after.rules.elr
    known: dict[tuple[int, int, int], list[Violation]] = {}
    for tp, change in event.changes.items():
        before, after = event.before.partitions[tp], event.after.partitions[tp]
        min_isr = event.after.effective_min_isr(tp.topic)
        # Equal partitions are one object, so equal steps are checked once.
        violations = known.get((id(before), id(after), min_isr))
        if violations is None:
            excuses = general | _own_excuses(before, after)
            violations = known[id(before), id(after), min_isr] = [
                *state_violations(after, min_isr, elr=elr, excuses=excuses),
                *step_violations(before, change, after, min_isr, elr=elr, excuses=excuses),
            ]
        found += [
            (str(violation.invariant), f"{tp}: {violation.detail}")
            for violation in violations
            # A partition that lost its whole ISR under the ELR has none when the ELR is switched off.
            if before.isr or violation.invariant is not Invariant.ISR_KEPT_WITHOUT_ELR
        ]
    return found


def _excuses(before: ClusterImage, after: ClusterImage) -> frozenset[Excuse]:
    excuses = set()
    epochs = {broker: registration.epoch for broker, registration in before.brokers.items()}
    if any(epochs.get(broker) != registration.epoch for broker, registration in after.brokers.items()):
        excuses.add(Excuse.UNCLEAN_SHUTDOWN)
    if before.min_isr != after.min_isr:
        excuses.add(Excuse.MIN_ISR_CHANGED)
    return frozenset(excuses)


def _own_excuses(before: Registration, after: Registration) -> frozenset[Excuse]:
    excuses = set()
    if unclean_election(before, after):
        excuses.add(Excuse.UNCLEAN_ELECTION)
    strangers = {*after.isr, *after.elr} - set(after.replicas)
    if before.replicas != after.replicas or before.reassigning or after.reassigning or strangers:
        excuses.add(Excuse.REASSIGNMENT)
    return frozenset(excuses)


def unclean_election(before: Registration, after: Registration) -> bool:
    """Whether the step elected a replica that was in neither ISR nor ELR."""
    new = after.leader != before.leader and after.has_leader
    return new and after.leader not in (*before.isr, *before.elr)
