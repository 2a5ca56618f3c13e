"""Sends a change that was confirmed on the screen, and keeps what has to be reported with its result."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from backends.base.protocol import Backend
from console.app.main_screen.running_task import RunningTask
from console.app.plan.apply_plan import Confirmed
from console.app.plan.progress import TaskProgress
from console.app.session.session import Session
from console.operations.change import Change, run_change
from console.program import Program

P = TypeVar("P")
R = TypeVar("R")


class Sent(NamedTuple, Generic[R]):
    """``unrecorded``: the lines that say what the journal could not record; [] if it has everything."""

    result: R
    unrecorded: list[str]


class ChangeSender:
    def __init__(
        self, session: Session, tasks: RunningTask, progress: TaskProgress, program: Program
    ) -> None:
        self._session = session
        self._tasks = tasks
        self._progress = progress
        self._program = program

    async def send(
        self, change: Change[Backend, P, R], cluster_id: str, what: str, *, resume: str = ""
    ) -> Sent[R]:
        """Carries ``change`` out, in the journal and under the lock. ``what`` names it in the progress line;
        ``resume`` is the command that goes on after an interruption, ``ktriage resume`` if it is empty.

        Raises what :func:`run_change` raises.
        """
        unrecorded: list[str] = []
        program = self._program
        with self._tasks.sending() as halt:
            if resume:
                program.resume = resume
            operator = Confirmed(self._progress.begin(what), unrecorded.append)
            try:
                result = await self._session.change(
                    lambda access: run_change(
                        change,
                        access,
                        cluster_id,
                        operator,
                        invocation=program,
                        stop=halt,
                        resume_command=program.resume,
                    ),
                    halt,
                )
            finally:
                self._progress.end()
        return Sent(result, unrecorded)
