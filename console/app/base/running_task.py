"""One task at a time, and how it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from textual.worker import Worker

from backends.base.errors import BackendError
from console.app.base.screen_calls import Owner, Say
from console.app.session.draft import Draft
from console.app.session.halt import Halt
from console.app.session.session import Session
from console.errors import ConsoleError, NotDone
from recovery.plan.values import PlanError
from widgets.text import Tone

Start = Callable[[Coroutine[Any, Any, None], str], Worker[None]]


class RunningTask:
    """``busy`` names the running task, "" if none runs. ``halt`` stops the sending, None if nothing is being
    sent. ``asks``: the running task is about to open a question or a screen, and keys that come before are meant
    for what opens, not for the pane behind it. ``types``: it opens a field, and keys wait for that.

    ``start`` runs a coroutine under a name; ``ended`` is called after each task.
    """

    def __init__(
        self, session: Session, owner: Owner, say: Say, *, start: Start, ended: Callable[[], None]
    ) -> None:
        self._session = session
        self._owner = owner
        self._say = say
        self._start = start
        self._ended = ended
        self.busy = ""
        self.asks = self.types = False
        self.halt: Halt | None = None
        self._worker: Worker[None] | None = None
        self._since = 0

    def begin(
        self, busy: str, job: Coroutine[Any, Any, None], *, asks: bool = True, types: bool = False
    ) -> None:
        """Starts ``job``. A refusal becomes one line; an unexpected error ends the console. ``asks``: it opens a
        question or a screen; when it opens no more before its end, it calls :meth:`asks_no_more`. ``types``: a
        field, which needs nothing of a cluster.
        """
        if self.busy:
            job.close()
            self._say(f"wait: {self.busy}; Esc stops it", Tone.WARN)
            return
        self.busy, self.asks, self.types = busy, asks, types
        self._since = self._session.since
        self._worker = self._start(self._guarded(job), busy)

    async def _guarded(self, job: Coroutine[Any, Any, None]) -> None:
        try:
            await job
        except (ConsoleError, BackendError, PlanError) as error:
            self._say(str(error), Tone.BAD)
        finally:
            self.busy, self.asks, self.types = "", False, False
            self._ended()

    def asks_no_more(self) -> None:
        """From now on keys act on the panes again, though the task goes on."""
        self.asks = self.types = False

    def withholds(self) -> bool:
        """Whether a key is to do nothing now, and says so: its question is not on the screen yet."""
        if self.asks:
            self._say(f"{self.busy}: keys do nothing until this asks or is done; Esc stops it", Tone.WARN)
        return self.asks

    @contextlib.contextmanager
    def sending(self) -> Iterator[Halt]:
        """A context for changes of the cluster: a signal, leaving and Esc let what is in flight finish, then
        end it. The program names a command to resume with until then, and longer only if it was stopped.
        """
        program = self._owner.program
        self.asks = False
        self.halt = halt = Halt(program.supervisor.stop, self._owner.is_leaving)
        program.resume = self._session.target.command("resume")
        try:
            yield halt
        finally:
            self.halt = None
            if not halt:
                program.resume = ""

    def stop(self) -> bool:
        """Stops the running task: what was sent is finished, the rest is given up. False: no task was
        running.
        """
        if not self.busy or self._worker is None:
            return False
        if self.halt is not None:
            self._session.halt(self.halt)
            self._say("stopping: what is in flight is finished, and nothing else is started", Tone.WARN)
            return True
        # Not before its first step, because then nothing would report its end.
        asyncio.get_running_loop().call_soon(self._worker.cancel)
        self._say(f"{self.busy}: stopped; nothing was sent", Tone.WARN)
        return True

    def plan_is(self, draft: Draft) -> None:
        """Takes over the plan that the task made. Raises NotDone if the task started with another view of the
        cluster.
        """
        if self.busy and self._since != self._session.since:
            raise NotDone("the cluster was lost, or is another one now: the plan is not changed")
        self._session.plan_is(draft)
