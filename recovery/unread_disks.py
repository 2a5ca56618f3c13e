"""Disks that nobody read before an election: what their brokers alone hold is cut off when they start again.

An election makes every replica truncate to the new leader's log. A replica of a broker that is down does so only
when that broker starts again (ReplicaFetcherThread, by the leader's epochs): until then its disk can be read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from recovery.acknowledged.disks_to_read import DisksToRead
from recovery.model import PartitionState, TopicPartition

if TYPE_CHECKING:
    from recovery.metadata_log.history import MetadataHistory


class UnreadDisk(NamedTuple):
    """The log of ``tp`` on ``broker``, which was down and not read when a leader was elected.

    ``topic_id`` is "" where it is not known. ``leader_epoch`` is the new leader's, -1: whether the election was
    carried out was not recorded. ``elected_ms`` is the time of the election by the clock of the host that sent it.
    ``set_aside``: the journal has that the broker was taken out of the assignment while it was down, so that it
    keeps its log when it starts.
    """

    broker: int
    tp: TopicPartition
    topic_id: str = ""
    leader_epoch: int = -1
    elected_ms: int = 0
    set_aside: bool = False


class ReadDisk(NamedTuple):
    """The log of ``tp`` on ``broker`` was read, or waived by an operator, at ``at_ms``."""

    broker: int
    tp: TopicPartition
    at_ms: int


def without_read(unread: DisksToRead, read: Iterable[ReadDisk]) -> DisksToRead:
    """The disks that the metadata log tells of, without those that were read or waived since."""
    done = {(one.broker, one.tp): one.at_ms for one in read}
    if not done:
        return unread
    partitions = {}
    for tp, missed in unread.partitions.items():
        left = tuple(one for one in missed.brokers if done.get((one, tp), -1) < missed.since_ms)
        if left:
            partitions[tp] = missed._replace(brokers=left)
    return replace(unread, partitions=partitions)


class UnreadDiskState(StrEnum):
    """What became of such a disk. DISK_FAILED: its broker is up, without that log dir. NO_REPLICA: its broker keeps
    the log when it starts; SET_ASIDE: it did, and is up. NO_LEADER: nobody is known to have been elected, and
    nobody leads, so nothing is cut off by a start.
    """

    AWAY = "not started since"
    DISK_FAILED = "its disk failed"
    CAME_BACK = "came back unread"
    NO_REPLICA = "not a replica any more"
    SET_ASIDE = "set aside as -stray"
    NO_LEADER = "nobody was elected"
    NO_TOPIC = "the topic was deleted"


def disk_outcomes(
    disks: Iterable[UnreadDisk],
    states: Iterable[PartitionState],
    up: Collection[int],
    history: MetadataHistory | None = None,
) -> Mapping[UnreadDisk, UnreadDiskState]:
    """What became of each, as far as can be seen. ``states`` are the partitions as they are now, ``up`` the brokers
    that are not fenced; a partition that is not among them is left out: it was deleted, or may not be seen.

    ``history``, the metadata log, also shows a broker that was started and went away again, or lost its replica
    only then. A broker whose log dir with the replica is offline has truncated nothing.
    """
    now = {state.tp: state for state in states}
    found: dict[UnreadDisk, UnreadDiskState] = {}
    for disk in disks:
        state = now.get(disk.tp)
        if state is None:
            continue
        if disk.topic_id and state.topic_id != disk.topic_id:
            found[disk] = UnreadDiskState.NO_TOPIC
        elif disk.broker not in state.replicas:
            found[disk] = _without_replica(disk, state, history, up=disk.broker in up)
        elif state.offline and disk.leader_epoch < 0:
            found[disk] = UnreadDiskState.NO_LEADER
        elif disk.broker in state.isr or disk.broker == state.leader:
            found[disk] = UnreadDiskState.CAME_BACK
        elif disk.broker in up:
            offline = disk.broker in state.offline_replicas
            found[disk] = UnreadDiskState.DISK_FAILED if offline else UnreadDiskState.CAME_BACK
        else:
            back = history is not None and _started_since(disk, state, history)
            found[disk] = UnreadDiskState.CAME_BACK if back else UnreadDiskState.AWAY
    return found


def with_outcome(
    outcomes: Mapping[UnreadDisk, UnreadDiskState], *wanted: UnreadDiskState
) -> tuple[UnreadDisk, ...]:
    """The disks with one of those outcomes."""
    return tuple(disk for disk, outcome in outcomes.items() if outcome in wanted)


def still_to_read(
    disks: Iterable[UnreadDisk], outcomes: Mapping[UnreadDisk, UnreadDiskState] | None
) -> tuple[UnreadDisk, ...]:
    """The disks that can still be read; all, where no cluster was asked."""
    if outcomes is None:
        return tuple(disks)
    open_ = with_outcome(outcomes, *_CUT_OFF_LATER, *STRAYS)
    wanted = set(disks)
    return tuple(disk for disk in open_ if disk in wanted)


_CUT_OFF_LATER = (UnreadDiskState.AWAY, UnreadDiskState.DISK_FAILED)
STRAYS = (UnreadDiskState.NO_REPLICA, UnreadDiskState.SET_ASIDE)
"""Of disks whose brokers may be started: their logs stand in, or get, folders that end in -stray."""


def before_start(outcomes: Mapping[UnreadDisk, UnreadDiskState]) -> tuple[UnreadDisk, ...]:
    """The disks that are to be read before their brokers are started, which cuts them off, or before a failed one
    is replaced.
    """
    return with_outcome(outcomes, *_CUT_OFF_LATER)


def only_in_journal(disks: Iterable[UnreadDisk], unread: DisksToRead) -> tuple[UnreadDisk, ...]:
    """Without those that the metadata log tells of too, with more of it."""
    return tuple(
        disk
        for disk in disks
        if (missed := unread.partitions.get(disk.tp)) is None or disk.broker not in missed.brokers
    )


def by_broker(disks: Iterable[UnreadDisk]) -> Mapping[int, tuple[TopicPartition, ...]]:
    """The partitions of each broker's disk."""
    found: dict[int, set[TopicPartition]] = {}
    for disk in disks:
        found.setdefault(disk.broker, set()).add(disk.tp)
    return {broker: tuple(sorted(tps)) for broker, tps in sorted(found.items())}


def _without_replica(
    disk: UnreadDisk, state: PartitionState, history: MetadataHistory | None, *, up: bool
) -> UnreadDiskState:
    if history is not None and _followed_first(disk, state, history):
        return UnreadDiskState.CAME_BACK
    # A broker that loses its replica while it is up deletes the log.
    known = disk.set_aside or history is not None
    return UnreadDiskState.SET_ASIDE if up and known else UnreadDiskState.NO_REPLICA


def _followed_first(disk: UnreadDisk, state: PartitionState, history: MetadataHistory) -> bool:
    """Whether the broker started while it still had its replica, and followed the new leader."""
    from recovery.heal_plan import ReplicaMove  # noqa: PLC0415  # as below
    from recovery.log_preservation import followed_first  # noqa: PLC0415

    if disk.leader_epoch < 0:
        return False
    move = ReplicaMove(disk.tp, state.topic_id, (*state.replicas, disk.broker), state.replicas, 0)
    return bool(followed_first(history, move, disk.leader_epoch - 1))


def _started_since(disk: UnreadDisk, state: PartitionState, history: MetadataHistory) -> bool:
    """Whether the broker registered after the election; where the election is not in the log, by the clocks."""
    # The console's first frame shows such disks, and needs no metadata log.
    from recovery.acknowledged.broker_restarts import broker_restarts  # noqa: PLC0415

    offset = _elected_at(disk, state, history)
    restarts = broker_restarts(history, disk.broker)
    if offset is None:
        return any(restart.time_ms > disk.elected_ms for restart in restarts)
    return any(restart.offset > offset for restart in restarts)


def _elected_at(disk: UnreadDisk, state: PartitionState, history: MetadataHistory) -> int | None:
    """The offset of the change that gave the partition its leader of that epoch."""
    from recovery.metadata_log.log_changes import PartitionSubject  # noqa: PLC0415

    subject = PartitionSubject(state.topic_id, state.partition)
    elected = (
        one for one in history.intervals(subject) if one.registration.leader_epoch == disk.leader_epoch
    )
    first = next(elected, None)
    return None if first is None else first.offset
