"""The present state of every partition, folded from the metadata log, and the kind of each change."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from recovery.controller.registration import (
    LeaderRecoveryState,
    PartitionChange,
    Registration,
    added_by_leader,
    merge,
)
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
    CONTROLLER_UNREGISTERED = "controller unregistered"
    TOPIC_CREATED = "topic created"
    TOPIC_DELETED = "topic deleted"
    CONFIG_CHANGED = "config changed"
    FEATURE_CHANGED = "feature changed"


class PartitionStep(NamedTuple):
    """One partition before and after a change; None if it did not exist."""

    kind: EventKind
    before: Registration | None
    after: Registration | None


class EpochState(NamedTuple):
    """A partition's registration as ``shape``, whose two epochs are 0, and its epochs."""

    shape: Registration
    leader_epoch: int
    partition_epoch: int

    @property
    def registration(self) -> Registration:
        shape, leader_epoch, partition_epoch = self
        return shape._replace(leader_epoch=leader_epoch, partition_epoch=partition_epoch)


class TakenChange(NamedTuple):
    """What a change did to a partition. Most changes of a large log are of no interest, so :attr:`step` is made
    only when it is asked for.
    """

    kind: EventKind
    before: EpochState | None
    after: EpochState | None

    @property
    def step(self) -> PartitionStep:
        before, after = self.before, self.after
        return PartitionStep(self.kind, before and before.registration, after and after.registration)


class PartitionStates:
    """``now``: every partition that exists.

    Partitions differ in their epochs, and are alike in the rest. So what a change does to a shape is computed once.
    """

    def __init__(self, now: dict[PartitionSubject, EpochState] | None = None) -> None:
        self.now: dict[PartitionSubject, EpochState] = {} if now is None else now
        self._shapes: dict[Registration, Registration] = {
            state.shape: state.shape for state in self.now.values()
        }
        self._steps: dict[tuple[int, int], _KnownStep] = {}

    def take(self, subject: PartitionSubject, change: Change) -> TakenChange | None:
        """Folds one change of the partition; None if it changes nothing."""
        before = self.now.get(subject)
        if before is None or type(change) is not PartitionChange:
            return self._take_other(subject, before, change)
        shape, leader_epoch, partition_epoch = before
        known = self._steps.get((id(shape), id(change)))
        if known is None:
            known = self._learn(shape, change)
        after = EpochState(known.after, leader_epoch + known.leader_epochs, partition_epoch + 1)
        self.now[subject] = after
        return TakenChange(known.kind, before, after)

    def _learn(self, shape: Registration, change: PartitionChange) -> _KnownStep:
        if len(self._steps) >= _MOST_KNOWN_STEPS:
            self._steps.clear()
        after = merge(shape, change)
        known = _KnownStep(
            kind_of_move(shape, after), self._shape_of(after), after.leader_epoch, shape, change
        )
        self._steps[id(shape), id(change)] = known
        return known

    def _take_other(
        self, subject: PartitionSubject, state: EpochState | None, change: Change
    ) -> TakenChange | None:
        before = None if state is None else state.registration
        after = applied(before, change)
        if before == after:
            return None
        kind = kind_of_move(before, after)
        if after is None:
            return TakenChange(kind, self.now.pop(subject), None)
        self.put(subject, after)
        return TakenChange(kind, state, self.now[subject])

    def put(self, subject: PartitionSubject, after: Registration) -> None:
        """The partition is in that state."""
        self.now[subject] = EpochState(self._shape_of(after), after.leader_epoch, after.partition_epoch)

    def _shape_of(self, registration: Registration) -> Registration:
        shape = registration._replace(leader_epoch=0, partition_epoch=0)
        return self._shapes.setdefault(shape, shape)


class _KnownStep(NamedTuple):
    """``shape`` and ``change`` are held, so that no other objects get their ids."""

    kind: EventKind
    after: Registration
    leader_epochs: int
    shape: Registration
    change: PartitionChange


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
    outside = after.has_leader and after.leader not in (*before.isr, *before.elr)
    return outside and not added_by_leader(before, after, after.leader)
