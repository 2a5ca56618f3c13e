"""What changed between two readings of a cluster, as far as somebody who waits wants to know it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from recovery.model import Broker, PartitionState, TopicPartition
from recovery.wording.quantity_text import counted, some_of


class WatchedState(NamedTuple):
    """``up`` are the registered brokers that are not fenced. ``leaders`` is -1 for a partition without one.
    ``registered`` is None where the release lists no fenced brokers. ``stale``: why all of it may be old, such as
    that no controller leads; "" where nothing speaks for it. ``unseen``: there are, or may be, topics that this
    caller does not see.
    """

    up: frozenset[int]
    leaders: Mapping[TopicPartition, int]
    registered: frozenset[int] | None = None
    stale: str = ""
    unseen: bool = False


class ClusterChangeKind(StrEnum):
    """The worst first. BROKER_BACK_UNREAD: its disk was to be read before it started."""

    BROKER_BACK_UNREAD = "broker back unread"
    PARTITIONS_OFFLINE = "partitions offline"
    BROKER_GONE = "broker gone"
    PARTITIONS_ONLINE = "partitions online"
    BROKER_BACK = "broker back"
    LEADERS_CHANGED = "leaders changed"


class ClusterChange(NamedTuple):
    """``broker`` is None for a change of partitions."""

    kind: ClusterChangeKind
    partitions: tuple[TopicPartition, ...] = ()
    broker: int | None = None


def watched_state(brokers: Collection[Broker], states: Iterable[PartitionState]) -> WatchedState:
    """A broker that the cluster lists without saying whether it is fenced (before 4.0) is up."""
    up = frozenset(broker.id for broker in brokers if not broker.fenced)
    known = all(broker.fenced is not None for broker in brokers)
    registered = frozenset(broker.id for broker in brokers) if known else None
    return WatchedState(up, {state.tp: state.leader for state in states}, registered)


def cluster_changes(before: WatchedState, after: WatchedState) -> tuple[ClusterChange, ...]:
    """The worst first. Partitions that only one of the readings has were created, deleted, or not seen once."""
    found: dict[ClusterChangeKind, list[TopicPartition]] = {}
    for tp, leader in after.leaders.items():
        was = before.leaders.get(tp)
        if was is None or was == leader:
            continue
        kind = ClusterChangeKind.LEADERS_CHANGED
        if leader < 0:
            kind = ClusterChangeKind.PARTITIONS_OFFLINE
        elif was < 0:
            kind = ClusterChangeKind.PARTITIONS_ONLINE
        found.setdefault(kind, []).append(tp)
    changes = [ClusterChange(kind, tuple(sorted(partitions))) for kind, partitions in found.items()]
    changes += [
        ClusterChange(ClusterChangeKind.BROKER_GONE, broker=one) for one in sorted(before.up - after.up)
    ]
    changes += [
        ClusterChange(ClusterChangeKind.BROKER_BACK, broker=one) for one in sorted(after.up - before.up)
    ]
    order = list(ClusterChangeKind)
    return tuple(sorted(changes, key=lambda change: order.index(change.kind)))


def cluster_change_text(change: ClusterChange, after: WatchedState) -> str:
    """One line; for a single partition with its leader."""
    if change.broker is not None:
        up = change.kind is ClusterChangeKind.BROKER_BACK
        return f"broker {change.broker} is {'back (unfenced)' if up else 'gone (fenced or not registered)'}"
    names = some_of(change.partitions)
    leader = after.leaders[change.partitions[0]]
    if len(change.partitions) == 1:
        return f"{names} is OFFLINE" if leader < 0 else f"{names} is led by {leader} now"
    count = counted(len(change.partitions), "partition")
    what = {
        ClusterChangeKind.PARTITIONS_OFFLINE: "are OFFLINE",
        ClusterChangeKind.PARTITIONS_ONLINE: "have a leader again",
    }.get(change.kind, "have another leader")
    return f"{count} {what}: {names}"
