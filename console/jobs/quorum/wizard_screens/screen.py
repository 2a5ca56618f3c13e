"""The wizard's screen: the steps of a controller replacement, and the person's answers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from backends.base.errors import BackendError
from backends.base.protocol import Backend
from console.app.base.running_task import RunningTask
from console.app.base.screen_calls import Say
from console.app.session.arm_switch import switch_arming, where_line
from console.app.session.halt import Halt
from console.app.session.session import Session
from console.change.access import Access
from console.change.loss_consent import RISK
from console.errors import ConsoleError, NotDone
from console.jobs.quorum.replacement_run import LoadedReplacement
from console.jobs.quorum.replacement_steps import ReplacementResult, StopReason
from console.jobs.quorum.wizard_screens import wizard
from console.jobs.quorum.wizard_screens.wizard import Bridge, ReplacementProgress
from console.program import Program
from recovery.membership.replacement import ReplacementStep as PlannedStep
from widgets.bars.message_bars import MessageBar
from widgets.dialogs.confirmation import Confirmation, ConfirmPart, ConfirmRequest
from widgets.dialogs.dismiss_once import DismissOnce
from widgets.lifecycle import is_ready, screen_is_open, when_ready
from widgets.text import Line, Piece, Tone, line
from widgets.text_lines import Lines
from widgets.wizard import StepProgress, StepState, Wizard, WizardStep, WizardView

SETTLED_SECONDS = 1.0
"""Seconds that a step must be shown before it can be confirmed as done: an earlier key press was meant for
the previous step.
"""


class WizardScreen(DismissOnce[None], ModalScreen[None]):
    """Carries out a plan. Esc leaves the screen; the plan is saved and can be continued later.

    Enter starts, and agrees to what is to be sent. Another key, d, confirms that a step on a host is done.
    """

    DEFAULT_CSS = """
    WizardScreen { background: $surface; }
    WizardScreen > WizardView { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", show=False),
        # The steps have it too, but only after one of them is the current one.
        Binding("enter", "go", "Go on", show=False, priority=True),
        Binding("d", "done", "Say that the step is done", show=False, priority=True),
        Binding("G", "give_up", "Give up what was begun", show=False, priority=True),
        Binding("A", "arm", "Arm, or make read-only again", show=False, priority=True),
    ]

    def __init__(
        self,
        session: Session,
        tasks: RunningTask,
        program: Program,
        say_below: Say,
        planned: LoadedReplacement,
        *,
        half_done: bool = False,
    ) -> None:
        """``say_below`` shows a message on the screen below this one. ``half_done``: the journal has the plan as
        begun.
        """
        super().__init__()
        self._session = session
        self._tasks = tasks
        self._program = program
        self._say_below = say_below
        self.planned = planned
        self.waits_for_arming = False
        self._progress = ReplacementProgress()
        self.done = False
        self._bridge: Bridge | None = None
        self._halt: Halt | None = None
        self._begun = False
        self._half_done = half_done
        self._stepped_at: float | None = None

    def compose(self) -> ComposeResult:
        yield WizardView(id="wizard")
        yield MessageBar(id="wizard-say")
        yield Lines(self._keys, id="wizard-keys", focusable=False)

    def _keys(self, _width: int) -> list[Line]:
        if self.done:
            return [line(Piece("Esc", Tone.KEY), Piece(" back to the panes"))]
        copy: tuple[Piece, ...] = (Piece("c", Tone.KEY), Piece(" copy the command  "))
        if not self._session.safety.armed:
            copy = (*copy, Piece("A", Tone.KEY), Piece(" arm  "))
        if self._may_give_up:
            copy = (*copy, Piece("G", Tone.KEY), Piece(" give up  "))
        return [line(*self._going(), *copy, Piece("Esc", Tone.KEY), Piece(" leave, the plan is kept"))]

    @property
    def _may_give_up(self) -> bool:
        """Whether an earlier run, or this screen, began what does not go on now."""
        return self._bridge is None and not self.done and (self._begun or self._half_done)

    def _going(self) -> tuple[Piece, ...]:
        """The key for the next action; None if only the cluster can make progress."""
        if self._progress.question is not None:
            return Piece("Enter", Tone.KEY), Piece(" send it (asks once more)  ")
        if self._bridge is None:
            return Piece("Enter", Tone.KEY), Piece(" go on  " if self._begun else " begin  ")
        if self._to_say is not None:
            return Piece("d", Tone.KEY), Piece(" step is done  ")
        return ()

    @property
    def _to_say(self) -> PlannedStep | None:
        """The current step if an operator may confirm it as done."""
        step = self._progress.step
        return step if step is not None and step.kind.operator_confirms else None

    def on_mount(self) -> None:
        if not screen_is_open(self):  # removed before it was mounted
            return
        self.query_one(WizardView).focus_first()
        self.call_later(self._draw)
        self.call_later(self._say, f"Enter begins; the plan is in {self.planned.file}", Tone.INFO)
        self.run_worker(self._read_position(), name="standing")

    async def _read_position(self) -> None:
        """The steps as the cluster shows them before the start: some may already be done."""
        try:
            reported = await self._session.run(lambda backend: wizard.stands(backend, self.planned))
        except (ConsoleError, BackendError) as error:
            self._say(f"the current step is not known ({error}); Enter begins", Tone.WARN)
            return
        if not self._begun:  # else the run reports it
            self._progress, self.done = reported, reported.step is None
            self._draw()

    def _say(self, text: str, tone: Tone) -> None:
        if is_ready(self):
            self.query_one(MessageBar).say(text, tone)

    def action_go(self) -> None:
        """Starts, or agrees to the change in question."""
        if self._bridge is None:
            self._begin()
            return
        step = self._to_say
        if self._progress.question is not None:
            self.run_worker(self._ask(), name="asking", exclusive=True, group="asking")
        elif step is not None:
            self._say(_how_to_say(step), Tone.WARN)
        else:
            self._say(_BY_ITSELF, Tone.INFO)

    def action_done(self) -> None:
        """The operator confirms that the current step on a host is done."""
        if self.done:
            return
        step, why = self._to_say, self._why_not_done()
        if self._bridge is None or step is None or why:
            self._say(why, Tone.WARN)
            return
        self._bridge.confirm(step.number)
        self._say(f"step {step.number} counts as done; the cluster is read once more", Tone.INFO)

    def _why_not_done(self) -> str:
        """Why the current step cannot be confirmed as done now; "" if it can."""
        step, situation = self._progress.step, self._progress.situation
        if self._bridge is None or step is None:
            return "nothing is under way: Enter begins"
        if self._progress.question is not None:
            return f"Enter: {self._progress.wording}"
        if not step.kind.operator_confirms:
            return _BY_ITSELF
        if self._stepped_at is None or self._session.clock() - self._stepped_at < SETTLED_SECONDS:
            return f"step {step.number} has only just begun: read it first"
        if situation is not None and situation.blockers:
            return f"step {step.number} does not count as done: {situation.blockers[0]}"
        return self._why_not()

    def _begin(self) -> None:
        why = self._why_not()
        self.waits_for_arming = bool(why) and self._session.safety.forbidden is None
        if why:
            self._say(why, Tone.WARN)
            return
        if self._tasks.busy:
            self._say(f"wait: {self._tasks.busy}", Tone.WARN)
            return
        self._begun, self._stepped_at = True, None
        self._say("started: reading the cluster; Esc leaves and keeps the current state", Tone.INFO)
        # A task of the main screen: it continues after this screen is closed, and finishes what it has in
        # flight.
        self._tasks.begin("replacing a controller", self._run())

    def _why_not(self) -> str:
        safety = self._session.safety
        if safety.forbidden is not None:
            return f"this console stays read-only: {safety.forbidden}"
        return "" if safety.armed else "the console is read-only: A arms it"

    async def _run(self) -> None:
        session, program = self._session, self._program
        with self._tasks.sending() as halt:
            self._halt = halt

            async def job(access: Access[Backend]) -> ReplacementResult:
                self._bridge = Bridge(
                    lambda reported: session.from_thread(self._show, reported),
                    halt,
                    self.planned.plan,
                    self.planned.confirmed,
                    lambda: not self._why_not(),
                )
                return await wizard.run(access, program, self.planned, halt, self._bridge)

            try:
                result = await session.change(job, halt)
            except (ConsoleError, BackendError) as error:
                self._say(str(error), Tone.BAD)
            else:
                self._ended(result)
            finally:
                self._bridge = self._halt = None
                self._draw()
                session.poller.ask()

    def _ended(self, result: ReplacementResult) -> None:
        done = self.done = result.reason is StopReason.DONE
        text = (
            "the replacement is done"
            if done
            else f"{result.reason}: Enter continues from the cluster's current state"
        )
        self._say(text, Tone.GOOD if done else Tone.WARN)
        self._draw()

    async def _ask(self) -> None:
        question, wording, bridge = self._progress.question, self._progress.wording, self._bridge
        why = self._why_not()
        if question is None or bridge is None or why:
            self._say(why, Tone.WARN)
            return
        session = self._session
        asked = ConfirmRequest(
            title=f"{wording[:1].upper()}{wording[1:]}?",
            target=(f"{session.target.marked_title}, cluster {session.view.cluster_id}",),
            confirm_label="Send",
            opened_by="enter",
            parts=(
                ConfirmPart(
                    RISK, (*question.verdict.warnings, *(_BOTH if wording != question.sentence else ()))
                ),
            ),
            expected=str(question.voter.key.id),
            expected_what=f"the node id ({question.voter.key.id})",
        )
        confirmed = await self.app.push_screen_wait(Confirmation(asked))
        if confirmed is None:
            self._say("not confirmed: nothing was sent; Enter asks again", Tone.WARN)
        elif self._why_not():
            self._say(self._why_not(), Tone.WARN)
        elif self._progress.question is not question:
            self._say("the cluster has changed meanwhile: nothing was sent; read the screen again", Tone.WARN)
        else:
            bridge.allow(question)

    @on(WizardView.CopyCommand)
    @when_ready
    def _copy(self, event: WizardView.CopyCommand) -> None:
        self.app.copy_to_clipboard(event.command)
        self._say("copied to the terminal's clipboard", Tone.GOOD)

    def action_arm(self) -> None:
        """As A on the screen below."""
        try:
            self._say(*switch_arming(self._session))
        except NotDone as error:
            self._say(str(error), Tone.WARN)
        self._draw()

    def action_give_up(self) -> None:
        """The plan that was begun is ended in the journal, and the voters stay as they are."""
        why = self._why_not()
        if not self._may_give_up:
            self._say("nothing that stands still was begun: Esc leaves", Tone.INFO)
        elif why or self._tasks.busy:
            self._say(why or f"wait: {self._tasks.busy}", Tone.WARN)
        else:
            self._tasks.begin("giving up the replacement", self._give_up(), asks=False)

    async def _give_up(self) -> None:
        with self._tasks.sending() as halt:
            try:
                await self._session.change(
                    lambda access: wizard.give_up(access, self._program, self.planned, halt), halt
                )
            except (ConsoleError, BackendError) as error:
                self._say(str(error), Tone.BAD)
                return
        self.done = True  # nothing of it is offered again
        self._say_below("given up: the voters stay as they are; M plans anew", Tone.INFO)
        self.dismiss(None)

    def action_leave(self) -> None:
        """No further step is started; what was sent stays sent, and the journal records the current step."""
        if self._halt is not None:
            self._session.halt(self._halt)
        if self.done:
            self._say_below("the replacement is done", Tone.GOOD)
        elif self._begun:
            self._say_below("the replacement stays at this step; M continues it", Tone.WARN)
        else:
            step = self._progress.step
            left = "nothing was begun"
            if step is not None and step.number > 1:
                left = f"step {step.number} is next, as the cluster shows it"
            leaving = " and ".join(str(key.id) for key in self.planned.plan.wanted.leaving)
            again = f"M on controller {leaving}" if leaving else "M"
            self._say_below(f"{left}; {again} offers this plan again ({self.planned.file})", Tone.INFO)
        self.dismiss(None)

    def _show(self, reported: ReplacementProgress) -> None:
        asks = reported.question is not None and self._progress.question is None
        other = self._stepped_at is None or _number(reported) != _number(self._progress)
        if other:
            self._stepped_at = self._session.clock()
        self._progress = reported
        self._draw()
        if asks:
            self._say(f"Enter: {reported.wording}", Tone.WARN)
        elif other and self._to_say is not None:
            self._say(_how_to_say(self._to_say), Tone.WARN)
        elif reported.said:
            self._say(reported.said, Tone.INFO)

    def _draw(self) -> None:
        if is_ready(self):
            steps = shown(self.planned, self._progress, done=self.done)
            self.query_one(WizardView).update(replace(steps, where=where_line(self._session)))
            self.query_one("#wizard-keys", Lines).show_again()


def _host(step: PlannedStep) -> str:
    if not step.kind.on_host:
        return ""
    return f"controller {step.node}" if step.node >= 0 else "every controller and broker"


def _unknown_hosts(step: PlannedStep) -> tuple[str, ...]:
    """What is to be put in by hand before the commands are run."""
    found = dict.fromkeys(re.findall(r"HOST-OF-(\d+):PORT", " ".join(step.commands)))
    return tuple(
        f"HOST-OF-{node}:PORT is not known here: put in the host and port of controller {node}"
        for node in found
    )


_BOTH = ("the addition follows without another question",)
_BY_ITSELF = "the run continues by itself when the cluster shows that this step is done"


def _number(reported: ReplacementProgress) -> int:
    return 0 if reported.step is None else reported.step.number


def _how_to_say(step: PlannedStep) -> str:
    return f"step {step.number} is done on the hosts: press d when it is done, not Enter"


def shown(planned: LoadedReplacement, reported: ReplacementProgress, *, done: bool) -> Wizard:
    """The plan's steps; those before the current one are done. None is done before the cluster was read. The
    current one is as it was reported: it names hosts that were not known when the plan was made.
    """
    plan, reported_step = planned.plan, reported.step
    now = 0 if reported_step is None else reported_step.number
    as_known = (reported_step if reported_step and step.number == now else step for step in plan.steps)
    steps = tuple(_step(step, now, reported, done=done) for step in as_known)
    kind = plan.wanted.kind
    return Wizard(
        f"Replace a controller ({kind}), plan {plan.header.plan_id[:8]}", steps, "; ".join(plan.notes)
    )


def _step(step: PlannedStep, now: int, reported: ReplacementProgress, *, done: bool) -> WizardStep:
    state = StepState.WAITING
    if done or step.number < now:
        state = StepState.DONE
    elif step.number == now:
        state = StepState.CURRENT
    situation = reported.situation if state is StepState.CURRENT else None
    progress = None
    if situation is not None and situation.target >= 0:
        progress = StepProgress(situation.caught, situation.target, "offsets", reported.seconds_left)
    return WizardStep(
        step.title,
        state,
        host=_host(step),
        commands=step.commands,
        sends=step.sends,
        waits_for=step.waits_for if situation is None or not situation.waits_for else situation.waits_for,
        blockers=() if situation is None else (*situation.blockers, *reported.refused),
        wrong=(*_unknown_hosts(step), *step.risks),
        back=step.back,
        stands=step.stands,
        progress=progress,
    )
