"""The course of ``ktriage check``."""

from __future__ import annotations

from backends.base.check_report import CheckReport
from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.exit_status import Status
from console.operations.survey.cluster_health import read_health
from console.operations.survey.evidence_sources import FurtherSource, evidence_sources
from console.output.survey.check_report import checked_document, checked_lines, problems
from console.signals import StopRequest
from recovery.cluster_health import ClusterHealth


def check_cluster(run: Run) -> int:
    """Checks and prints; returns the exit status."""

    async def job(
        backend: Backend, _stop: StopRequest
    ) -> tuple[CheckReport, ClusterHealth, tuple[FurtherSource, ...]]:
        await backend.open()
        report = await backend.check()
        problems = {reach.broker: reach.problem for reach in report.reach}
        health = await read_health(backend, report.cluster, problems)
        return report, health, await evidence_sources(backend)

    checked, health, sources = run.read(job)
    form = checked_document if run.json else checked_lines
    run.screen.out(form(checked, health, sources))
    found = problems(checked)
    for problem in found:
        run.screen.say(problem)
    run.next("status")
    return Status.PARTLY if found else Status.DONE
