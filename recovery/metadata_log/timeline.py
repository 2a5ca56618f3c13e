"""The events in the metadata log: what happened, which partitions it changed, and what caused it.

The controller writes one event as one batch. So a partition's change and the fencing of a broker in the same batch
belong together if the change shows that broker: it left the ISR, or it lost or won the leadership.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import groupby, islice
from typing import NamedTuple

from recovery.controller.registration import LeaderRecoveryState, Registration
from recovery.metadata_log.history import IN_SNAPSHOT, HistoryRow, MetadataHistory, PartitionSubject, applied
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from recovery.model import TopicPartition


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


class PartitionMove(NamedTuple):
    """A partition before and after one change; None if it did not exist.

    If the topic's name is not in the log, its id stands for it.
    """

    tp: TopicPartition
    kind: EventKind
    before: Registration | None
    after: Registration | None


class ClusterEvent(NamedTuple):
    """An event at ``time_ms``, and the partitions that it changed in the same way.

    ``row`` is the change of a broker, topic or configuration; None if only partitions changed. ``cause`` is the
    change of a broker that explains it, None if the log does not show one.
    """

    time_ms: int
    offset: int
    kind: EventKind
    row: HistoryRow | None
    moves: tuple[PartitionMove, ...]
    cause: HistoryRow | None

    @property
    def brokers(self) -> frozenset[int]:
        """Every broker that the event concerns."""
        named = {
            row.change.broker for row in (self.row, self.cause) if row and isinstance(row.change, _BROKER)
        }
        for move in self.moves:
            for state in (move.before, move.after):
                named.update(() if state is None else (*state.isr, *state.elr, state.leader))
        return frozenset(named - {-1})

    @property
    def topics(self) -> frozenset[str]:
        named = {move.tp.topic for move in self.moves}
        change = None if self.row is None else self.row.change
        if isinstance(change, TopicRecord):
            named.add(change.name)
        return frozenset(named)


_BROKER = (RegisterBrokerRecord, UnregisterBrokerRecord, BrokerRegistrationChangeRecord)


class MetadataTimeline:
    """The events of a history that may still grow. Each event is returned once."""

    def __init__(self, history: MetadataHistory) -> None:
        self.history = history
        self._returned = 0
        self._now: dict[PartitionSubject, Registration | None] = {}

    def events(self) -> Iterator[ClusterEvent]:
        """The events since the last call, in the order of the log."""
        new = islice(self.history.rows(self._returned), len(self.history) - self._returned)
        for batch, same_batch in groupby(new, key=lambda row: row.batch):
            rows = list(same_batch)
            self._returned += len(rows)
            found = _of_batch(self.history, rows, self._now)
            if batch == IN_SNAPSHOT:
                for _ in found:  # the state in a snapshot is the starting point, not an event
                    pass
            else:
                yield from found


def events(history: MetadataHistory) -> Iterator[ClusterEvent]:
    """All events, in the order of the log."""
    return MetadataTimeline(history).events()


def _of_batch(
    history: MetadataHistory, rows: list[HistoryRow], now: dict[PartitionSubject, Registration | None]
) -> Iterator[ClusterEvent]:
    causes = [
        row for row in rows if isinstance(row.change, (BrokerRegistrationChangeRecord, RegisterBrokerRecord))
    ]
    moved: dict[tuple[EventKind, HistoryRow | None], list[PartitionMove]] = {}
    first: dict[tuple[EventKind, HistoryRow | None], HistoryRow] = {}
    others: list[ClusterEvent] = []
    for row in rows:
        if not isinstance(row.subject, PartitionSubject):
            kind = _kind_of(row)
            if kind is not None:
                others.append(ClusterEvent(row.time_ms, row.offset, kind, row, (), None))
            continue
        before = now.get(row.subject)
        after = now[row.subject] = applied(before, row.change)
        if before == after:
            continue
        name = history.topic_name(row.subject.topic_id) or row.subject.topic_id
        move = PartitionMove(
            TopicPartition(name, row.subject.partition), kind_of_move(before, after), before, after
        )
        group = (move.kind, _cause(move, causes))
        moved.setdefault(group, []).append(move)
        first.setdefault(group, row)
    partitions = [
        ClusterEvent(first[group].time_ms, first[group].offset, group[0], None, tuple(moves), group[1])
        for group, moves in moved.items()
    ]
    # The controller writes the changes of the partitions before the fencing that caused them.
    yield from sorted((*others, *partitions), key=lambda event: (event.row is None, event.offset))


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


def _cause(move: PartitionMove, causes: list[HistoryRow]) -> HistoryRow | None:
    """The change of a broker in the same batch that explains this move."""
    if not causes:
        return None
    if move.before is None or move.after is None:
        return None
    left = (set(move.before.isr) - set(move.after.isr)) | (set(move.before.elr) - set(move.after.elr))
    if move.before.leader != move.after.leader:
        left.add(move.before.leader)
    came = {move.after.leader} if move.after.leader != move.before.leader else set()
    for row in causes:
        change = row.change
        if isinstance(change, RegisterBrokerRecord):
            # A broker that registers again is only removed from ISR and ELR after an unclean shutdown (KIP-966).
            explained = change.broker in left
        elif isinstance(change, BrokerRegistrationChangeRecord):
            explained = change.broker in (came if change.fenced is False else left)
        else:
            explained = False
        if explained:
            return row
    return None


def _kind_of(row: HistoryRow) -> EventKind | None:
    change = row.change
    if isinstance(change, BrokerRegistrationChangeRecord):
        if change.fenced is not None:
            return EventKind.BROKER_FENCED if change.fenced else EventKind.BROKER_UNFENCED
        if change.in_controlled_shutdown:
            return EventKind.CONTROLLED_SHUTDOWN
        # After every registration comes a change that lists no cordoned log dir.
        return EventKind.LOG_DIRS_CHANGED if change.directories is not None or change.cordoned else None
    return _KINDS.get(type(change))


_KINDS: dict[type, EventKind] = {
    RegisterBrokerRecord: EventKind.BROKER_REGISTERED,
    UnregisterBrokerRecord: EventKind.BROKER_UNREGISTERED,
    RegisterControllerRecord: EventKind.CONTROLLER_REGISTERED,
    TopicRecord: EventKind.TOPIC_CREATED,
    RemoveTopicRecord: EventKind.TOPIC_DELETED,
    ConfigRecord: EventKind.CONFIG_CHANGED,
    FeatureLevelRecord: EventKind.FEATURE_CHANGED,
}
