"""The screen that guides through the replacement of a broker's disk. It sends nothing itself."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from backends.base.errors import BackendError
from backends.base.protocol import Backend
from console.app.base.question_dialogs import AnswerOption, ChoiceQuestion
from console.app.session.arm_switch import where_line
from console.app.session.session import Session
from console.errors import ConsoleError
from console.jobs.disks.disk_swap import disk_swap, is_back, read_log_dirs
from console.reading.leaderless_partitions import leaderless_lines
from console.reading.log_dir_survey import Disks
from recovery.disks.disk_swap import (
    DiskSwap,
    SwapSituation,
    SwapStep,
    SwapStepKind,
    already_swapped,
    current_step,
    leaderless,
    left_undone,
    may_say,
    revocable_step,
    taken_back,
    waiting,
    with_confirmed,
)
from recovery.disks.values import LogDirPlace
from recovery.membership.catch_up_rate import CatchUpRate
from recovery.model import TopicPartition, Unknown
from recovery.wording.quantity_text import counted, some_of
from widgets.bars.message_bars import MessageBar
from widgets.dialogs.dismiss_once import DismissOnce
from widgets.lifecycle import is_ready, screen_is_open, when_ready
from widgets.text import Line, Piece, Tone, line
from widgets.text_lines import Lines
from widgets.wizard import StepProgress, StepState, Wizard, WizardStep, WizardView

# One reading of a disk that is being replaced: its steps, and how far they are.


class SwapPicture(NamedTuple):
    """``found`` has the steps, ``now`` how far they are. ``stuck`` says what to do for partitions that nobody
    leads, one line each. ``target`` are the options that name the cluster.
    """

    found: DiskSwap
    now: SwapSituation
    stuck: tuple[str, ...]
    cluster_id: str
    target: tuple[str, ...]
    only_leader: tuple[TopicPartition, ...] = ()
    """The partitions that go offline when the broker stops: nobody else is in their ISR."""


async def read_swap(
    backend: Backend, place: LogDirPlace, before: SwapPicture | None, target: tuple[str, ...]
) -> SwapPicture:
    """Reads the cluster; what ``before`` saw stays seen. Raises BackendError and InputError."""
    disks = await read_log_dirs(backend, again=True)
    found = await disk_swap(backend, disks, place)
    replicas = found.replicas if before is None else tuple(sorted({*before.found.replicas, *found.replicas}))
    unplaced = found.unplaced if before is None else tuple({*before.found.unplaced, *found.unplaced})
    found = replace(found, replicas=replicas, unplaced=tuple(sorted(set(unplaced).difference(replicas))))
    replicas = found.awaited
    left = waiting(disks.partitions.states, place, replicas)
    running = _runs(disks, place.broker)
    back = running and is_back(disks, place)
    stopped = not running or already_swapped(len(left), place in disks.failed, back)
    nobody_leads = leaderless(left)
    now = SwapSituation(
        dangers=sum(1 for danger in found.dangers if danger.others),
        stopped=stopped or (before is not None and before.now.stopped),
        back=back,
        left=len(left),
        replicas=len(replicas),
        leaderless=len(nobody_leads),
        said=frozenset() if before is None else before.now.said,
        unreadable=before is not None and before.now.unreadable,
    )
    led_empty = [danger.tp for danger in found.dangers]
    stuck = tuple(leaderless_lines(nobody_leads, place, led_empty)) if now.swapped else ()
    alone = tuple(
        state.tp
        for state in disks.partitions.states
        if state.leader == place.broker and not {*state.isr, *(state.elr or ())}.difference((place.broker,))
    )
    return SwapPicture(found, now, stuck, disks.cluster.cluster_id, target, alone)


def _runs(disks: Disks, broker: int) -> bool:
    """Whether the broker is registered, unfenced, and answers."""
    registered = disks.brokers.get(broker)
    answers = not isinstance(disks.log_dirs.get(broker), Unknown | None)
    return registered is not None and not registered.fenced and answers


READ_EVERY = 2.0
"""Seconds between two readings of the cluster."""


class DiskSwapScreen(DismissOnce[tuple[TopicPartition, ...]], ModalScreen[tuple[TopicPartition, ...]]):
    """Shows the current step, found from the cluster. Ends with the partitions that are to be put into the plan
    first, or with none. ``last`` is the last look, which the next screen for the same disk continues from.
    """

    DEFAULT_CSS = """
    DiskSwapScreen { background: $surface; }
    DiskSwapScreen > WizardView { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", show=False),
        Binding("enter", "recover", "Put them into the plan", show=False, priority=True),
        Binding("d", "done", "Say that the step is done", show=False, priority=True),
        Binding("u", "undo", "Take back what was said last", show=False, priority=True),
    ]

    def __init__(self, session: Session, place: LogDirPlace, last: SwapPicture | None) -> None:
        super().__init__()
        self._session = session
        self._place = place
        self.last = last
        self._rate = CatchUpRate()

    def compose(self) -> ComposeResult:
        yield WizardView(id="wizard")
        yield MessageBar(id="wizard-say")
        yield Lines(self._keys, id="wizard-keys", focusable=False)

    @property
    def step(self) -> SwapStep | None:
        """The current step; None before the first look, and when all are done."""
        return None if self.last is None else current_step(self.last.found.steps, self.last.now)

    def on_mount(self) -> None:
        if not screen_is_open(self):  # removed before it was mounted
            return
        self.query_one(WizardView).focus_first()
        self._draw()
        self.run_worker(self._watch(), name="disk swap", exit_on_error=True)

    async def _watch(self) -> None:
        """Looks again and again while the screen is open."""
        while True:
            try:
                found = await self._session.run(
                    lambda backend: read_swap(backend, self._place, self.last, self._session.target.arguments)
                )
            except (ConsoleError, BackendError) as error:
                self._say(f"not known just now: {error}", Tone.WARN)
            else:
                before, previous = self.step, self.last
                marks = found.now if previous is None else previous.now
                now = found.now._replace(said=marks.said, unreadable=marks.unreadable)
                self.last = found._replace(now=now)
                self._rate = self._rate.with_sample(self._session.clock(), found.now.left)
                if before is not None and _passed(before.kind, self.step, found):
                    self._say(f"the cluster shows it: {_PASSED[before.kind]}", Tone.GOOD)
                self._draw()
            await asyncio.sleep(READ_EVERY)

    def _keys(self, _width: int) -> list[Line]:
        step = self.step
        keys: list[Piece] = []
        if step is not None and step.kind is SwapStepKind.RECOVER:
            keys += [Piece("Enter", Tone.KEY), Piece(" put them into the plan  ")]
        if step is not None and self.last is not None and may_say(step.kind, self.last.now):
            keys += [Piece("d", Tone.KEY), Piece(" step is done  ")]
        if self._to_take_back is not None:
            keys += [Piece("u", Tone.KEY), Piece(" take back the last step  ")]
        if step is not None and _commands(step, self.last):
            keys += [Piece("c", Tone.KEY), Piece(" copy the command  ")]
        return [line(*keys, Piece("Esc", Tone.KEY), Piece(" back, M continues"))]

    def action_recover(self) -> None:
        step = self.step
        if self.last is None or step is None:
            return
        if step.kind is SwapStepKind.RECOVER:
            self.dismiss(tuple(danger.tp for danger in self.last.found.dangers if danger.others))
        elif may_say(step.kind, self.last.now):
            self._say("press d when this step is done, not Enter", Tone.WARN)
        else:
            self._say(_BY_ITSELF, Tone.INFO)

    def action_done(self) -> None:
        """The operator says that a step on the host is done."""
        step = self.step
        if self.last is None or step is None:
            return
        if not may_say(step.kind, self.last.now):
            self._say(_BY_ITSELF, Tone.INFO)
            return
        if step.kind is SwapStepKind.READ:
            self.run_worker(self._ask_whether_read(step), name="asking", exclusive=True, group="asking")
        else:
            self._mark(step.kind)

    async def _ask_whether_read(self, step: SwapStep) -> None:
        """The one step that nobody can make up for later."""
        answers = [
            AnswerOption("no", "not yet: back to the step"),
            AnswerOption(_READ, "it was read, and the file is kept"),
            AnswerOption(_UNREADABLE, "it cannot be read"),
        ]
        answer = await self.app.push_screen_wait(ChoiceQuestion(f"Was this done?\n{step.what}", answers))
        still = self.step
        if answer in (_READ, _UNREADABLE) and still is not None and still.kind is step.kind:
            self._mark(step.kind, unreadable=answer == _UNREADABLE)

    def _mark(self, kind: SwapStepKind, *, unreadable: bool = False) -> None:
        if self.last is not None:
            now = self.last.now
            confirmed = with_confirmed(now.said, kind)
            self.last = self.last._replace(
                now=now._replace(said=confirmed, unreadable=now.unreadable or unreadable)
            )
            self._draw()

    @property
    def _to_take_back(self) -> SwapStepKind | None:
        return None if self.last is None else revocable_step(self.last.found.steps, self.last.now)

    def action_undo(self) -> None:
        """What was said last was not so."""
        kind = self._to_take_back
        if self.last is None or kind is None:
            self._say("no step was said to be done: there is nothing to take back", Tone.INFO)
            return
        self.last = self.last._replace(now=taken_back(self.last.now, kind))
        self._say("taken back: this step is not done", Tone.INFO)
        self._draw()

    @on(WizardView.CopyCommand)
    @when_ready
    def _copy(self, event: WizardView.CopyCommand) -> None:
        self.app.copy_to_clipboard(event.command)
        self._say("copied to the terminal's clipboard", Tone.GOOD)

    def action_leave(self) -> None:
        self.dismiss(())

    def _say(self, text: str, tone: Tone) -> None:
        if is_ready(self):
            self.query_one(MessageBar).say(text, tone)

    def _draw(self) -> None:
        if is_ready(self):
            steps = swap_wizard(self._place, self.last, self._rate)
            self.query_one(WizardView).update(replace(steps, where=where_line(self._session)))
            self.query_one("#wizard-keys", Lines).show_again()


def _passed(before: SwapStepKind, after: SwapStep | None, now: SwapPicture) -> bool:
    """Whether the step ``before`` was passed, and not left for an earlier one."""
    kinds = [step.kind for step in now.found.steps]
    return after is not None and (before not in kinds or kinds.index(before) < kinds.index(after.kind))


_READ, _UNREADABLE = "read", "unreadable"
_BY_ITSELF = "this step is done when the cluster shows it"


def swap_wizard(place: LogDirPlace, now: SwapPicture | None, rate: CatchUpRate) -> Wizard:
    """The steps as the wizard shows them."""
    title = f"Replace the disk of broker {place.broker} at {place.path}"
    if now is None:
        return Wizard(title, (), "the log dirs are being read …")
    current = current_step(now.found.steps, now.now)
    reached = len(now.found.steps) if current is None else now.found.steps.index(current)
    steps = tuple(
        _step(step, _state(step.kind, number, reached, now), now, rate)
        for number, step in enumerate(now.found.steps)
    )
    return Wizard(title, steps, _replicas_of_dir(now), _nothing_wrong(place, now))


def _nothing_wrong(place: LogDirPlace, now: SwapPicture) -> str:
    """The warning before a disk that works is replaced."""
    if not now.now.back or now.now.stopped:
        return ""
    return (
        f"This disk has not failed: broker {place.broker} runs and lists {place.path} as healthy."
        " Esc leaves it, unless it is to be replaced"
    )


def _replicas_of_dir(now: SwapPicture) -> str:
    was_there = f"it held {counted(now.now.replicas, 'replica')}, {now.now.left:,} of them not in the ISR"
    if now.found.unplaced:
        was_there += f" ({len(now.found.unplaced):,} may have been on another disk of the broker)"
    lost = [danger.tp for danger in now.found.dangers if not danger.others]
    if not lost:
        return was_there
    advice = "keep the old disk, its records may be readable (ktriage disk scan)"
    return f"{was_there}. NO OTHER COPY of {some_of(lost)}: {advice}"


def _state(kind: SwapStepKind, number: int, reached: int, now: SwapPicture) -> StepState:
    if number == reached:
        return StepState.CURRENT
    if number > reached:
        return StepState.WAITING
    return StepState.SKIPPED if left_undone(kind, now.now) else StepState.DONE


def _step(step: SwapStep, state: StepState, now: SwapPicture, rate: CatchUpRate) -> WizardStep:
    place, waits = now.found.place, _WAITS.get(step.kind, "")
    blockers: tuple[str, ...] = ()
    progress = None
    if step.kind is SwapStepKind.WAIT:
        done, left = now.now.replicas - now.now.left, rate.seconds_left
        progress = StepProgress(done, now.now.replicas, "replicas in the ISR", left)
        blockers = now.stuck
        if may_say(step.kind, now.now):
            waits += "; d continues without those that have no leader"
    if step.kind is SwapStepKind.RECOVER:
        dangers = [danger for danger in now.found.dangers if danger.others]
        blockers = tuple(f"{d.tp}: {d.why}" for d in dangers[:SHOWN_DANGERS])
        if len(dangers) > SHOWN_DANGERS:
            blockers += (f"and {len(dangers) - SHOWN_DANGERS:,} more partitions",)
        waits = "each of them has a leader; do not start the broker before"
    wrong: tuple[str, ...] = ()
    if step.kind is SwapStepKind.STOP and now.only_leader and not now.now.stopped:
        offline = f"{counted(len(now.only_leader), 'partition goes', 'partitions go')} offline by this"
        wrong = (f"{offline}: {some_of(now.only_leader)}. Nobody else is in the ISR",)
    return WizardStep(
        _title(step, now),
        state,
        wrong=wrong,
        host=f"broker {place.broker}",
        commands=_commands(step, now),
        waits_for=waits,
        blockers=blockers,
        progress=progress,
    )


def _title(step: SwapStep, now: SwapPicture) -> str:
    if step.kind is SwapStepKind.READ and left_undone(step.kind, now.now):
        return f"cannot be read, as was said: {step.what}"
    if step.kind is not SwapStepKind.RECOVER:
        return step.what
    led = counted(now.now.dangers, "partition")
    return f"recover {led} first: the empty disk would lead, and every other copy would truncate to it"


def _commands(step: SwapStep, now: SwapPicture | None) -> tuple[str, ...]:
    """What is run in a shell; the rest this console does."""
    if now is None or step.kind in (SwapStepKind.RECOVER, SwapStepKind.WAIT):
        return ()
    command = step.command_line(now.target)
    return (command.replace("CLUSTER", now.cluster_id),) if command else ()


SHOWN_DANGERS = 5
_PASSED = {
    SwapStepKind.READ: "the broker runs on the new disk",
    SwapStepKind.RECOVER: "the partitions were recovered, and the empty disk is not elected to lead them",
    SwapStepKind.STOP: "the broker stopped",
    SwapStepKind.DISK: "the broker runs on the new disk",
    SwapStepKind.FORMAT: "the broker runs on the new disk",
    SwapStepKind.START: "the broker started with the new disk",
    SwapStepKind.METADATA: "the broker fetched the metadata log and was unfenced",
    SwapStepKind.WAIT: "every replica of the disk came back to the ISR",
    SwapStepKind.LEADERS: "the leaders were moved back",
}
"""What was done, where the cluster shows that a step is passed."""
_WAITS = {
    SwapStepKind.READ: "you say so (d): it was read, or it cannot be read",
    SwapStepKind.STOP: "the broker is fenced, or does not answer any more",
    SwapStepKind.DISK: "you say so (d), or the dir is back",
    SwapStepKind.FORMAT: "you say so (d), or the dir is back",
    SwapStepKind.START: "the broker is unfenced and lists the dir as healthy",
    SwapStepKind.METADATA: "the broker is unfenced",
    SwapStepKind.WAIT: "every replica of the disk is in the ISR",
    SwapStepKind.LEADERS: "you say so (d)",
}
