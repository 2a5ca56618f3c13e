"""Runs ``ktriage verify``."""

from __future__ import annotations

from pathlib import Path

from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.cli.recovery.transactions import selection_words
from console.exit_status import Status
from console.operations.consumers.election_aftermath import ElectionAftermath, read_aftermath
from console.operations.elections.election_batches import survey_rows
from console.operations.elections.plan_comparison import refuse_rows
from console.operations.elections.plan_file_checks import partitions_of, refuse_other_cluster
from console.output.plan.apply_report import aftermath_lines
from console.output.plan.review_report import verified_document, verified_lines
from console.plan_files import read
from console.rescue.rescued_markers import refuse_other_rescue, rescue_of
from console.signals import StopRequest
from recovery.plan.make import misplaced_leaders
from recovery.plan.values import BarePlan
from recovery.plan.verify import Leading, Order, RowState, verify


def verify_file(run: Run, path: Path, seconds: float, rows: int, directory: Path | None) -> int:
    """Reads the partitions of the plan file and prints what is missing; returns the exit status. ``directory`` is a
    rescue that holds markers of transactions.
    """
    plan = read(path)
    rescue = rescue_of(directory, plan)

    async def job(backend: Backend, _stop: StopRequest) -> tuple[tuple[RowState, ...], ElectionAftermath]:
        cluster = await backend.open()
        refuse_other_cluster(plan, cluster.cluster_id, path)
        refuse_other_rescue(rescue, cluster.cluster_id)
        progress = run.screen.progress
        surveys = await survey_rows(backend, partitions_of(plan), progress, seconds)
        if isinstance(plan, BarePlan):
            refuse_rows(path, misplaced_leaders(plan, surveys))
        states = verify(plan, surveys)
        return states, await read_aftermath(backend, plan, seconds, progress, rescue)

    states, aftermath = run.read(job)
    if run.json:
        run.screen.out(verified_document(states, aftermath))
    else:
        run.screen.out(verified_lines(states, rows))
        run.screen.out(aftermath_lines(aftermath, rows))
    _next(run, states, path)
    if aftermath.affected and not any(state.leading is Leading.OFFLINE for state in states):
        run.next("groups", "fix", str(path), "--dry-run")
    if aftermath.hanging:
        run.next("transactions", "fix", *selection_words(path, (), directory), "--dry-run")
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
        if any(state.lost_offsets for state in states):
            run.screen.say(
                "what a leader has not does not come back by waiting: a disk that still holds it can be read"
                " (ktriage rescue read --from-disk DIR) and written back (ktriage restore)"
            )
        run.screen.say("the table names what is not done yet; check again when it is:")
        run.next("verify", str(path))
