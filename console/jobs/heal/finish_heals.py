"""``ktriage resume`` after a heal that was killed: waits for its copies, then removes its throttles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from backends.base.protocol import Backend
from console.change.change import ChangeRun, Conclusion
from console.change.finish_earlier import FinishedChanges, Resumption
from console.errors import Status
from console.jobs.heal.empty_partitions import begin_empty
from console.jobs.heal.heal_replicas import journal_throttle, moves_of, throttle_left
from console.jobs.heal.heal_survey import heal_command
from console.jobs.heal.move_batches import MoveBatches, MoveEnd, copies, read_moves
from console.journal.change_kinds import HEAL, OpenChange
from console.journal.unfinished_entries import Unfinished
from recovery.wording.quantity_text import counted, printable


class FinishedHeal(NamedTuple):
    """One earlier heal: how many of its moves have ended now, how many were never begun or were changed, how many
    are still copied, and what may still have its throttle, with the reason. ``again`` are the words of the command
    that does what was not done.
    """

    at: str
    moved: int
    not_moved: int
    copying: int
    throttled: dict[str, str]
    again: tuple[str, ...] = ()

    @property
    def open(self) -> bool:
        return bool(self.copying or self.throttled)


async def finish(
    cluster: Backend, found: Unfinished, run: ChangeRun[Unfinished], _asked: Resumption
) -> FinishedChanges:
    """Nothing is moved and nothing is cancelled: what the earlier runs sent goes on by itself."""
    with run.stop.in_flight():
        heals = [await _finished(cluster, entry, run) for entry in found.of(HEAL)]
    still = any(heal.open for heal in heals)
    whole = not still and not any(heal.not_moved for heal in heals)
    again = next((heal.again for heal in reversed(heals) if heal.not_moved), ())
    following = ("resume",) if still else again
    conclusion = Conclusion(Status.DONE if whole else Status.PARTLY, unfinished=still, next=following)
    return FinishedChanges(conclusion, tuple(line for heal in heals for line in _lines(heal)))


def _lines(heal: FinishedHeal) -> Iterator[str]:
    """A line for the heal, and for each thing that may still have its throttle."""
    rest = f", {heal.not_moved:,} not moved (ktriage heal shows them)" if heal.not_moved else ""
    copying = f", {heal.copying:,} still being copied, so its throttle stays" if heal.copying else ""
    yield f"the heal of {heal.at}: {counted(heal.moved, 'partition')} moved{rest}{copying}"
    for name, why in heal.throttled.items():
        yield printable(f"may still have its throttle: {name}: {why}")
    if not heal.open:
        yield "no throttle of it is set any more"


async def _finished(cluster: Backend, entry: OpenChange, run: ChangeRun[Unfinished]) -> FinishedHeal:
    moves = moves_of(entry.detail)
    work = MoveBatches(cluster, cluster.replica_mover(), run, frozenset())
    if entry.detail.get("empty"):
        # Who agreed to that agreed to the election too.
        run.operator.says(
            "partitions that begin empty: the election that the earlier run was to send is sent"
        )
        await begin_empty(work, moves, assign=False)
    reading = await read_moves(cluster, moves) if moves else None
    moving = [] if reading is None else [move for move in moves if copies(move, reading.moving.get(move.tp))]
    if moving:
        run.operator.says(
            f"still being copied: {counted(len(moving), 'partition')} of the earlier run. Ctrl-C ends the wait, and"
            " the copies go on (ktriage heal undo cancels them)"
        )
    waited = {one.move.tp: one.end for one in await work.wait(moving, "earlier run", cancel=False)}
    copying = sum(end is MoveEnd.COPYING for end in waited.values())
    done = (
        0
        if reading is None
        else sum(
            waited.get(move.tp) is MoveEnd.MOVED
            or ((state := reading.states.get(move.tp)) is not None and state.replicas == move.after)
            for move in moves
        )
    )
    throttled = {} if copying else await throttle_left(cluster, journal_throttle(entry.detail))
    finished = FinishedHeal(entry.at, done, len(moves) - done - copying, copying, throttled, _again(entry))
    if not finished.open:
        run.journal.settle("its throttles are removed", entries=[entry.entry])
    return finished


def _again(entry: OpenChange) -> tuple[str, ...]:
    if entry.detail.get("undo"):
        return ("heal", "undo")
    if entry.detail.get("again"):
        return ("heal", "assign-again")
    if entry.detail.get("empty"):
        return heal_command("begin-empty", entry.detail.get("gone", ()))
    return heal_command("apply", entry.detail.get("gone", ()))
