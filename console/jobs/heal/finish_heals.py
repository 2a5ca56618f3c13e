"""``ktriage resume`` after a heal that was killed: waits for its copies, then removes its throttles."""

# ruff: noqa: ARG002  # the signatures are the change's

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from backends.base.protocol import Backend
from console.change.access import Access
from console.change.change import Change, ChangeRun, Conclusion, Operator
from console.change.unfinished_orders import unfinished_here
from console.errors import Status
from console.jobs.heal.empty_partitions import begin_empty
from console.jobs.heal.heal_replicas import journal_throttle, moves_of, throttle_left
from console.jobs.heal.heal_survey import heal_command
from console.jobs.heal.move_batches import MoveBatches, MoveEnd, copies, read_moves
from console.journal.change_kinds import HEAL, OpenChange
from console.journal.unfinished_entries import Unfinished, unfinished
from recovery.wording.quantity_text import counted


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


@dataclass(frozen=True, slots=True)
class FinishHeals(Change[Backend, Unfinished, tuple[FinishedHeal, ...]]):
    """Nothing is moved and nothing is cancelled: what the earlier runs sent goes on by itself."""

    reason: str = "resume"

    def without_lock(self, cluster_id: str) -> tuple[FinishedHeal, ...] | None:
        return None if unfinished(cluster_id).of(HEAL) else ()

    async def settle(self, access: Access[Backend], run: ChangeRun[Unfinished]) -> None:
        """This is what settles."""

    async def prepare(self, cluster: Backend, cluster_id: str, operator: Operator[Unfinished]) -> Unfinished:
        return await unfinished_here(cluster, cluster_id)

    def nothing_to_send(self, prepared: Unfinished) -> tuple[FinishedHeal, ...] | None:
        return None

    async def execute(
        self, cluster: Backend, prepared: Unfinished, run: ChangeRun[Unfinished]
    ) -> tuple[FinishedHeal, ...]:
        with run.stop.in_flight():
            return tuple([await _finished(cluster, entry, run) for entry in prepared.of(HEAL)])

    def conclusion(self, result: tuple[FinishedHeal, ...]) -> Conclusion:
        still = any(one.open for one in result)
        whole = not still and not any(one.not_moved for one in result)
        status = Status.DONE if whole else Status.PARTLY
        again = next((one.again for one in reversed(result) if one.not_moved), ())
        return Conclusion(status, unfinished=still, next=("resume",) if still else again)


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
