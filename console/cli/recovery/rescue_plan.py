"""The course of ``ktriage rescue read``."""

from __future__ import annotations

from pathlib import Path

from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.errors import InputError
from console.exit_status import Status
from console.operations.elections.plan_file_checks import PlanPart, read_part, refuse_other_cluster
from console.operations.rescue.rescue_read import RescueReading, RescueRequest, read_plan
from console.output.rescue.rescue_report import rescue_document, rescue_lines
from console.signals import StopRequest
from recovery.plan.values import Plan


def read_rescue(run: Run, path: Path, part: PlanPart, request: RescueRequest, rows: int) -> int:
    """Reads what the plan's elections cut off and prints what came of it; returns the exit status."""
    plan = read_part(path, part)
    if not isinstance(plan, Plan):
        raise InputError(f"{path}: it names leaders only; make a plan with preconditions first: ktriage plan")

    async def job(backend: Backend, _stop: StopRequest) -> RescueReading:
        cluster_id = (await backend.open()).cluster_id
        refuse_other_cluster(plan, cluster_id, path)
        return await read_plan(backend, plan, cluster_id, request, run.screen.progress)

    reading = run.read(job)
    run.screen.out(rescue_document(reading) if run.json else rescue_lines(reading.rescued, rows))
    for tp, problem in reading.problems.items():
        run.screen.say(f"not rescued: {tp}: {problem}")
    if reading.problems:
        run.next("rescue", "read", str(path), "--to", str(request.directory))
        return Status.PARTLY
    run.next("apply", str(path), "--rescue", str(request.directory))
    return Status.DONE
