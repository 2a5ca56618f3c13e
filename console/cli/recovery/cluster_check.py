"""The course of ``ktriage check``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from backends.base.protocol import Backend
from backends.live.check import CheckReport
from console.cli.base.run import Run
from console.errors import InputError
from console.exit_status import Status
from console.operations.cluster_health import read_health
from console.output.check_report import checked_document, checked_lines, problems
from console.signals import StopRequest
from recovery.cluster_health import ClusterHealth


def check_cluster(run: Run) -> int:
    """Checks and prints; returns the exit status."""

    async def job(backend: Backend, _stop: StopRequest) -> tuple[CheckReport, ClusterHealth]:
        check: Callable[[], Awaitable[CheckReport]] | None = getattr(backend, "check", None)
        if check is None:
            raise InputError("this cluster cannot be checked")
        await backend.open()
        report = await check()
        problems = {reach.broker: reach.problem for reach in report.reach}
        return report, await read_health(backend, report.cluster, problems)

    checked, health = run.read(job)
    run.screen.out(checked_document(checked, health) if run.json else checked_lines(checked, health))
    found = problems(checked)
    for problem in found:
        run.screen.say(problem)
    run.next("status")
    return Status.PARTLY if found else Status.DONE
