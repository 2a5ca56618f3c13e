"""Runs ``ktriage review``."""

from __future__ import annotations

import shlex
from pathlib import Path

from backends.base.protocol import Backend
from backends.base.simulated_clusters import rehearsal
from console.cli.base.run import Run
from console.errors import InputError
from console.exit_status import Status
from console.operations.elections.plan_comparison import PreparedPlan, prepare
from console.operations.elections.plan_file_checks import refuse_other_cluster
from console.operations.rescue.rescue_first import rescue_words
from console.output.plan.review_report import review_document, review_lines
from console.plan_files import read
from console.signals import StopRequest
from recovery.plan.plan_markdown import markdown
from recovery.plan.values import BarePlan, Plan


def review_file(run: Run, path: Path, rows: int, *, markdown_wanted: bool) -> int:
    """Prints the review of the plan file; returns the exit status."""
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
    if run.named is not None:
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
