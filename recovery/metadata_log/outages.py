"""When each partition had no leader, which broker led it before, and how it got a leader again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from recovery.metadata_log.timeline import ClusterEvent, EventKind
from recovery.model import NO_LEADER, TopicPartition


class Outage(NamedTuple):
    """A time without a leader, in ms since the epoch; ``until_ms`` is None if it still has none.

    ``leader_before`` is NO_LEADER if the log does not contain it. ``unclean``: the new leader was elected from
    outside ISR and ELR. ``deleted``: the partition was deleted meanwhile.
    """

    tp: TopicPartition
    since_ms: int
    until_ms: int | None = None
    leader_before: int = NO_LEADER
    leader_after: int = NO_LEADER
    unclean: bool = False
    deleted: bool = False


def outages(events: Iterable[ClusterEvent]) -> tuple[Outage, ...]:
    """Every outage that begins in ``events``, in the order in which they began."""
    found: list[Outage] = []
    open_: dict[TopicPartition, int] = {}
    for event in events:
        for move in event.moves:
            if move.kind is EventKind.OFFLINE and move.before is not None:
                open_[move.tp] = len(found)
                found.append(Outage(move.tp, event.time_ms, leader_before=move.before.leader))
                continue
            place = open_.get(move.tp)
            if place is None or (move.after is not None and not move.after.has_leader):
                continue
            del open_[move.tp]
            found[place] = found[place]._replace(
                until_ms=event.time_ms,
                leader_after=NO_LEADER if move.after is None else move.after.leader,
                unclean=move.kind is EventKind.UNCLEAN_ELECTION,
                deleted=move.after is None,
            )
    return tuple(found)


def fenced_since(events: Iterable[ClusterEvent]) -> dict[int, int]:
    """When each broker that is fenced at the end was fenced, in ms."""
    found: dict[int, int] = {}
    for event in events:
        broker = getattr(event.row.change, "broker", None) if event.row is not None else None
        if broker is None:
            continue
        if event.kind is EventKind.BROKER_FENCED:
            found.setdefault(broker, event.time_ms)
        elif event.kind in (EventKind.BROKER_UNFENCED, EventKind.BROKER_UNREGISTERED):
            found.pop(broker, None)
    return found
