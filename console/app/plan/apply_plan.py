"""Applying the plan as ``ktriage apply`` does: the journal with its lock, every fence again, elect, look again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from backends.base.protocol import Backend, Progress
from console.app.plan.confirmation import Frozen
from console.errors import NotDone
from console.exit_status import Status
from console.journal.unfinished import unfinished
from console.operations.change import open_journal
from console.operations.election_batches import carry_out, survey_rows
from console.operations.plan_comparison import Applied, Prepared, prepare
from console.operations.unfinished_orders import refuse_open, settle_first
from console.program import Program
from console.signals import StopRequest
from recovery.plan.values import Plan
from recovery.plan.verify import RowState, verify

ATTEMPTS = 3


class Job(NamedTuple):
    """What is sent, by whom and why; ``program`` is what the journal says was run. ``put_back``: somebody said that
    what an earlier run left half done is to be finished first. ``incomplete`` is told that the journal could not be
    ended, on the backend's thread.
    """

    program: Program
    frozen: Frozen
    reason: str
    stop: StopRequest
    progress: Progress
    incomplete: Callable[[str], None]
    put_back: bool = False


async def checked(backend: Backend, plan: Plan, cluster_id: str, progress: Progress) -> Prepared:
    """The plan beside the cluster as it is now; nothing is sent."""
    return await prepare(backend, plan, cluster_id, progress)


async def apply(backend: Backend, job: Job) -> Applied:
    """Elects what still holds of exactly the plan that was confirmed.

    Raises HalfDone, JournalLocked, JournalError, NotDone and BackendError, all before anything was sent.
    """
    frozen = job.frozen
    cluster = await backend.cluster()
    if cluster.cluster_id != frozen.cluster_id:
        raise NotDone(f"this is cluster {cluster.cluster_id} now, not {frozen.cluster_id}; nothing was sent")
    with open_journal(job.program, frozen.cluster_id, job.reason, job.incomplete) as journal:
        found = unfinished(frozen.cluster_id)
        settled = await settle_first(
            backend, found, journal, job.stop, put_back=job.put_back, resume=job.program.resume
        )
        refuse_open(settled)
        prepared = await prepare(backend, frozen.plan, frozen.cluster_id, job.progress)
        applied, stopped = Applied(prepared, None), bool(job.stop)
        if prepared.holding.rows and not stopped:
            elected = await carry_out(
                backend, prepared.holding, journal, attempts=ATTEMPTS, stop=job.stop, progress=job.progress
            )
            applied = Applied(prepared, elected)
        left = stopped or applied.failures
        journal.conclude(Status.PARTLY if left else Status.DONE, applied.counts)
        return applied


async def verified(backend: Backend, plan: Plan, progress: Progress) -> tuple[RowState, ...]:
    """What has become of every row (``ktriage verify``)."""
    return verify(plan, await survey_rows(backend, [row.tp for row in plan.rows], progress))


def refused_apart(prepared: Prepared, plan: Plan) -> Plan:
    """The rows of the plan that hold, as one plan with the header of the whole."""
    return replace(plan, rows=prepared.holding.rows, not_elected=())
