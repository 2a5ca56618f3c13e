"""When each partition had no leader, which broker led it before, and how it got a leader again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from recovery.controller.registration import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    Registration,
)
from recovery.metadata_log.partition_states import EventKind
from recovery.metadata_log.rebuilt_log import RebuiltLog
from recovery.metadata_log.timeline import ClusterEvent, PartitionMove
from recovery.model import NO_LEADER, TopicPartition


class Outage(NamedTuple):
    """A time without a leader, in ms since the epoch; ``until_ms`` is None if it still has none.

    ``leader_before`` is NO_LEADER if the log does not contain it. ``unclean``: the new leader was elected from
    outside ISR and ELR. ``deleted``: the partition was deleted meanwhile. ``other_log_dir``: the new leader's
    replica is in another log dir than when the outage began, and so empty, unless somebody moved the log there.
    ``rebuilt``: a rebuild of the quorum chose the new leader: it wrote this leader, or the ISR of which it is.
    """

    tp: TopicPartition
    since_ms: int
    until_ms: int | None = None
    leader_before: int = NO_LEADER
    leader_after: int = NO_LEADER
    unclean: bool = False
    deleted: bool = False
    other_log_dir: bool = False
    rebuilt: bool = False


class OutageTracker:
    """Follows the changes of partitions; ``open``: the partitions that have no leader now."""

    def __init__(self, open_: Iterable[Outage] = ()) -> None:
        self.open = {outage.tp: outage for outage in open_}
        self._before: dict[TopicPartition, Registration] = {}

    def take(self, move: PartitionMove, time_ms: int) -> Outage | None:
        """The outage that this change begins or ends (then it has an end); None if it does neither."""
        if move.kind is EventKind.OFFLINE and move.before is not None:
            outage = self.open[move.tp] = Outage(move.tp, time_ms, leader_before=move.before.leader)
            self._before[move.tp] = move.before
            return outage
        if move.tp not in self.open or (move.after is not None and not move.after.has_leader):
            return None
        before = self._before.pop(move.tp, None)
        return self.open.pop(move.tp)._replace(
            until_ms=time_ms,
            leader_after=NO_LEADER if move.after is None else move.after.leader,
            unclean=move.kind is EventKind.UNCLEAN_ELECTION,
            deleted=move.after is None,
            other_log_dir=_in_another_dir(before, move.after),
        )


_NO_DIRECTORY = frozenset({None, UNASSIGNED_DIRECTORY, LOST_DIRECTORY, MIGRATING_DIRECTORY})


def _in_another_dir(before: Registration | None, after: Registration | None) -> bool:
    """Whether the leader's replica was in another log dir before, as far as the log tells."""
    if before is None or after is None:
        return False
    was, now = before.directory(after.leader), after.directory(after.leader)
    return was != now and was not in _NO_DIRECTORY and now not in _NO_DIRECTORY


def outages(events: Iterable[ClusterEvent], rebuilt: RebuiltLog | None = None) -> tuple[Outage, ...]:
    """Every outage that begins in ``events``, in the order in which they began. ``rebuilt``: where a rebuild
    wrote.
    """
    found: list[Outage] = []
    begun: dict[TopicPartition, int] = {}
    tracker = OutageTracker()
    written: dict[TopicPartition, Registration] = {}
    for event in events:
        for move in event.moves:
            if (
                rebuilt is not None
                and rebuilt.offset <= event.offset < rebuilt.end
                and move.after is not None
            ):
                written[move.tp] = move.after
            outage = tracker.take(move, event.time_ms)
            if outage is None:
                continue
            if outage.until_ms is None:
                begun[outage.tp] = len(found)
                found.append(outage)
            else:
                # Later elections are none of its own.
                wrote = written.pop(outage.tp, None)
                by_it = wrote is not None and outage.leader_after in wrote.isr
                found[begun[outage.tp]] = outage._replace(rebuilt=by_it)
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
