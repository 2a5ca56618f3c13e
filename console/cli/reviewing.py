"""The course of ``ktriage review``."""

from __future__ import annotations

from pathlib import Path

from backends.base.protocol import Backend
from console.actions.apply import Prepared, prepare
from console.cli.planning import refuse_other_cluster
from console.cli.run import Run
from console.cli.status import Status
from console.errors import InputError
from console.output.reviewed import review_document, review_lines
from console.planfile import read
from console.signals import StopRequest
from recovery.plan.markdown import markdown
from recovery.plan.values import BarePlan, Plan


def review_file(run: Run, path: Path, rows: int, *, markdown_wanted: bool) -> int:
    """Prints the review of the plan file; returns the exit status."""
    plan = read(path)
    if isinstance(plan, BarePlan):
        raise InputError(
            f"{path}: it holds leaders only; there is nothing to review. ktriage apply asks its partitions afresh"
        )
    prepared, native = _compare(run, plan, path) if run.named is not None else (None, None)
    command = _next_command(run, path)
    if markdown_wanted:
        run.screen.out(markdown(plan, str(path), command).splitlines())
    elif run.json:
        run.screen.out(review_document(plan, prepared, native=bool(native)))
    else:
        run.screen.out(review_lines(plan, prepared, rows, native=native))
    if prepared is None or prepared.holding.rows:
        run.screen.say(f"next: {command}")
    elif not prepared.stale:
        run.next("verify", str(path))
    if prepared is None:
        return Status.DONE
    if prepared.stale:
        return Status.STALE
    return Status.PARTLY if prepared.refused else Status.DONE


def _compare(run: Run, plan: Plan, path: Path) -> tuple[Prepared, bool]:
    """How the plan stands now, and whether the cluster elects designated leaders itself."""

    async def job(backend: Backend, _stop: StopRequest) -> tuple[Prepared, bool]:
        cluster = await backend.open()
        refuse_other_cluster(plan, cluster.cluster_id, path)
        prepared = await prepare(backend, plan, cluster.cluster_id, run.screen.progress)
        return prepared, (await backend.capabilities()).native_elections

    return run.work(job)


def _next_command(run: Run, path: Path) -> str:
    if run.named is not None:
        return run.named.command("apply", str(path))
    return f"ktriage apply {path} --bootstrap-server HOST:PORT"
