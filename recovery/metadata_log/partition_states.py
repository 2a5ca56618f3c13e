"""The present state of every partition, folded from the metadata log, and the kind of each change."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from recovery.controller.registration import LeaderRecoveryState, Registration
from recovery.metadata_log.log_changes import Change, PartitionSubject, applied

_MOST_KNOWN_STEPS = 100_000


class EventKind(StrEnum):
    """The kinds of events. Those of partitions are ordered from the worst to the most harmless."""

    OFFLINE = "offline"
    UNCLEAN_ELECTION = "unclean election"
    ONLINE = "online again"
    REASSIGNMENT = "reassignment"
    LEADER_CHANGED = "leader changed"
    ISR_SHRANK = "ISR shrank"
    ISR_GREW = "ISR grew"
    ELR_CHANGED = "ELR changed"
    RECOVERY_ENDED = "recovery ended"
    REPLICA_ORDER = "replica order"
    PARTITION_CREATED = "partition created"
    PARTITION_DELETED = "partition deleted"
    LOG_DIR_ASSIGNED = "log dir assigned"
    BROKER_REGISTERED = "broker registered"
    BROKER_UNREGISTERED = "broker unregistered"
    BROKER_FENCED = "broker fenced"
    BROKER_UNFENCED = "broker unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    LOG_DIRS_CHANGED = "log dirs changed"
    CONTROLLER_REGISTERED = "controller registered"
    TOPIC_CREATED = "topic created"
    TOPIC_DELETED = "topic deleted"
    CONFIG_CHANGED = "config changed"
    FEATURE_CHANGED = "feature changed"


class PartitionStep(NamedTuple):
    """One partition before and after a change; None if it did not exist."""

    kind: EventKind
    before: Registration | None
    after: Registration | None


class PartitionStates:
    """``now``: every partition that exists. A topic's partitions mostly change alike: a step is computed once for
    all that have the same state object and the same change object.
    """

    def __init__(self) -> None:
        self.now: dict[PartitionSubject, Registration] = {}
        self._steps: dict[tuple[int, int], tuple[Registration | None, Change, PartitionStep | None]] = {}

    def take(self, subject: PartitionSubject, change: Change) -> PartitionStep | None:
        """Folds one change of the partition; None if it changes nothing."""
        before = self.now.get(subject)
        key = id(before), id(change)
        known = self._steps.get(key)
        if known is None:
            if len(self._steps) >= _MOST_KNOWN_STEPS:
                self._steps.clear()
            # The objects are held, so that no other object gets their ids.
            known = self._steps[key] = before, change, _step(before, change)
        step = known[2]
        if step is not None:
            if step.after is None:
                del self.now[subject]
            else:
                self.now[subject] = step.after
        return step


def _step(before: Registration | None, change: Change) -> PartitionStep | None:
    after = applied(before, change)
    return None if before == after else PartitionStep(kind_of_move(before, after), before, after)


def kind_of_move(before: Registration | None, after: Registration | None) -> EventKind:
    """The kind of event of a partition's change. If several fit, the worst."""
    if after is None:
        return EventKind.PARTITION_DELETED
    if before is None:
        return EventKind.PARTITION_CREATED
    if before.leader != after.leader:
        if not after.has_leader:
            return EventKind.OFFLINE
        if is_unclean(before, after):
            return EventKind.UNCLEAN_ELECTION
        if not before.has_leader:
            return EventKind.ONLINE
    return _kind_by_replicas(before, after)


def _kind_by_replicas(before: Registration, after: Registration) -> EventKind:
    """The kind of a change in which the partition neither lost its leader nor got one again. It must be quick:
    a log has millions of changes.
    """
    other_order = before.replicas != after.replicas
    moving = before.adding != after.adding or before.removing != after.removing
    if moving or (other_order and sorted(before.replicas) != sorted(after.replicas)):
        return EventKind.REASSIGNMENT
    if before.leader != after.leader:
        return EventKind.LEADER_CHANGED
    was, now = set(before.isr), set(after.isr)
    if was != now:
        return EventKind.ISR_GREW if was < now else EventKind.ISR_SHRANK
    if other_order:
        return EventKind.REPLICA_ORDER
    return _kind_by_state(before, after)


def _kind_by_state(before: Registration, after: Registration) -> EventKind:
    if (before.elr, before.last_known_elr) != (after.elr, after.last_known_elr):
        return EventKind.ELR_CHANGED
    if before.leader_recovery_state != after.leader_recovery_state:
        return EventKind.RECOVERY_ENDED
    new_epoch = before.leader_epoch != after.leader_epoch
    return EventKind.LEADER_CHANGED if new_epoch else EventKind.LOG_DIR_ASSIGNED


def is_unclean(before: Registration, after: Registration) -> bool:
    """Whether the leader of ``after`` was elected from outside ISR and ELR: acknowledged records may be gone."""
    if after.leader_recovery_state is LeaderRecoveryState.RECOVERING:
        return True
    return after.has_leader and after.leader not in (*before.isr, *before.elr)
