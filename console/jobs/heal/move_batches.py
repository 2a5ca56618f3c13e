"""Moves replicas in batches: judged right before each is sent, watched until copied, cancelled when stopped."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from backends.base.answers import Reassignment
from backends.base.errors import BackendError
from backends.base.protocol import Backend
from backends.base.replica_moves import ReplicaMover
from console.change.change import ChangeRun, Operator
from console.jobs.heal.heal_survey import broker_rooms
from console.journal.change_kinds import CANCEL_REASSIGNMENT, REASSIGN
from recovery.heal_plan import ReplicaMove, short_of_room
from recovery.model import PartitionState, TopicPartition, Unknown
from recovery.wording.quantity_text import age, both, brokers_are, counted, human_bytes
from recovery.wording.replica_text import MADE_AGAIN

# How far the copies of a batch are: bytes of the new replicas, and the time that is left.

SAMPLES = 30
"""The rate is that of the last so many looks."""
EVERY_SECONDS = 3.0
"""A broker lists all its replicas at each look: not more often than this."""


class CopyProgress:
    """Shows the progress of ``moves`` to an operator who watches; nothing else depends on it."""

    def __init__(
        self, cluster: Backend, moves: Sequence[ReplicaMove], title: str, operator: Operator[Any]
    ) -> None:
        self._cluster = cluster
        self._sizes = {(move.tp, broker): max(0, move.size) for move in moves for broker in move.added}
        self._brokers = sorted({broker for _, broker in self._sizes})
        self._moves = len(moves)
        self._title = title
        self._operator = operator
        self._samples: deque[tuple[float, int]] = deque(maxlen=SAMPLES)

    async def show(self, ended: int) -> None:
        """``ended`` moves are done. A broker that does not tell its log dirs makes the number smaller."""
        if self._operator.progress is None or not self._sizes:
            return
        if self._samples and self._now() - self._samples[-1][0] < EVERY_SECONDS:
            return
        try:
            copied = await self._copied()
        except BackendError:
            return
        total = sum(self._sizes.values())
        self._samples.append((self._now(), copied))
        text = (
            f"{self._title}: {human_bytes(copied)} of {human_bytes(total)} copied{self._left(total)}; moved"
        )
        self._operator.progress(text, ended, self._moves)

    async def _copied(self) -> int:
        dirs = await self._cluster.log_dirs(self._brokers)
        bytes_there = {
            (replica.tp, broker): replica.size
            for broker, listed in dirs.items()
            if not isinstance(listed, Unknown)
            for one in listed
            for replica in one.replicas
        }
        return sum(min(size, max(0, bytes_there.get(key, 0))) for key, size in self._sizes.items())

    def _left(self, total: int) -> str:
        (since, before), (now, copied) = self._samples[0], self._samples[-1]
        if now <= since or copied <= before:
            return ""
        return f", about {age((total - copied) * (now - since) / (copied - before))} left"

    def _now(self) -> float:
        virtual = self._cluster.virtual_time
        return time.monotonic() if virtual is None else virtual.virtual_now / 1_000_000


PAUSE = 1.0
"""Seconds between two readings of the copies."""
SETTLED_LOOKS = 5
"""How many readings must show an assignment that is neither in progress nor as we wrote it, before that is
believed: a broker may show the state before a change that the controller has made already.
"""
CANCEL_LOOKS = 10
REORDERED = "the replicas are those of before, in another order"
AS_BEFORE = "the assignment is as it was before"


class MoveEnd(StrEnum):
    """How the move of one partition's replicas ended."""

    MOVED = "moved"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    CHANGED = "changed by somebody else"
    NOT_BEGUN = "not begun"
    COPYING = "still copying"


class EndedMove(NamedTuple):
    """A move and its end; ``why`` in one line, empty where it went as planned."""

    move: ReplicaMove
    end: MoveEnd
    why: str = ""


class MoveReading(NamedTuple):
    """One reading of the partitions: their states and the reassignments in progress."""

    states: Mapping[TopicPartition, PartitionState]
    moving: Mapping[TopicPartition, Reassignment]

    def replicas(self, move: ReplicaMove) -> tuple[int, ...] | str:
        """Those of the partition now; a text where it is not the one of the move any more."""
        state = self.states.get(move.tp)
        if state is None:
            return "the partition cannot be seen any more"
        return state.replicas if state.topic_id == move.topic_id else MADE_AGAIN

    def changed(self, move: ReplicaMove) -> str:
        """What the partition is now that it is not as before the move."""
        now = self.replicas(move)
        return now if isinstance(now, str) else f"the assignment is {list(now)} now"

    def busy(self, move: ReplicaMove) -> str:
        """Why the partition, which is as before the move, is left alone; "" where it can be moved."""
        if move.tp in self.moving:
            return "it is being reassigned by somebody else"
        return "it has no leader" if self.states[move.tp].offline else ""


async def read_moves(cluster: Backend, moves: Sequence[ReplicaMove]) -> MoveReading:
    """What is in progress is asked first, so that a state is never older. Raises BackendError."""
    names = [move.tp for move in moves]
    moving = await cluster.reassignments(names)
    if isinstance(moving, Unknown):
        raise BackendError(f"reassignments in progress: {moving}")
    found = await cluster.partitions(tuple(dict.fromkeys(tp.topic for tp in names)))
    wanted = set(names)
    return MoveReading(
        {state.tp: state for state in found.states if state.tp in wanted}, {one.tp: one for one in moving}
    )


def copies(move: ReplicaMove, now: Reassignment | None) -> bool:
    """Whether that move is in progress, and no other one."""
    if now is None:
        return False
    return tuple(broker for broker in now.replicas if broker not in now.removing) == move.after or (
        set(now.adding) == set(move.added) and set(move.after).issubset(now.replicas)
    )


@dataclass(slots=True)
class MoveBatches:
    """Carries out moves. ``gone``: brokers that must not be up, or nothing more is begun."""

    cluster: Backend
    mover: ReplicaMover
    run: ChangeRun[Any]
    gone: frozenset[int]

    async def execute(self, batches: Sequence[Sequence[ReplicaMove]]) -> list[EndedMove]:
        """One end for each move. A stop cancels the batch in progress and begins no other."""
        ended: list[EndedMove] = []
        for number, batch in enumerate(batches, 1):
            if self.run.stop:
                ended += [EndedMove(move, MoveEnd.NOT_BEGUN, "stopped before its turn") for move in batch]
                continue
            found = await self._batch(batch, f"batch {number} of {len(batches)}")
            ended += found
            moved = sum(one.end is MoveEnd.MOVED for one in found)
            self.run.operator.says(
                f"batch {number} of {len(batches)}: {moved:,} of {counted(len(batch), 'partition')} moved"
            )
        return ended

    async def _batch(self, batch: Sequence[ReplicaMove], title: str) -> list[EndedMove]:
        try:
            ready, ended = await self._judged(batch)
        except BackendError as error:
            why = f"nothing was sent: {error}"
            return [EndedMove(move, MoveEnd.NOT_BEGUN, why) for move in batch]
        if ready:
            refused = await self.send(ready)
            ended += [EndedMove(m, MoveEnd.REFUSED, refused[m.tp]) for m in ready if m.tp in refused]
            sent = [move for move in ready if move.tp not in refused]
            ended += await self.wait(sent, title, cancel=True)
        return ended

    async def _judged(self, batch: Sequence[ReplicaMove]) -> tuple[list[ReplicaMove], list[EndedMove]]:
        """Those that may be sent, and the ends of the others. Raises BackendError."""
        info = await self.cluster.cluster()
        up = frozenset(broker.id for broker in info.brokers if not broker.fenced)
        reading = await read_moves(self.cluster, batch)
        added = sorted({broker for move in batch for broker in move.added})
        dirs = await self.cluster.log_dirs(added)
        rooms = list(broker_rooms(info, (), dirs))
        known = {room.broker.id for room in rooms}
        full = short_of_room(batch, rooms) | frozenset(added).difference(known)
        ready, ended = [], []
        for move in batch:
            end = _why_not(move, reading, up, self.gone) or _no_room(move, full)
            if end is None:
                ready.append(move)
            else:
                ended.append(end)
        return ready, ended

    async def send(self, moves: Sequence[ReplicaMove]) -> Mapping[TopicPartition, str]:
        """Writes the assignments; returns the refused ones. After an error nobody knows what was done: the cluster
        shows it afterwards.
        """
        entry = self.run.journal.before(REASSIGN, {"partitions": [str(move.tp) for move in moves]})
        try:
            other_factor = any(len(move.before) != len(move.after) for move in moves)
            targets = {move.tp: move.after for move in moves}
            refusals = await self.mover.reassign(targets, other_factor=other_factor)
        except BackendError as error:
            self.run.journal.after(entry, {"unknown": {move.tp: str(error) for move in moves}})
            return {}
        refused = {tp: why for tp, why in refusals.items() if why is not None}
        applied = [move.tp for move in moves if move.tp not in refused]
        self.run.journal.after(entry, {"applied": applied, "refused": refused})
        return refused

    async def wait(self, moves: Sequence[ReplicaMove], title: str, *, cancel: bool) -> list[EndedMove]:
        """Until each has ended. A stop ends the wait; ``cancel``: after what is in progress was cancelled."""
        waiting = {move.tp: move for move in moves}
        ended: list[EndedMove] = []
        looks: dict[TopicPartition, int] = {}
        progress = CopyProgress(self.cluster, moves, title, self.run.operator)
        while waiting and not self.run.stop:
            found = await self._ended(waiting, looks)
            ended += found
            for one in found:
                del waiting[one.move.tp]
            if waiting:
                await progress.show(len(ended))
                await pause(self.cluster)
        if not waiting:
            return ended
        left = list(waiting.values())
        if not cancel:
            return [*ended, *(EndedMove(move, MoveEnd.COPYING) for move in left)]
        return [*ended, *await self.cancel(left)]

    async def _ended(
        self, waiting: Mapping[TopicPartition, ReplicaMove], looks: dict[TopicPartition, int]
    ) -> list[EndedMove]:
        try:
            reading = await read_moves(self.cluster, list(waiting.values()))
        except BackendError as error:
            self.run.operator.says(f"asked again, because the cluster did not answer: {error}")
            return []
        ended = []
        for tp, move in waiting.items():
            if copies(move, reading.moving.get(tp)):
                looks[tp] = 0
                continue
            end = _end_of(move, reading)
            looks[tp] = looks.get(tp, 0) + 1
            if end.end is MoveEnd.MOVED or looks[tp] >= SETTLED_LOOKS:
                ended.append(end)
        return ended

    async def cancel_waiting(self, moves: Sequence[ReplicaMove]) -> list[EndedMove]:
        """Cancels those that are in progress still, while the brokers that they wait for are still gone."""
        try:
            info = await self.cluster.cluster()
            reading = await read_moves(self.cluster, moves)
        except BackendError as error:
            return [EndedMove(move, MoveEnd.NOT_BEGUN, f"nothing was sent: {error}") for move in moves]
        back = sorted(broker.id for broker in info.brokers if broker.id in self.gone and not broker.fenced)
        ended, waiting = [], []
        for move in moves:
            if back:
                ended.append(EndedMove(move, MoveEnd.NOT_BEGUN, brokers_are(back, "back, so it is not gone")))
            elif copies(move, reading.moving.get(move.tp)):
                waiting.append(move)
            else:
                ended.append(
                    EndedMove(move, MoveEnd.CHANGED, "its reassignment is another one now, or ended")
                )
        cancelled = await self.cancel(waiting) if waiting else []
        return [*ended, *map(_of_unknown_order, cancelled)]

    async def cancel(self, moves: Sequence[ReplicaMove]) -> list[EndedMove]:
        """Cancels those moves, and says how each ended. Kafka keeps the old replicas then, but not their order, so
        that is written again.
        """
        entry = self.run.journal.before(CANCEL_REASSIGNMENT, {"partitions": [str(move.tp) for move in moves]})
        try:
            refusals = await self.mover.reassign({move.tp: None for move in moves})
            self.run.journal.after(entry, {"refused": {tp: why for tp, why in refusals.items() if why}})
        except BackendError as error:
            self.run.journal.after(entry, {"unknown": {move.tp: str(error) for move in moves}})
        ended = await self._read_until(moves, lambda one: one.end is not MoveEnd.COPYING)
        reordered = [one.move for one in ended if one.why == REORDERED]
        if not reordered:
            return ended
        await self.send([move._replace(after=move.before) for move in reordered])
        again = await self._read_until(reordered, lambda one: one.why != REORDERED)
        return [*(one for one in ended if one.why != REORDERED), *again]

    async def _read_until(
        self, moves: Sequence[ReplicaMove], done: Callable[[EndedMove], bool]
    ) -> list[EndedMove]:
        """How each cancelled move ended, once all are ``done``, or after some looks."""
        last: list[EndedMove] = []
        for _ in range(CANCEL_LOOKS):
            try:
                reading = await read_moves(self.cluster, moves)
                last = [_cancelled(move, reading) for move in moves]
                if all(map(done, last)):
                    break
            except BackendError as error:
                last = [EndedMove(move, MoveEnd.COPYING, str(error)) for move in moves]
            await pause(self.cluster)
        return last


def _why_not(
    move: ReplicaMove, reading: MoveReading, up: frozenset[int], gone: frozenset[int]
) -> EndedMove | None:
    """Why the move is not sent; None: it may be."""
    now, back = reading.replicas(move), sorted(gone & up)
    if now == move.after:
        return EndedMove(move, MoveEnd.MOVED, "it was so already")
    if now != move.before:
        return _end_of(move, reading)
    down = [broker for broker in move.added if broker not in up]
    if back:
        why = brokers_are(back, "back, so it is not gone")
    else:
        why = reading.busy(move) or (brokers_are(down, "not up") if down else "")
    return EndedMove(move, MoveEnd.NOT_BEGUN, why) if why else None


def _no_room(move: ReplicaMove, full: frozenset[int]) -> EndedMove | None:
    lacking = [broker for broker in move.added if broker in full]
    if not lacking:
        return None
    why = f"broker {both(lacking)} has no room for it any more, or does not tell its log dirs"
    return EndedMove(move, MoveEnd.NOT_BEGUN, why)


def _end_of(move: ReplicaMove, reading: MoveReading) -> EndedMove:
    """The end of a move that is not in progress."""
    if reading.replicas(move) == move.after:
        return EndedMove(move, MoveEnd.MOVED)
    return EndedMove(move, MoveEnd.CHANGED, reading.changed(move))


def _cancelled(move: ReplicaMove, reading: MoveReading) -> EndedMove:
    """A broker that has not seen the cancellation yet still shows the old and the new replicas together."""
    now = reading.replicas(move)
    if isinstance(now, str):
        return _end_of(move, reading)
    if move.tp in reading.moving or set(now) == {*move.before, *move.after}:
        return EndedMove(move, MoveEnd.COPYING, "its reassignment is still in progress")
    if set(now) != set(move.before):
        return _end_of(move, reading)
    ordered = now == move.before
    return EndedMove(move, MoveEnd.CANCELLED, AS_BEFORE if ordered else REORDERED)


def _of_unknown_order(one: EndedMove) -> EndedMove:
    """The cancelled reassignment of somebody else: in progress, Kafka lists its target first and what it removes
    last, and keeps that order (PartitionReassignmentRevert). The order before is in no answer any more.
    """
    if one.why != AS_BEFORE:
        return one
    now = ",".join(map(str, one.move.before))
    return one._replace(
        why=f"the replicas are those of before, now in the order {now}; which stood first before the reassignment,"
        " and was the preferred leader, is not known"
    )


def not_moved(ended: Iterable[EndedMove]) -> tuple[EndedMove, ...]:
    """Those that are not as planned."""
    return tuple(one for one in ended if one.end is not MoveEnd.MOVED)


async def pause(cluster: Backend, seconds: float = PAUSE) -> None:
    """Lets the time of the cluster pass."""
    virtual = cluster.virtual_time
    if virtual is None:
        await asyncio.sleep(seconds)
    else:
        await virtual.advance(seconds)
