"""Runs ``ktriage verify``."""

from __future__ import annotations

from pathlib import Path

from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.exit_status import Status
from console.operations.election_batches import survey_rows
from console.operations.plan_file_checks import partitions_of, refuse_other_cluster
from console.output.verify_report import verified_document, verified_lines
from console.plan_files import read
from console.signals import StopRequest
from recovery.plan.verify import Leading, Order, RowState, verify


def verify_file(run: Run, path: Path, seconds: float, rows: int) -> int:
    """Reads the partitions of the plan file and prints what is missing; returns the exit status."""
    plan = read(path)

    async def job(backend: Backend, _stop: StopRequest) -> tuple[RowState, ...]:
        cluster = await backend.open()
        refuse_other_cluster(plan, cluster.cluster_id, path)
        return verify(plan, await survey_rows(backend, partitions_of(plan), run.screen.progress, seconds))

    states = run.read(job)
    run.screen.out(verified_document(states) if run.json else verified_lines(states, rows))
    _next(run, states, path)
    return Status.DONE if all(state.complete for state in states) else Status.PARTLY


def _next(run: Run, states: tuple[RowState, ...], path: Path) -> None:
    if any(state.order is Order.NOT_RESTORED for state in states):
        run.next("resume", "--plan", str(path))
    elif any(state.leading is Leading.OFFLINE for state in states):
        run.next("apply", str(path))
    elif any(state.leading is Leading.NOT_SEEN for state in states):
        run.screen.say(
            "the plan has partitions that do not exist any more, or that this user has no permission to see"
        )
        run.next("status")
    elif not all(state.complete for state in states):
        run.next("verify", str(path))
