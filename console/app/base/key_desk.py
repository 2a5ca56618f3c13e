"""What the handlers of the main screen's keys work with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from textual.screen import Screen
from textual.worker import Worker

from backends.base.protocol import Backend
from console.app.base.confirmed_change import Confirmed, Sent
from console.app.base.navigation import Navigation
from console.app.base.progress import TaskProgress
from console.app.base.running_task import RunningTask
from console.app.base.screen_calls import Ask, OpenScreen, Say
from console.app.session.session import Session
from console.change.access import Access
from console.change.change import Change, ChangeReport, run_change
from console.change.registry import Action
from console.errors import NotDone
from console.program import Program
from console.provenance import now
from recovery.model import TopicPartition
from recovery.wording.quantity_text import and_more
from widgets.base_pane import Pane
from widgets.table import RowTable
from widgets.text import Tone

if TYPE_CHECKING:
    from console.change.unfinished_orders import HalfDone
    from widgets.dialogs.confirmation import ConfirmAnswer, ConfirmRequest

READ_ONLY = "READ-ONLY, this is only shown"

P = TypeVar("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class KeyDesk:
    """``pane_of`` gives a pane by its key, ``table`` that of the open pane, ``cursor`` the partition that it shows,
    ``command_line`` the command that shows the same. ``actions``: every action with why it does nothing now.
    ``clipboard`` puts a text on the terminal's clipboard, ``push`` opens a screen. ``find`` and ``follow`` run a
    coroutine, ``find`` instead of the one before.
    """

    session: Session
    say: Say
    ask: Ask
    tasks: RunningTask
    program: Program
    progress: TaskProgress
    navigation: Navigation
    pane_of: Callable[[str], Pane]
    table: Callable[[], RowTable[Any]]
    cursor: Callable[[], TopicPartition | None]
    command_line: Callable[[], str]
    actions: Callable[[], Iterable[tuple[Action, str]]]
    clipboard: Callable[[str], None]
    push: Callable[[Screen[Any]], object]
    open_screen: OpenScreen
    open_palette: Callable[[], object]
    find: Callable[[Any], Worker[None]]
    follow: Callable[[Any], Worker[None]]
    redraw: Callable[[], None]

    def tell(
        self,
        sent: Sent[R],
        report: ChangeReport[Any, R],
        *,
        whole: bool = True,
        goes_on: str = "",
        undo: str = "",
    ) -> None:
        """What became of a change, in one line; ``goes_on``: the key that does what is not done, ``undo`` what
        takes the change back. Not ``whole``: something is left, though nothing failed.
        """
        problems = tuple(report.problems(sent.result))
        if sent.unrecorded:
            self.say(sent.unrecorded[0], Tone.BAD)
        elif problems:
            ended = "; ".join(report.ended(sent.result))
            self.say(f"{ended}; {problems[0]}{and_more(len(problems))}{goes_on}", Tone.BAD)
        else:
            back = (undo,) if undo else ()
            self.say(
                ". ".join(("; ".join(report.ended(sent.result)), *back)), Tone.GOOD if whole else Tone.WARN
            )

    async def confirm(self, request: ConfirmRequest) -> ConfirmAnswer | None:
        """Asks for a change, and None says so at the bottom: it was not confirmed, or the console is read-only, so
        that the question was only shown.
        """
        from widgets.dialogs.confirmation import Confirmation  # noqa: PLC0415  # after the first frame

        safety = self.session.safety
        shown = "" if safety.armed else f"{READ_ONLY}: {safety.forbidden or 'Esc, then A arms the console'}"
        answer = await self.ask(Confirmation(replace(request, only_shown=shown)))
        if answer is None:
            how = "not confirmed" if safety.armed else "only shown"
            self.say(f"{how}: nothing was sent", Tone.WARN if safety.armed else Tone.INFO)
        return answer

    async def prepared(self, change: Change[Backend, P, R], cluster_id: str, what: str) -> P:
        """What the change would send, before anybody is asked; ``what`` names that in the progress line."""
        operator = Confirmed(self.progress.begin(what), lambda _line: None)
        try:
            return await self.session.run(lambda backend: change.prepare(backend, cluster_id, operator))
        finally:
            self.progress.end()

    async def change(
        self,
        request: ConfirmRequest,
        agreed: Callable[[ConfirmAnswer], Change[Backend, P, R]],
        cluster_id: str,
        what: str,
        *,
        resume: str = "",
    ) -> Sent[R] | None:
        """Asks, and carries out the change that was ``agreed``, in the journal and under the lock; None: it was
        not confirmed. Where an earlier run left its orders, it asks whether to revert these first.

        ``what`` names the change in the progress line; ``resume`` is the command that goes on after an
        interruption, ``ktriage resume`` if it is empty. Raises NotDone if this is another cluster by now, and what
        :func:`run_change` raises.
        """
        from console.change.unfinished_orders import HalfDone  # noqa: PLC0415  # after the first frame

        answer = await self.confirm(request)
        if answer is None:
            return None
        self.session.safety.refuse()
        try:
            return await self._send(agreed(answer), cluster_id, what, resume)
        except HalfDone as half:
            if not await self._reverts_first(half, cluster_id):
                raise
            return await self._send(agreed(answer), cluster_id, what, resume, revert=True)

    async def _reverts_first(self, half: HalfDone, cluster_id: str) -> bool:
        from console.change.resume_report import unfinished_lines  # noqa: PLC0415  # after the first frame
        from widgets.dialogs.confirmation import Confirmation, ConfirmRequest  # noqa: PLC0415

        target = (f"{self.session.target.title}, cluster {cluster_id}", *unfinished_lines(half.found, now()))
        title = "An earlier run is unfinished: revert its assignment orders first?"
        asked = ConfirmRequest(title, target=target, confirm_label="Revert", opened_by="enter")
        return await self.ask(Confirmation(asked)) is not None

    async def _send(
        self, change: Change[Backend, P, R], cluster_id: str, what: str, resume: str, *, revert: bool = False
    ) -> Sent[R]:
        unrecorded: list[str] = []
        program = self.program
        with self.tasks.sending() as halt:
            if resume:
                program.resume = resume
            operator = Confirmed(self.progress.begin(what), unrecorded.append, revert=revert)

            async def job(access: Access[Backend]) -> R:
                found = (await access.reading.cluster()).cluster_id
                if found != cluster_id:
                    raise NotDone(f"this is cluster {found} now, not {cluster_id}; nothing was sent")
                return await run_change(
                    change,
                    access,
                    cluster_id,
                    operator,
                    invocation=program,
                    stop=halt,
                    resume_command=program.resume,
                )

            try:
                result = await self.session.change(job, halt)
            finally:
                self.progress.end()
        return Sent(result, unrecorded, change.conclusion(result))
