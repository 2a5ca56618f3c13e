"""The events in the metadata log: what happened, which partitions it changed, and what caused it.

The controller writes one event as one batch. So a partition's change and the fencing of a broker in the same batch
belong together if the change shows that broker: it left the ISR, or it lost or won the leadership.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from recovery.controller.registration import Registration
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import IN_SNAPSHOT, Change, HistoryRow, PartitionSubject
from recovery.metadata_log.partition_states import EventKind, PartitionStates, PartitionStep
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from recovery.model import TopicPartition


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
    change of a broker that explains it, None if the log does not show one. ``refused`` says why every node that
    replays this record ends, "" where Kafka takes it.
    """

    time_ms: int
    offset: int
    kind: EventKind
    row: HistoryRow | None
    moves: tuple[PartitionMove, ...]
    cause: HistoryRow | None
    refused: str = ""

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
        self._states = PartitionStates()

    def events(self, since_ms: int | None = None) -> Iterator[ClusterEvent]:
        """The events since the last call, in the order of the log; with ``since_ms`` those of batches with a change
        at that time or later. What came before is only followed, which takes a third of the time.
        """
        new = islice(self.history.rows(self._returned), len(self.history) - self._returned)
        for batch, same_batch in groupby(new, key=lambda row: row.batch):
            rows = list(same_batch)
            self._returned += len(rows)
            # The state in a snapshot is the starting point, not an event.
            if batch == IN_SNAPSHOT or (since_ms is not None and all(row.time_ms < since_ms for row in rows)):
                for row in rows:
                    if isinstance(row.subject, PartitionSubject):
                        self._states.take(row.subject, row.change)
            else:
                yield from _of_batch(self.history, rows, self._states)


def events(history: MetadataHistory) -> Iterator[ClusterEvent]:
    """All events, in the order of the log."""
    return MetadataTimeline(history).events()


def _of_batch(
    history: MetadataHistory, rows: list[HistoryRow], states: PartitionStates
) -> Iterator[ClusterEvent]:
    causes = [row for row in rows if isinstance(row.change, CAUSES)]
    moved: dict[tuple[EventKind, HistoryRow | None], list[PartitionMove]] = {}
    first: dict[tuple[EventKind, HistoryRow | None], HistoryRow] = {}
    others: list[ClusterEvent] = []
    for row in rows:
        if not isinstance(row.subject, PartitionSubject):
            kind, record = kind_of_change(row.change), history.refused.get(row.offset)
            refused = "" if record is None else record.why
            if kind is not None or refused:
                kind = kind or EventKind.LOG_DIRS_CHANGED
                others.append(ClusterEvent(row.time_ms, row.offset, kind, row, (), None, refused))
            continue
        taken = states.take(row.subject, row.change)
        if taken is None:
            continue
        step = taken.step
        name = history.topic_name(row.subject.topic_id) or row.subject.topic_id
        move = PartitionMove(TopicPartition(name, row.subject.partition), *step)
        group = (move.kind, cause_of(step, causes))
        moved.setdefault(group, []).append(move)
        first.setdefault(group, row)
    partitions = [
        ClusterEvent(first[group].time_ms, first[group].offset, group[0], None, tuple(moves), group[1])
        for group, moves in moved.items()
    ]
    # The controller writes the changes of the partitions before the fencing that caused them.
    yield from sorted((*others, *partitions), key=lambda event: (event.row is None, event.offset))


CAUSES = (BrokerRegistrationChangeRecord, RegisterBrokerRecord)


def cause_of(step: PartitionStep, causes: Sequence[HistoryRow]) -> HistoryRow | None:
    """The change of a broker in the same batch that explains this change of a partition."""
    if not causes:
        return None
    if step.before is None or step.after is None:
        return None
    left = (set(step.before.isr) - set(step.after.isr)) | (set(step.before.elr) - set(step.after.elr))
    if step.before.leader != step.after.leader:
        left.add(step.before.leader)
    came = {step.after.leader} if step.after.leader != step.before.leader else set()
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


def kind_of_change(change: Change) -> EventKind | None:
    """The kind of a change of a broker, topic, configuration or feature; None if it is no event."""
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
    UnregisterControllerRecord: EventKind.CONTROLLER_UNREGISTERED,
    TopicRecord: EventKind.TOPIC_CREATED,
    RemoveTopicRecord: EventKind.TOPIC_DELETED,
    ConfigRecord: EventKind.CONFIG_CHANGED,
    FeatureLevelRecord: EventKind.FEATURE_CHANGED,
}
