"""Takes brokers that are down out of assignments, so that they set their logs aside when they start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from backends.base.errors import BackendError
from backends.base.metadata_log import MetadataLogSource
from backends.base.protocol import Backend
from console.change.change import ChangeRun
from console.jobs.heal.move_batches import (
    SETTLED_LOOKS,
    MoveBatches,
    MoveReading,
    copies,
    pause,
    read_moves,
)
from console.journal import unread_disks
from recovery.heal_plan import ReplicaMove
from recovery.log_preservation import followed_first, taken_out
from recovery.model import TopicPartition, Unknown
from recovery.wording.quantity_text import both, brokers_are, counted

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0
"""Seconds between two looks; each is twice as long as the one before."""


class PreservationEnd(StrEnum):
    """Whether the logs of a partition are kept."""

    PRESERVED = unread_disks.PRESERVED
    FOLLOWED = "cut off"
    NOT_TAKEN_OUT = "not kept"
    STILL_REPLICA = "still a replica"


class PreservedLog(NamedTuple):
    """A partition whose silent brokers were to be taken out. ``why`` in one line; of a log that is kept, what was
    not checked, "": nothing.
    """

    move: ReplicaMove
    end: PreservationEnd
    why: str = ""

    @property
    def brokers(self) -> tuple[int, ...]:
        return taken_out(self.move)


@dataclass(slots=True)
class LogKeeper:
    """``epochs`` are the leader epochs of the partitions before their elections."""

    cluster: Backend
    run: ChangeRun[Any]
    epochs: Mapping[TopicPartition, int]

    async def take_out(self, moves: Sequence[ReplicaMove]) -> list[PreservedLog]:
        """Sends what is not sent yet, and waits until each broker is out: an end for each move. A stop ends the
        wait, not the reassignments.
        """
        work = MoveBatches(self.cluster, self.cluster.replica_mover(), self.run, frozenset())
        try:
            waiting, ended = await self._sent(work, moves)
        except BackendError as error:
            return [
                PreservedLog(move, PreservationEnd.STILL_REPLICA, f"the cluster did not answer: {error}")
                for move in moves
            ]
        looks: dict[TopicPartition, int] = {}
        seconds = FIRST_PAUSE
        while waiting:
            found = await self._read_once(work, list(waiting.values()), looks)
            ended += found
            for one in found:
                del waiting[one.move.tp]
            if not waiting or self.run.stop:
                break
            if seconds == FIRST_PAUSE:
                self._says_what_for(list(waiting.values()))
            await pause(self.cluster, seconds)
            seconds = min(2 * seconds, LONGEST_PAUSE)
        ended += [PreservedLog(move, PreservationEnd.STILL_REPLICA, "stopped") for move in waiting.values()]
        return await self._checked(ended)

    def _says_what_for(self, waiting: Sequence[ReplicaMove]) -> None:
        self.run.operator.says(
            f"do not start broker {both(sorted({b for move in waiting for b in taken_out(move)}))} yet: the other"
            f" replicas of {counted(len(waiting), 'partition')} are not in sync. Ctrl-C ends the wait, and ktriage"
            " resume takes it up again"
        )

    async def _sent(
        self, work: MoveBatches, moves: Sequence[ReplicaMove]
    ) -> tuple[dict[TopicPartition, ReplicaMove], list[PreservedLog]]:
        """The moves that are under way, and the ends of the others. Raises BackendError."""
        waiting: dict[TopicPartition, ReplicaMove] = {}
        send: list[ReplicaMove] = []
        ended: list[PreservedLog] = []
        left = list(moves)
        for turn in range(SETTLED_LOOKS):
            up = await self._up()
            reading = await read_moves(self.cluster, left)
            ended = []
            for move in left:
                if reading.replicas(move) == move.after or copies(move, reading.moving.get(move.tp)):
                    waiting[move.tp] = move
                elif why := _why_not(move, reading, up):
                    ended.append(why)
                else:
                    send.append(move)
            # A broker may still show the state before the election.
            left = [one.move for one in ended if one.end is PreservationEnd.NOT_TAKEN_OUT]
            if not left or turn + 1 == SETTLED_LOOKS:
                break
            followed = [one for one in ended if one.end is PreservationEnd.FOLLOWED]
            left += [one.move for one in followed]
            await pause(self.cluster, 2 * FIRST_PAUSE)
        refused = await work.send(send) if send else {}
        for move in send:
            if move.tp in refused:
                ended.append(PreservedLog(move, PreservationEnd.NOT_TAKEN_OUT, refused[move.tp]))
            else:
                waiting[move.tp] = move
        return waiting, ended

    async def _read_once(
        self, work: MoveBatches, waiting: Sequence[ReplicaMove], looks: dict[TopicPartition, int]
    ) -> list[PreservedLog]:
        """The ends that one look at the cluster shows."""
        try:
            up = await self._up()
            reading = await read_moves(self.cluster, waiting)
        except BackendError as error:
            self.run.operator.says(f"asked again, because the cluster did not answer: {error}")
            return []
        ended, back = [], []
        for move in waiting:
            if copies(move, reading.moving.get(move.tp)):
                looks[move.tp] = 0
                if up.intersection(taken_out(move)):
                    back.append(move)
            elif reading.replicas(move) == move.after:
                ended.append(PreservedLog(move, PreservationEnd.PRESERVED))
            else:
                looks[move.tp] = looks.get(move.tp, 0) + 1
                if looks[move.tp] >= SETTLED_LOOKS:
                    ended.append(PreservedLog(move, PreservationEnd.NOT_TAKEN_OUT, reading.changed(move)))
        if back:
            # Going on would delete the log of a broker that is up, and cost a copy for nothing.
            await work.cancel(back)
            ended += [_followed(move, up) for move in back]
        return ended

    async def _up(self) -> frozenset[int]:
        info = await self.cluster.cluster()
        return frozenset(broker.id for broker in info.brokers if not broker.fenced)

    async def _checked(self, ended: list[PreservedLog]) -> list[PreservedLog]:
        """The metadata log shows a broker that started between the election and the end of its replica."""
        if not any(one.end is PreservationEnd.PRESERVED for one in ended):
            return ended
        source = MetadataLogSource()
        unread, history = await source.read(self.cluster), source.history
        found = []
        for one in ended:
            if one.end is not PreservationEnd.PRESERVED:
                found.append(one)
            elif unread is not None or isinstance(history, Unknown):
                why = f"that no broker started before is not checked: {unread}"
                found.append(one._replace(why=why))
            elif back := followed_first(history, one.move, self.epochs.get(one.move.tp, -1)):
                found.append(_followed(one.move, frozenset(back)))
            else:
                found.append(one)
        return found


def _why_not(move: ReplicaMove, reading: MoveReading, up: frozenset[int]) -> PreservedLog | None:
    """Why nothing is sent for it; None: it may be."""
    if up.intersection(taken_out(move)):
        return _followed(move, up)
    if reading.replicas(move) != move.before:
        return PreservedLog(move, PreservationEnd.NOT_TAKEN_OUT, reading.changed(move))
    why = reading.busy(move)
    return PreservedLog(move, PreservationEnd.NOT_TAKEN_OUT, why) if why else None


def _followed(move: ReplicaMove, back: Iterable[int]) -> PreservedLog:
    brokers = sorted(set(taken_out(move)).intersection(back))
    why = brokers_are(brokers, "back, and was still a replica: it follows the new leader")
    return PreservedLog(move, PreservationEnd.FOLLOWED, why)
