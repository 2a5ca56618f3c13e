"""Lets partitions begin empty that have no replica left: a new assignment, then an unclean election of one of it.

Kafka takes a new assignment of a partition none of whose replicas is left, and an unclean election then lets the
first new replica lead with an empty log; the others join it, which ends the reassignment (tried on 4.3.1). Without
a leader Kafka refuses to cancel that reassignment, so there is no way back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backends.base.answers import Outcome
from backends.base.errors import BackendError
from console.change.election_notes import KafkaElectionRecorder
from console.jobs.heal.move_batches import (
    SETTLED_LOOKS,
    EndedMove,
    MoveBatches,
    MoveEnd,
    MoveReading,
    pause,
    read_moves,
)
from recovery.heal_plan import ReplicaMove
from recovery.model import PartitionState, TopicPartition
from recovery.wording.quantity_text import brokers_are

_SECONDS = 0.5
"""Between two looks for the new assignment."""


async def begin_empty(
    work: MoveBatches, moves: Sequence[ReplicaMove], *, assign: bool = True
) -> list[EndedMove]:
    """One end for each move; a partition that is led before, or has one of its replicas back, is left as it is.
    ``assign`` False: only those whose assignment an earlier run has written.
    """
    try:
        reading = await read_moves(work.cluster, moves)
        up = frozenset(broker.id for broker in (await work.cluster.cluster()).brokers if not broker.fenced)
    except BackendError as error:
        return [EndedMove(move, MoveEnd.NOT_BEGUN, f"nothing was sent: {error}") for move in moves]
    ended, send, elect = [], [], []
    for move in moves:
        if why := _why_not(move, reading, up):
            ended.append(why)
        elif _is_assigned(move, reading.states[move.tp]):
            elect.append(move)
        elif assign:
            send.append(move)
        else:
            ended.append(EndedMove(move, MoveEnd.NOT_BEGUN, "it was not assigned anew"))
    refused = await work.send(send) if send else {}
    ended += [EndedMove(move, MoveEnd.REFUSED, refused[move.tp]) for move in send if move.tp in refused]
    elect += [move for move in send if move.tp not in refused]
    led, failed = await _elected(work, elect)
    if led:
        await _complete(work, led)
    ended += [EndedMove(move, MoveEnd.REFUSED, failed[move.tp]) for move in elect if move.tp in failed]
    return [*ended, *await work.wait(led, "replicas of empty partitions", cancel=False)]


def _why_not(move: ReplicaMove, reading: MoveReading, up: frozenset[int]) -> EndedMove | None:
    state = reading.states.get(move.tp)
    if state is None or state.topic_id != move.topic_id:
        return EndedMove(move, MoveEnd.CHANGED, "the topic was deleted, or cannot be seen any more")
    if not state.offline:
        return EndedMove(move, MoveEnd.CHANGED, f"broker {state.leader} leads it now")
    back = sorted(up.intersection(move.before))
    down = [broker for broker in move.added if broker not in up]
    if back or down:
        why = brokers_are(back, "back, and may have its log") if back else brokers_are(down, "not up")
        return EndedMove(move, MoveEnd.NOT_BEGUN, why)
    if state.replicas != move.before and not _is_assigned(move, state):
        return EndedMove(move, MoveEnd.CHANGED, f"the assignment is {list(state.replicas)} now")
    return None


def _is_assigned(move: ReplicaMove, state: PartitionState) -> bool:
    return bool(move.added) and set(move.after).issubset(state.replicas)


async def _complete(work: MoveBatches, moves: Sequence[ReplicaMove]) -> None:
    """Kafka looks whether a reassignment is complete before it elects (PartitionChangeBuilder), and again only with
    the next change: where the elected replica is the only new one there is none, so it is asked once more.
    """
    for _ in range(SETTLED_LOOKS):
        reading = await read_moves(work.cluster, moves)
        states = [reading.states[move.tp] for move in moves if move.tp in reading.states]
        if not any(state.offline for state in states):
            break
        await pause(work.cluster, _SECONDS)
    whole = [
        move
        for move in moves
        if move.tp in reading.moving and set(move.after).issubset(reading.states[move.tp].isr)
    ]
    if whole:
        await work.send(whole)


async def _elected(
    work: MoveBatches, moves: Sequence[ReplicaMove]
) -> tuple[list[ReplicaMove], Mapping[TopicPartition, str]]:
    """Those that are led now, and why the others are not."""
    if not moves:
        return [], {}
    problems: dict[TopicPartition, str] = {}
    for turn in range(SETTLED_LOOKS):
        reading = await read_moves(work.cluster, moves)
        waiting = [state for state in reading.states.values() if state.offline]
        if not waiting:
            problems = {}
            break
        # A broker that has not seen the new assignment yet would elect nobody.
        names = [state.tp for state in waiting]
        recorder = KafkaElectionRecorder(work.run.journal, waiting, preferred=False, every=False)
        answers = await work.cluster.elect(False, names, recorder)
        good = (Outcome.ELECTED, Outcome.ALREADY_ONLINE)
        problems = {one.tp: one.detail for one in answers if one.outcome not in good}
        if not problems:
            break
        if turn + 1 < SETTLED_LOOKS:
            await pause(work.cluster, _SECONDS)
    return [move for move in moves if move.tp not in problems], problems
