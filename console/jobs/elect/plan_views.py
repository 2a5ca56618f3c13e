"""``ktriage apply``, ``review`` and ``verify`` of a plan file. ``elect --election-type designated`` is the same as
``apply``.
"""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path

from backends.base.protocol import Backend
from backends.base.simulated_clusters import rehearsal
from console.change.change import ChangeReport
from console.cli.base.run import Run
from console.cli.base.terminal_operator import execute_change
from console.errors import InputError, Status
from console.jobs.consumers.consumer_views import selection_words
from console.jobs.elect.apply_plan import Applied, ApplyPlan
from console.jobs.elect.apply_report import aftermath_lines, applied_document, applied_lines, prepared_lines
from console.jobs.elect.review_report import (
    markdown,
    review_document,
    review_lines,
    verified_document,
    verified_lines,
)
from console.jobs.elect.verify_plan import Verified, read_verified
from console.jobs.quorum.lost_quorum import is_rebuild, review_rebuild
from console.jobs.rescue.rescue_first import recorded_rescue, rescue_words
from console.plan_file_checks import refuse_other_cluster
from console.plan_files import read
from console.reading.consumer_reading import consumer_lines
from console.reading.plan_comparison import PreparedPlan, prepare
from console.rescue_files.rescued_branch import refuse_other_rescue, rescue_of
from console.signals import StopRequest
from recovery.plan.values import BarePlan, Plan
from recovery.plan.verify import Leading, Order
from recovery.wording.quantity_text import both
from recovery.wording.unread_disk_text import stop_and_read, unread_disk_lines


def apply_file(run: Run, change: ApplyPlan, *, command: str, ask: bool, rows: int) -> int:
    """Applies a plan from a file and prints the result; returns the exit status.

    Raises StalePlan if no row can be applied any more.
    """
    report = ChangeReport[PreparedPlan, Applied](
        prepared_lines,
        partial(applied_lines, limit=rows),
        lambda applied: map(str, applied.failures),
        partial(applied_document, command),
        lambda prepared: prepared.notes,
    )
    instead = "--yes and --reason TEXT"
    return run.conclude(
        change.conclusion(
            execute_change(run, change, report, run.change, ask=ask, rows=rows, instead=instead)
        )
    )


def review_file(run: Run, path: Path, rows: int, *, markdown_wanted: bool) -> int:
    """Prints the review of the plan file; returns the exit status."""
    if is_rebuild(path):
        return review_rebuild(run, path, markdown_wanted=markdown_wanted)
    plan = read(path)
    if isinstance(plan, BarePlan):
        raise InputError(
            f"{path}: the file names only leaders, so there is nothing to review. ktriage apply reads the"
            " logs of its partitions first"
        )
    simulated = rehearsed(plan.header.cluster_id)
    prepared, native = (
        _compare(run, plan, path) if run.named is not None else (None, simulated is not None or None)
    )
    holding = plan if prepared is None else prepared.holding
    command = _next_command(run, ("apply", str(path), *rescue_words(holding)), simulated)
    if markdown_wanted:
        run.screen.out(markdown(plan, str(path), command, native=native).splitlines())
    elif run.json:
        run.screen.out(review_document(plan, prepared, native=bool(native)))
    else:
        run.screen.out(review_lines(plan, prepared, rows, native=native))
    if prepared is None or prepared.holding.rows:
        if run.named is None and simulated is not None:
            run.screen.say("if the plan was made with --state FILE, give it to the next command too")
        run.screen.say(f"next: {command}")
    elif not prepared.stale:
        run.next("verify", str(path))
    if prepared is None:
        return Status.DONE
    if prepared.stale:
        return Status.STALE
    return Status.PARTLY if prepared.refused else Status.DONE


def _compare(run: Run, plan: Plan, path: Path) -> tuple[PreparedPlan, bool]:
    """The plan compared with the cluster, and whether the cluster supports designated elections itself."""

    async def job(backend: Backend, _stop: StopRequest) -> tuple[PreparedPlan, bool]:
        cluster = await backend.open()
        refuse_other_cluster(plan, cluster.cluster_id, path)
        prepared = await prepare(backend, plan, cluster.cluster_id, run.screen.progress)
        return prepared, (await backend.capabilities()).native_elections

    return run.read(job)


def _next_command(run: Run, words: tuple[str, ...], simulated: tuple[str, ...] | None) -> str:
    if run.named is not None and run.named.bundle is None:
        return run.named.command(*words)
    return shlex.join(("ktriage", *words, *(simulated or ("--bootstrap-server", "HOST:PORT"))))


def rehearsed(cluster_id: str) -> tuple[str, ...] | None:
    """The options that select the same simulated cluster, found by its id; None: a real cluster.

    For a scenario in the user's own file, the id does not contain the full path.
    """
    made = rehearsal(cluster_id)
    if made is None:
        return None
    from backends.simulator.scenario.files import names  # noqa: PLC0415  # for a rehearsal's plan only

    scenario = made.scenario if made.scenario in names() else "FILE.yaml"
    return ("--simulate", scenario, "--seed", str(made.seed))


def verify_file(
    run: Run, path: Path, seconds: float, rows: int, directory: Path | None, *, as_consumer: bool
) -> int:
    """Reads the partitions of the plan file and prints what is missing; returns the exit status. ``directory`` is a
    rescue that holds markers of transactions; None: that of the journal, if there is one. ``as_consumer``: a
    consumer reads them too.
    """
    plan = read(path)
    if directory is None and isinstance(plan, Plan):
        directory = recorded_rescue(plan.header.cluster_id, plan.header.plan_id)
    rescue = rescue_of(directory, plan)

    async def job(backend: Backend, _stop: StopRequest) -> Verified:
        cluster = await backend.open()
        refuse_other_cluster(plan, cluster.cluster_id, path)
        refuse_other_rescue(rescue, cluster.cluster_id)
        progress = run.screen.progress
        return await read_verified(
            backend,
            plan,
            cluster,
            seconds=seconds,
            progress=progress,
            rescue=rescue,
            file=path,
            as_consumer=as_consumer,
        )

    verified = run.read(job)
    states, aftermath, disk_states = verified.states, verified.aftermath, verified.disks
    if verified.disks_problem:
        run.screen.say(
            "which disks are still to be read before their brokers start is not known:"
            f" {verified.disks_problem}"
        )
    if run.json:
        run.screen.out(verified_document(verified))
    else:
        if verified.consumer is not None:
            run.screen.out(consumer_lines(verified.consumer, rows))
        run.screen.out(verified_lines(verified, rows))
        run.screen.out(unread_disk_lines(disk_states, disk_states))
        loses = isinstance(plan, BarePlan) or any(not row.lossless for row in plan.rows)
        run.screen.out(aftermath_lines(aftermath, rows, loses=loses))
    _next_of_states(run, verified, path)
    if aftermath.affected and not any(state.leading is Leading.OFFLINE for state in states):
        run.next("groups", "fix", str(path), "--dry-run")
    if aftermath.hanging:
        run.next("transactions", "fix", *selection_words(path, (), directory), "--dry-run")
    return Status.DONE if verified.complete else Status.PARTLY


def _next_of_states(run: Run, verified: Verified, path: Path) -> None:
    states = verified.states
    if verified.stale:  # nothing that elects can succeed
        run.next("quorum", "status")
    elif any(state.order is Order.NOT_REVERTED for state in states):
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
        if any(state.order is Order.WITHOUT_KEPT for state in states):
            run.screen.say(
                "a log that is kept is read when its broker is up again, from its -stray folder (ktriage rescue"
                " read --to DIR --from-disk LOG_DIR); then ktriage heal assign-again gives it its replica back"
            )
        if verified.awaited:
            run.screen.say(f"ktriage heal assign-again: when broker {both(verified.awaited)} is up")
        elif any(state.order is Order.TO_ASSIGN for state in states):
            run.next("heal", "assign-again")
        if writing := sorted({one.broker for state in states for one in state.old_leaders}):
            run.screen.say(f"to save what an old leader still takes, {stop_and_read(writing)}")
        run.screen.say("the table names what is not done yet; check again when it is:")
        run.next("verify", str(path))
