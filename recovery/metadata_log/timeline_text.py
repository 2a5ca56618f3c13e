"""The timeline in plain words: one line for each event."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from recovery.controller.registration import Registration
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import BrokerSubject, ConfigSubject, HistoryRow
from recovery.metadata_log.partition_states import EventKind
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    ResourceType,
    TopicRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from recovery.metadata_log.timeline import ClusterEvent, PartitionMove
from recovery.secret_names import names_secret

NAMED = 3
"""The number of partitions that are named in a line; the others are counted."""


def event_text(event: ClusterEvent, history: MetadataHistory) -> str:
    """One event in one line, without its time."""
    if event.row is not None:
        text = _row_text(event.row, history)
        if event.refused:
            where = f"REFUSED by Kafka at offset {event.offset}, every node that replays it ends"
            text += f": {where} ({event.refused})"
        return text
    why = f" ({_cause_text(event.cause, history)})" if event.cause is not None else ""
    if len(event.moves) == 1:
        return f"{event.moves[0].tp} {_move_text(event.moves[0])}{why}"
    between = "; " if event.kind is EventKind.OFFLINE else ", "
    names = between.join(_named_move(event.kind, move) for move in event.moves[:NAMED])
    more = f" and {len(event.moves) - NAMED:,} more" if len(event.moves) > NAMED else ""
    return f"{len(event.moves):,} partitions {_MANY[event.kind]}{why}: {names}{more}"


def moves_text(event: ClusterEvent, limit: int) -> tuple[str, ...]:
    """What became of each partition of an event that changed several, a sentence each; of the first ``limit``."""
    if len(event.moves) < 2:  # the event's own sentence says it
        return ()
    return tuple(f"{move.tp} {_move_text(move)}" for move in event.moves[:limit])


def _named_move(kind: EventKind, move: PartitionMove) -> str:
    if kind is EventKind.OFFLINE and move.after is not None:
        return f"{move.tp} now {_safe(move.after)}"
    return str(move.tp)


_MANY = {
    EventKind.OFFLINE: "OFFLINE",
    EventKind.UNCLEAN_ELECTION: "have a leader after an UNCLEAN election",
    EventKind.ONLINE: "have a leader again",
    EventKind.LEADER_CHANGED: "have another leader",
    EventKind.ISR_SHRANK: "lost a member of their ISR",
    EventKind.ISR_GREW: "gained a member of their ISR",
    EventKind.ELR_CHANGED: "have another ELR",
    EventKind.RECOVERY_ENDED: "have ended the recovery from an unclean election",
    EventKind.REASSIGNMENT: "are being reassigned, or have been",
    EventKind.REPLICA_ORDER: "have their replicas in another order",
    EventKind.PARTITION_CREATED: "created",
    EventKind.PARTITION_DELETED: "deleted",
    EventKind.LOG_DIR_ASSIGNED: "have a replica assigned to a log dir",
}


# One partition


def _move_text(move: PartitionMove) -> str:
    if move.before is None or move.after is None:
        state = move.after
        if state is None:
            return "deleted"
        return f"created on brokers {_listed(state.replicas)}, {_led(state)}"
    return _MOVES[move.kind](move.before, move.after)


def _led(state: Registration) -> str:
    return f"led by {state.leader}" if state.has_leader else "without a leader"


def _offline(before: Registration, after: Registration) -> str:
    # With the ELR off, the last member stays in the ISR.
    return f"OFFLINE: the last ISR member was {_listed(before.isr)}; now {_safe(after)}"


def _unclean(before: Registration, after: Registration) -> str:
    return f"led by {after.leader} after an UNCLEAN election: {after.leader} was not in the {_safe(before)}"


def _shrank(before: Registration, after: Registration) -> str:
    return f"lost {_listed(set(before.isr) - set(after.isr))} from its ISR, now {_listed(after.isr)}"


def _grew(before: Registration, after: Registration) -> str:
    return f"has {_listed(set(after.isr) - set(before.isr))} in its ISR again, now {_listed(after.isr)}"


def _reassigned(_before: Registration, after: Registration) -> str:
    if after.adding or after.removing:
        return f"reassignment: adding {_listed(after.adding)}, removing {_listed(after.removing)}"
    return f"reassignment ended: replicas {_listed(after.replicas)}, {_led(after)}"


def _safe(state: Registration) -> str:
    """The replicas that hold every committed record, by the controller's state."""
    text = f"ISR ({_listed(state.isr)}), ELR ({_listed(state.elr)})"
    return f"{text}, last known leader {_listed(state.last_known_elr)}" if state.last_known_elr else text


_MOVES: dict[EventKind, Callable[[Registration, Registration], str]] = {
    EventKind.OFFLINE: _offline,
    EventKind.UNCLEAN_ELECTION: _unclean,
    EventKind.ONLINE: lambda _, new: f"led by {new.leader} again; ISR {_listed(new.isr)}",
    EventKind.LEADER_CHANGED: lambda old, new: f"{_led(new)}, was {old.leader}; ISR {_listed(new.isr)}",
    EventKind.ISR_SHRANK: _shrank,
    EventKind.ISR_GREW: _grew,
    EventKind.ELR_CHANGED: lambda old, new: f"ELR is {_listed(new.elr)}, was {_listed(old.elr)}",
    EventKind.RECOVERY_ENDED: lambda _, new: f"leader {new.leader} has recovered from the unclean election",
    EventKind.REASSIGNMENT: _reassigned,
    EventKind.REPLICA_ORDER: lambda old, new: (
        f"replicas in the order {_listed(new.replicas)}, was {_listed(old.replicas)}"
    ),
    EventKind.LOG_DIR_ASSIGNED: lambda _, __: "a replica has been assigned to a log dir",
}


# Brokers, topics, configurations


def _row_text(row: HistoryRow, history: MetadataHistory) -> str:
    if isinstance(row.change, RemoveTopicRecord):
        return f"topic {history.topic_name(row.change.topic_id) or row.change.topic_id} deleted"
    if isinstance(row.change, BrokerRegistrationChangeRecord):
        # The broker's whole history is read for its log dirs: not for each of its fences too.
        before = None if row.change.directories is None else _log_dirs_before(row, history)
        return _registration_changed(row.change, before)
    if isinstance(row.change, RegisterBrokerRecord):
        return _registered(row.change, _new_log_dirs(row, row.change.directories, history))
    return _ROWS[type(row.change)](row.change)


def _cause_text(row: HistoryRow, history: MetadataHistory) -> str:
    """A broker's change, as the cause of another event."""
    if isinstance(row.change, RegisterBrokerRecord):
        return f"broker {row.change.broker} registered again after an unclean shutdown"
    return _row_text(row, history)


def _log_dirs_before(row: HistoryRow, history: MetadataHistory) -> tuple[str, ...] | None:
    """The ids of the broker's log dirs that were online before this change; None: the log does not show it."""
    assert isinstance(row.subject, BrokerSubject)
    return (None, *history.online_dirs(row.subject.broker, row.offset))[-1]


def _new_log_dirs(row: HistoryRow, now: tuple[str, ...], history: MetadataHistory) -> int:
    """How many log dirs the broker has never had before, as far as the log shows it: one that failed and was
    repaired is not new. Read only as far as needed.
    """
    assert isinstance(row.subject, BrokerSubject)
    unseen, before = set(now), False
    for online in history.online_dirs(row.subject.broker, row.offset):
        if not unseen:
            break
        before = before or bool(online)
        unseen.difference_update(online)
    return len(unseen) if before else 0


def _registered(broker: RegisterBrokerRecord, new: int) -> str:
    rack = f", rack {broker.rack}" if broker.rack else ""
    # The id of a log dir is in its meta.properties: a broker that finds none there writes a new one.
    disks = ""
    if new:
        ids = "a NEW directory id" if new == 1 else f"{new} NEW directory ids"
        disks = f", with {ids}: its disk was replaced or formatted, or meta.properties lost the id"
    return f"broker {broker.broker} registered with broker epoch {broker.broker_epoch}{rack}{disks}"


def _registration_changed(change: BrokerRegistrationChangeRecord, before: tuple[str, ...] | None) -> str:
    if change.fenced is not None:
        return f"broker {change.broker} {'fenced' if change.fenced else 'unfenced'}"
    if change.in_controlled_shutdown:
        return f"broker {change.broker} began a controlled shutdown"
    if change.directories is not None:
        return f"broker {change.broker}: {_online_dirs(change.directories, before)}"
    return f"broker {change.broker}: {_log_dirs(change.cordoned or ())} cordoned"


def _online_dirs(now: tuple[str, ...], before: tuple[str, ...] | None) -> str:
    """A running broker takes a log dir out of this list only when it fails."""
    failed = len(set(before or ()) - set(now))
    if not failed or before is None:
        return f"{_log_dirs(now)} online"
    return f"{'a log dir' if failed == 1 else f'{failed} log dirs'} FAILED, {len(now)} of {len(before)} left"


def _log_dirs(directories: tuple[str, ...]) -> str:
    return f"{len(directories)} log dir" if len(directories) == 1 else f"{len(directories)} log dirs"


def _configured(config: ConfigRecord) -> str:
    return f"{config.key} {_value_text(config)} for {config_resource(config)}"


def _value_text(config: ConfigRecord) -> str:
    """The metadata log contains passwords in plain text, and timelines are shared."""
    if config.value is None:
        return "removed"
    return "set (its value is not shown)" if names_secret(config.key) else f"set to {config.value}"


def config_resource(config: ConfigRecord | ConfigSubject) -> str:
    """What a configuration belongs to."""
    try:
        kind = ResourceType(config.resource_type)
    except ValueError:
        return f"resource {config.resource} of type {config.resource_type}"
    if kind is ResourceType.BROKER and not config.resource:
        return "all brokers"
    return f"{kind.name.lower().replace('_', ' ')} {config.resource}"


_ROWS: dict[type, Callable[[Any], str]] = {
    ConfigRecord: _configured,
    UnregisterBrokerRecord: lambda gone: f"broker {gone.broker} unregistered",
    RegisterControllerRecord: lambda new: f"controller {new.controller} registered",
    UnregisterControllerRecord: lambda gone: f"controller {gone.controller} unregistered",
    TopicRecord: lambda topic: f"topic {topic.name} created",
    FeatureLevelRecord: lambda feature: f"feature {feature.feature} at level {feature.level}",
}


def _listed(brokers: Iterable[int]) -> str:
    """Broker ids; replicas in their order, sets sorted."""
    ordered = sorted(brokers) if isinstance(brokers, (set, frozenset)) else brokers
    return ", ".join(map(str, ordered)) or "nobody"
