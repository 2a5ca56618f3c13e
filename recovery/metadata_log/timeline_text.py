"""The timeline in plain words: one line an event."""

from __future__ import annotations

from collections.abc import Iterable

from recovery.controller.registration import Registration
from recovery.metadata_log.history import History, Row
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
)
from recovery.metadata_log.timeline import Event, EventKind, Move

NAMED = 3
"""So many partitions are named in a line; the others are counted."""

_ONE = {
    EventKind.ISR_GREW: "has {joined} in its ISR again",
    EventKind.ELR_CHANGED: "ELR {elr}",
    EventKind.RECOVERY_ENDED: "leader {leader} has ended the recovery from the unclean election",
    EventKind.REPLICA_ORDER: "replicas in another order: {replicas}",
    EventKind.PARTITION_CREATED: "created on brokers {replicas}, led by {leader}",
    EventKind.PARTITION_DELETED: "deleted",
    EventKind.LOG_DIR_ASSIGNED: "a replica has been assigned to a log dir",
}
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


def event_text(event: Event, history: History) -> str:
    """One event in one line, without its time."""
    if event.row is not None:
        return _row_text(event.row, history)
    why = f" ({cause_text(event.cause)})" if event.cause is not None else ""
    if len(event.moves) == 1:
        return f"{event.moves[0].tp} {_move_text(event.moves[0])}{why}"
    names = ", ".join(str(move.tp) for move in event.moves[:NAMED])
    more = f" and {len(event.moves) - NAMED:,} more" if len(event.moves) > NAMED else ""
    return f"{len(event.moves):,} partitions {_MANY[event.kind]}{why}: {names}{more}"


def cause_text(row: Row) -> str:
    """A broker's change as the reason for another event."""
    match row.change:
        case RegisterBrokerRecord(broker):
            return f"broker {broker} registered again after an unclean shutdown"
        case BrokerRegistrationChangeRecord(broker, _, fenced) if fenced is not None:
            return f"broker {broker} {'fenced' if fenced else 'unfenced'}"
        case BrokerRegistrationChangeRecord(broker, _, _, True):
            return f"broker {broker} began a controlled shutdown"
        case BrokerRegistrationChangeRecord(broker, _, _, _, directories):
            count = len(directories or ())
            return f"broker {broker} has {count} log dir{'' if count == 1 else 's'} online"
        case other:
            return type(other).__name__


def _move_text(move: Move) -> str:
    before, after = move.before, move.after
    if before is None or after is None:
        return _filled(move)
    lost, joined = set(before.isr) - set(after.isr), set(after.isr) - set(before.isr)
    match move.kind:
        case EventKind.OFFLINE:
            last = f"the last ISR member was {_listed(lost)}; " if lost else ""
            return f"OFFLINE: {last}now {_safe(after)}"
        case EventKind.UNCLEAN_ELECTION:
            return f"led by {after.leader} after an UNCLEAN election: {after.leader} was not in the {_safe(before)}"
        case EventKind.ONLINE:
            return f"led by {after.leader} again; ISR {_listed(after.isr)}"
        case EventKind.LEADER_CHANGED:
            return f"led by {after.leader}, was {before.leader}; ISR {_listed(after.isr)}"
        case EventKind.ISR_SHRANK:
            return f"lost {_listed(lost)} from its ISR, now {_listed(after.isr)}"
        case EventKind.REASSIGNMENT:
            if after.adding or after.removing:
                return f"reassignment: adding {_listed(after.adding)}, removing {_listed(after.removing)}"
            return f"reassignment ended: replicas {_listed(after.replicas)}"
        case EventKind.ISR_GREW:
            return f"has {_listed(joined)} in its ISR again, now {_listed(after.isr)}"
        case _:
            return _filled(move)


def _filled(move: Move) -> str:
    state = move.after or move.before
    if state is None:
        return str(move.kind)
    return _ONE[move.kind].format(
        elr=_listed(state.elr), leader=state.leader, replicas=_listed(state.replicas), joined=""
    )


def _safe(state: Registration) -> str:
    """Who holds every committed record, as the controller has it."""
    text = f"ISR ({_listed(state.isr)}), ELR ({_listed(state.elr)})"
    return f"{text}, last known leader {_listed(state.last_known_elr)}" if state.last_known_elr else text


def _row_text(row: Row, history: History) -> str:
    match row.change:
        case RegisterBrokerRecord() as broker:
            rack = f", rack {broker.rack}" if broker.rack else ""
            return f"broker {broker.broker} registered with broker epoch {broker.broker_epoch}{rack}"
        case UnregisterBrokerRecord() as gone:
            return f"broker {gone.broker} unregistered"
        case BrokerRegistrationChangeRecord():
            return cause_text(row)
        case RegisterControllerRecord() as controller:
            return f"controller {controller.controller} registered"
        case TopicRecord() as topic:
            return f"topic {topic.name} created"
        case RemoveTopicRecord() as removed:
            return f"topic {history.topic_name(removed.topic_id) or removed.topic_id} deleted"
        case ConfigRecord() as config:
            value = "removed" if config.value is None else f"set to {config.value}"
            return f"{config.key} {value} for {_resource(config)}"
        case FeatureLevelRecord() as feature:
            return f"feature {feature.feature} at level {feature.level}"
        case _:
            return str(type(row.change).__name__)


def _resource(config: ConfigRecord) -> str:
    try:
        kind = ResourceType(config.resource_type)
    except ValueError:
        return f"resource {config.resource} of type {config.resource_type}"
    if kind is ResourceType.BROKER:
        return f"broker {config.resource}" if config.resource else "all brokers"
    return f"{kind.name.lower().replace('_', ' ')} {config.resource}"


def _listed(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(brokers) if isinstance(brokers, (set, frozenset)) else brokers)) or "nobody"
