"""Applies the plan as ``ktriage apply`` does, after it was confirmed on the screen."""

# ruff: noqa: ARG002  # the signatures are the operator's

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from backends.base.protocol import Backend, Progress
from console.app.plan.confirmation import ConfirmedTargets
from console.errors import NotDone
from console.journal.unfinished_entries import Unfinished
from console.operations.access import Access
from console.operations.change import Question, run_change
from console.operations.elections.election_batches import survey_rows
from console.operations.elections.loss_consent import NO_REASON
from console.operations.elections.unfinished_orders import SettledOrders
from console.program import Program
from console.signals import StopRequest
from recovery.plan.values import Plan
from recovery.plan.verify import RowState, verify

if TYPE_CHECKING:
    from console.operations.elections.apply_plan import Applied, ApplyPlan


class Confirmed(NamedTuple):
    """A person who confirmed on the screen; implements :class:`console.operations.change.Operator`.

    ``restore``: the person agreed to restore first what an earlier run left. ``unrecorded``, ``says`` and
    ``progress`` are called on the backend's thread.
    """

    progress: Progress | None
    unrecorded: Callable[[str], None]
    says: Callable[..., None] = lambda *_: None
    restore: bool = False

    def finds(self, found: Unfinished) -> None:
        """The screen asks about it after :class:`HalfDone` has ended the change."""

    async def restores_first(self, found: Unfinished) -> bool:
        return self.restore

    def restored(self, settled: SettledOrders) -> None:
        """Nothing to do: the journal shows it."""

    def shows(self, prepared: object) -> None:
        """Nothing to do: the screen showed it before the question."""

    @property
    def asks(self) -> bool:
        """The screen asked for consent and reason before."""
        return False

    async def answers(self, question: Question, prepared: object) -> str:
        raise NotDone(question.otherwise)

    async def gives_reason(self) -> str:
        raise NotDone(NO_REASON)


async def apply(
    access: Access[Backend],
    program: Program,
    frozen: ConfirmedTargets,
    change: ApplyPlan,
    *,
    operator: Confirmed,
    stop: StopRequest,
) -> Applied:
    """Elects the rows of exactly the plan that was confirmed, if they are not stale: every row is judged
    again right before its election.

    Raises HalfDone, JournalLocked, JournalError, NotDone and BackendError, all before anything was sent.
    """
    cluster_id = (await access.reading.cluster()).cluster_id
    if cluster_id != frozen.cluster_id:
        raise NotDone(f"this is cluster {cluster_id} now, not {frozen.cluster_id}; nothing was sent")
    return await run_change(
        change,
        access,
        cluster_id,
        operator,
        invocation=program,
        stop=stop,
        resume_command=program.resume,
    )


async def verified(backend: Backend, plan: Plan, progress: Progress) -> tuple[RowState, ...]:
    """The current state of every row (``ktriage verify``)."""
    return verify(plan, await survey_rows(backend, [row.tp for row in plan.rows], progress))
