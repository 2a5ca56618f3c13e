"""One piece of work at a time: what is under way, and how it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from textual.worker import Worker

from backends.base.errors import BackendError
from console.app.halt import Halt
from console.app.session.draft import Draft
from console.errors import ConsoleError, NotDone
from recovery.plan.values import PlanError
from widgets.text import Tone

if TYPE_CHECKING:
    from console.app.main_screen.main_screen import MainScreen


class RunningTask:
    """``busy`` names what is under way, "" for nothing. ``halt`` stops what is sent, None while nothing is."""

    def __init__(self, desk: MainScreen) -> None:
        self._desk = desk
        self.busy = ""
        self.halt: Halt | None = None
        self._worker: Worker[None] | None = None
        self._since = 0

    def begin(self, busy: str, job: Coroutine[Any, Any, None]) -> None:
        """What it refuses is one line, and what should not happen ends the console."""
        if self.busy:
            job.close()
            self._desk.say(f"wait: {self.busy}; Esc stops it", Tone.WARN)
            return
        self.busy = busy
        self._since = self._desk.session.since
        self._worker = self._desk.run_worker(self._guarded(job), name=busy, exit_on_error=True)

    async def _guarded(self, job: Coroutine[Any, Any, None]) -> None:
        try:
            await job
        except (ConsoleError, BackendError, PlanError) as error:
            self._desk.say(str(error), Tone.BAD)
        finally:
            self.busy = ""
            self._desk.redraw()

    @contextlib.contextmanager
    def sending(self) -> Iterator[Halt]:
        """Around what changes the cluster: a signal, leaving and Esc finish what is in flight, and end it."""
        owner = self._desk.owner
        self.halt = Halt(owner.program.supervisor.stop, owner.is_leaving)
        owner.program.resume = self._desk.session.target.command("resume")
        try:
            yield self.halt
        finally:
            self.halt = None

    def stop(self) -> bool:
        """Stops what is under way: what was sent is finished, the rest given up. False: nothing was."""
        if not self.busy or self._worker is None:
            return False
        if self.halt is not None:
            self._desk.session.halt(self.halt)
            self._desk.say("stopping: what is in flight is finished, and nothing else is begun", Tone.WARN)
            return True
        # Not before its first step, which would leave nobody to say that it is over.
        asyncio.get_running_loop().call_soon(self._worker.cancel)
        self._desk.say(f"{self.busy}: stopped; nothing was sent", Tone.WARN)
        return True

    def plan_is(self, draft: Draft) -> None:
        """What the work made of the plan. Raises NotDone where it began with another picture of the cluster."""
        if self.busy and self._since != self._desk.session.since:
            raise NotDone("the cluster was lost, or is another one by now: the plan is left as it is")
        self._desk.session.plan_is(draft)
