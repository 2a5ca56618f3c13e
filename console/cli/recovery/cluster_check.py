"""The course of ``ktriage check``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from backends.base.protocol import Backend
from backends.live.check import CheckReport
from console.cli.base.run import Run
from console.errors import InputError
from console.exit_status import Status
from console.output.check_report import checked_document, checked_lines, problems
from console.signals import StopRequest


def check_cluster(run: Run) -> int:
    """Checks and prints; returns the exit status."""

    async def job(backend: Backend, _stop: StopRequest) -> CheckReport:
        check: Callable[[], Awaitable[CheckReport]] | None = getattr(backend, "check", None)
        if check is None:
            raise InputError("this cluster cannot be checked")
        await backend.open()
        return await check()

    checked = run.read(job)
    run.screen.out(checked_document(checked) if run.json else checked_lines(checked))
    found = problems(checked)
    for problem in found:
        run.screen.say(problem)
    run.next("status")
    return Status.PARTLY if found else Status.DONE
