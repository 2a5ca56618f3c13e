"""New replicas for partitions whose broker does not come back, as few moves as possible.

Every replica that is left stays where it is and keeps its place in the assignment; only the missing ones are put on
other brokers. So no partition loses a member of its ISR, none falls below min ISR by it, and what is copied is what
was lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recovery.model import Broker, PartitionState, TopicPartition
from recovery.wording.quantity_text import both, brokers_are, human_bytes, some_of

ALL_GONE = (
    "all its replicas are on brokers that are gone: there is nothing to copy from. Bring one of them back, or its"
    " disk on another host (ktriage disk scan says what is on it). Only if that can never be: all its records are"
    " lost, and the topic can be deleted, or the partition begin empty (ktriage heal begin-empty)"
)
"""Kafka accepts a reassignment of such a partition, and an unclean election then elects one of the new replicas,
whose log is empty (tried on 4.3.1).
"""
RESERVE = 0.1
"""So much of a disk stays free: the share of its size, after the copy."""


class BrokerRoom(NamedTuple):
    """A broker that may take replicas: bytes and replicas that it holds, and its healthy log dirs as (total bytes,
    usable bytes), -1 where the broker does not tell.
    """

    broker: Broker
    used_bytes: int
    replicas: int
    dirs: tuple[tuple[int, int], ...]


class DamagedPartition(NamedTuple):
    """A partition with replicas on brokers that are gone. ``size`` is that of its largest known log in bytes, -1
    not known. ``min_isr`` is the effective one, None where it is not known. ``adding`` and ``removing`` are the
    replicas of a reassignment in progress.
    """

    state: PartitionState
    size: int
    min_isr: int | None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def reassigning(self) -> bool:
        return bool(self.adding or self.removing)


class ReplicaMove(NamedTuple):
    """The assignment of one partition, before and after. ``added`` have to copy ``size`` bytes each.
    ``shares_rack``: an added one stands in a rack that has a replica already, because no other rack had room.
    """

    tp: TopicPartition
    topic_id: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    size: int
    shares_rack: bool = False

    @property
    def added(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.after if broker not in self.before)


class NotHealed(NamedTuple):
    """A partition that keeps its assignment, and why."""

    tp: TopicPartition
    why: str


@dataclass(frozen=True, slots=True)
class HealPlan:
    """``moves`` in the order in which they are to be made: those with the fewest replicas in sync first.
    ``cancelled`` are reassignments in progress that never end, because they wait for a broker that is gone: they
    are cancelled, and what their partitions need then shows another plan. ``empty`` are partitions none of whose
    replicas is left, and the brokers on which they could begin empty: only where that is asked for.
    """

    gone: tuple[int, ...]
    moves: tuple[ReplicaMove, ...]
    not_healed: tuple[NotHealed, ...]
    cancelled: tuple[ReplicaMove, ...] = ()
    empty: tuple[ReplicaMove, ...] = ()

    @property
    def bytes_copied(self) -> int:
        """In all: a partition whose size is not known is not moved."""
        return sum(move.size * len(move.added) for move in self.moves)


def in_batches(moves: Sequence[ReplicaMove], size: int) -> tuple[tuple[ReplicaMove, ...], ...]:
    """So many partitions at a time, so that one can stop between two."""
    return tuple(tuple(moves[i : i + size]) for i in range(0, len(moves), size))


def heal_plan(
    gone: Iterable[int], damaged: Sequence[DamagedPartition], loads: Sequence[BrokerRoom]
) -> HealPlan:
    """The plan. ``loads`` are the brokers that are up; those in ``gone`` are never chosen."""
    away = frozenset(gone)
    spaces = {load.broker.id: BrokerSpace(load) for load in loads if load.broker.id not in away}
    racks = {load.broker.id: load.broker.rack for load in loads}
    moves: list[ReplicaMove] = []
    left: list[NotHealed] = []
    cancelled: list[ReplicaMove] = []
    empty: list[ReplicaMove] = []
    # The most endangered first, then the largest: those are the hardest to find room for.
    for one in sorted(damaged, key=lambda one: (_spare(one), -one.size, one.state.tp)):
        if not one.state.offline and not away.isdisjoint(one.adding):
            cancelled.append(_in_progress(one))
            continue
        why = _refusal(one, away)
        after = () if why else _replaced(one, away, spaces, racks)
        if isinstance(after, str) or why:
            left.append(NotHealed(one.state.tp, why or str(after)))
            if why == ALL_GONE and not one.reassigning:
                begun = _replaced(one._replace(size=0), away, spaces, racks)
                empty += [] if isinstance(begun, str) else [_move(one._replace(size=0), begun, racks)]
            continue
        moves.append(_move(one, after, racks))
    return HealPlan(tuple(sorted(away)), tuple(moves), tuple(left), tuple(cancelled), tuple(empty))


def _in_progress(one: DamagedPartition) -> ReplicaMove:
    """The reassignment, from the replicas that its cancellation leaves to those that it was to lead to."""
    state = one.state
    before = tuple(broker for broker in state.replicas if broker not in one.adding)
    after = tuple(broker for broker in state.replicas if broker not in one.removing)
    return ReplicaMove(state.tp, state.topic_id, before, after, one.size)


def short_of_room(moves: Iterable[ReplicaMove], rooms: Iterable[BrokerRoom]) -> frozenset[int]:
    """The brokers among ``rooms`` that have no room for all that these moves copy to them."""
    copied: Counter[int] = Counter()
    for move in moves:
        for broker in move.added:
            copied[broker] += max(0, move.size)
    return frozenset(
        room.broker.id
        for room in rooms
        if copied[room.broker.id] and not BrokerSpace(room).fits(copied[room.broker.id])
    )


def _move(one: DamagedPartition, after: tuple[int, ...], racks: Mapping[int, str | None]) -> ReplicaMove:
    state = one.state
    move = ReplicaMove(state.tp, state.topic_id, state.replicas, after, one.size)
    known = [racks.get(broker) for broker in after if racks.get(broker) is not None]
    added = {racks.get(broker) for broker in move.added}
    return move._replace(shares_rack=any(rack in added for rack in known if known.count(rack) > 1))


def _spare(one: DamagedPartition) -> int:
    """How many replicas it may still lose before acks=all stops."""
    return len(one.state.isr) - (one.min_isr or 1)


def _refusal(one: DamagedPartition, away: frozenset[int]) -> str:
    state = one.state
    if not away.issuperset(state.replicas) and state.offline:
        return "it has no leader: elect one first (ktriage plan)"
    if state.offline:
        return ALL_GONE
    if one.reassigning:
        waits = sorted({*one.adding}.difference(state.isr))
        copies = f" (broker {both(waits)} still copies)" if waits else ""
        return f"it is being reassigned by somebody{copies}: let that end first, or cancel it"
    in_sync = [broker for broker in state.isr if broker in away]
    if in_sync:
        return brokers_are(in_sync, "in its ISR, so it is not gone")
    if one.size < 0:
        return "its size is not known, so it may not fit on a disk"
    return ""


class BrokerSpace:
    """One broker while the plan is made: what it holds, and what it is to take."""

    def __init__(self, load: BrokerRoom) -> None:
        self._load = load
        self._bytes = load.used_bytes
        self._replicas = load.replicas
        self._taken = 0

    @property
    def weight(self) -> tuple[int, int, int]:
        return self._bytes, self._replicas, self._load.broker.id

    def fits(self, size: int) -> bool:
        """On every one of its log dirs: Kafka chooses which one, and does not look at the room."""
        return bool(self._load.dirs) and all(
            total >= 0 and usable - self._taken - size >= RESERVE * total for total, usable in self._load.dirs
        )

    def take(self, size: int) -> None:
        self._bytes += size
        self._replicas += 1
        self._taken += size


def _replaced(
    one: DamagedPartition,
    away: frozenset[int],
    spaces: Mapping[int, BrokerSpace],
    racks: Mapping[int, str | None],
) -> tuple[int, ...] | str:
    """The new assignment, or why there is none; rooms are taken only where all of it was found."""
    after = list(one.state.replicas)
    chosen: list[int] = []
    for place, broker in enumerate(one.state.replicas):
        if broker not in away:
            continue
        staying = {other for other in after if other not in away}
        free = [other for other in spaces if other not in staying]
        room = [other for other in free if spaces[other].fits(one.size)]
        if not room:
            return _no_room(one, free)
        used = {racks.get(other) for other in staying}
        best = min(room, key=lambda other: (_same_rack(racks.get(other), used), spaces[other].weight))
        after[place] = best
        chosen.append(best)
    for broker in chosen:
        spaces[broker].take(one.size)
    return tuple(after)


def _same_rack(rack: str | None, used: set[str | None]) -> bool:
    return rack is not None and rack in used


def _no_room(one: DamagedPartition, free: Sequence[int]) -> str:
    if not free:
        return "every broker that is up has a replica of it already"
    size = human_bytes(one.size)
    return (
        f"{size} do not fit on every log dir of broker {some_of(sorted(free))} with {RESERVE:.0%} left free"
    )
