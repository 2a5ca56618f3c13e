"""The course of ``ktriage rescue read``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.errors import InputError
from console.exit_status import Status
from console.operations.elections.plan_file_checks import PlanPart, read_part, refuse_other_cluster
from console.operations.rescue.rescue_read import RescueReading, RescueRequest, read_disks, read_plan
from console.output.rescue.rescue_report import rescue_document, rescue_lines
from console.paths import unused
from console.signals import Stopped, StopRequest
from recovery.plan.values import Plan


def read_rescue(run: Run, path: Path, part: PlanPart, request: RescueRequest, rows: int) -> int:
    """Reads what the plan's elections cut off and prints what came of it; returns the exit status."""
    plan = read_part(path, part)
    if not isinstance(plan, Plan):
        raise InputError(f"{path}: it names leaders only; make a plan with preconditions first: ktriage plan")

    async def read(backend: Backend, cluster_id: str) -> RescueReading:
        refuse_other_cluster(plan, cluster_id, path)
        return await read_plan(backend, plan, cluster_id, request, run.screen.progress)

    again = ("rescue", "read", str(path), *_words(request))
    return _rescue(run, read, rows, again, then=("apply", str(path), "--rescue", str(request.directory)))


def read_rescue_of_disks(run: Run, request: RescueRequest, topics: Sequence[str], rows: int) -> int:
    """Reads what disks hold and the leaders of now do not; returns the exit status."""

    async def read(backend: Backend, cluster_id: str) -> RescueReading:
        return await read_disks(backend, cluster_id, request, topics, run.screen.progress)

    again = ("rescue", "read", *_words(request), *(word for topic in topics for word in ("--topic", topic)))
    return _rescue(run, read, rows, again, then=("rescue", "show", str(request.directory)))


def _words(request: RescueRequest) -> tuple[str, ...]:
    disks = tuple(word for path in request.log_dirs for word in ("--from-disk", str(path)))
    return "--to", str(request.directory), *disks


def _rescue(
    run: Run,
    read: Callable[[Backend, str], Awaitable[RescueReading]],
    rows: int,
    again: tuple[str, ...],
    then: tuple[str, ...],
) -> int:
    async def job(backend: Backend, _stop: StopRequest) -> RescueReading:
        return await read(backend, (await backend.open()).cluster_id)

    try:
        reading = run.read(job)
    except Stopped:
        run.next(*again)
        raise
    if run.json:
        run.screen.out(rescue_document(reading))
    elif reading.rescued.results or not reading.leaderless:
        run.screen.out(rescue_lines(reading.rescued, rows))
    for tp, problem in reading.problems.items():
        run.screen.say(f"not rescued: {tp}: {problem}")
    if reading.leaderless:
        topics = dict.fromkeys(tp.topic for tp in reading.leaderless)
        words = (word for topic in topics for word in ("--topic", topic))
        run.next("plan", *words, unused())
    else:
        run.next(*(again if reading.problems else then))
    useless = any(one.useless for one in reading.rescued.disks)
    return Status.PARTLY if reading.problems or useless else Status.DONE
