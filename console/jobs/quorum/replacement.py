"""``quorum replace``, and ``resume`` of a replacement: shows the steps and asks before each change."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from backends.base.errors import BackendError
from backends.base.protocol import Stop
from console.cli.base.quorum_run import change_or_show, change_quorum
from console.cli.base.run import Run, read_line
from console.cli.base.terminal_operator import execute_change
from console.errors import InputError, Status
from console.jobs.quorum.prepared_change import PreparedChange
from console.jobs.quorum.quorum_change_report import REPLACED, RESUMED, changed_lines, step_lines
from console.jobs.quorum.quorum_report import preflight_lines
from console.jobs.quorum.replace_controller import (
    UNASKED,
    ReplaceController,
    ReplacementEnding,
    ReplacementStanding,
    ResumeReplacement,
    Watch,
)
from console.jobs.quorum.replacement_consent import Consent
from console.jobs.quorum.replacement_plan import ReplacementChoice
from console.jobs.quorum.replacement_run import LoadedReplacement, read_replacement
from console.jobs.quorum.replacement_steps import Watcher
from console.jobs.quorum.voter_change import VoterChangeResult
from console.signals import StopRequest
from recovery.membership.replacement import ReplacementKind, ReplacementPlan, ReplacementStep
from recovery.membership.replacement_state import StepSituation
from recovery.wording.quantity_text import printable

# ruff: noqa: ARG002  # the signatures are the protocol's


CONFIRM = "done"
STOP_LOOKS = 0.05
"""Seconds between checks for a signal, because a signal does not end the read of a line."""


class CommandLine:
    """The watcher of a replacement at a terminal. ``ask``: a person confirms each change by typing."""

    def __init__(
        self, run: Run, plan: ReplacementPlan, stop: Stop, *, ask: bool, confirmed: frozenset[int]
    ) -> None:
        self._run = run
        self._consent = Consent(plan)
        self._stop = stop
        self._ask = ask
        self._confirmed = set(confirmed)
        self._reader: asyncio.Task[None] | None = None
        self._question = contextlib.ExitStack()
        self._said = ""

    @property
    def confirmed(self) -> frozenset[int]:
        return frozenset(self._confirmed)

    def begins(self, step: ReplacementStep, step_state: StepSituation) -> None:
        self._tell(*step_lines(step))
        self._said = ""
        if not step.kind.operator_confirms:
            return
        if self._run.screen.interactive:
            self._run.screen.say(f"type {CONFIRM} when it is done, or wait until the cluster shows it:")
            self._reader = asyncio.ensure_future(self._read(step))
            self._question.enter_context(self._run.program.supervisor.stop.at_question())
        else:
            command = self._run.target.command("resume", "--confirmed", str(step.number), *UNASKED)
            self._run.screen.say(
                f"there is no terminal to ask on. If the cluster does not show that the step is done: {command}"
            )

    def waits(self, step: ReplacementStep, step_state: StepSituation, seconds_left: float | None) -> None:
        text = "; ".join(step_state.blockers) or step_state.waits_for
        if text != self._said:
            self._said = text
            self._run.screen.say(f"   {'held: ' if step_state.blockers else 'waiting: '}{printable(text)}")
        if step_state.target >= 0:
            left = "" if seconds_left is None else f", about {seconds_left:,.0f} s"
            self._run.screen.progress(f"{step.title}{left}:", step_state.caught, step_state.target)

    def quorum_unknown(self, step: ReplacementStep, why: BackendError) -> None:
        if str(why) != self._said:
            self._said = str(why)
            self._run.screen.say(f"   the quorum is unknown just now: {printable(str(why))}")

    def judged(self, step: ReplacementStep, prepared: PreparedChange) -> None:
        self._consent.judged(step, prepared)
        lines = tuple(preflight_lines(prepared.verdict, prepared.sentence))
        if prepared.verdict.allowed or "\n".join(lines) != self._said:
            self._said = "\n".join(lines)
            self._tell(*lines)

    async def allows(self, step: ReplacementStep, prepared: PreparedChange) -> bool:
        if not self._ask or self._consent.covers(step, prepared):
            return True
        answer = await self._typed(f"To {self._consent.question(step, prepared)}, type the node id:")
        agreed = answer == str(prepared.voter.key.id)
        if agreed:
            self._consent.given(step, prepared)
        return agreed

    async def _typed(self, question: str) -> str | None:
        """The line that is typed; None after a signal."""
        asked = asyncio.ensure_future(self._run.ask(question))
        try:
            with self._run.program.supervisor.stop.at_question():
                while not self._stop and not asked.done():
                    await asyncio.wait({asked}, timeout=STOP_LOOKS)
            return None if self._stop else asked.result()
        finally:
            asked.cancel()
            await asyncio.wait({asked})

    def says(self, step: ReplacementStep, said: str) -> None:
        self._run.screen.say(f"   {printable(said)}")

    def changed(self, step: ReplacementStep, changed: VoterChangeResult) -> None:
        self._consent.changed(changed)
        self._tell(*changed_lines(changed))

    def ends(self, step: ReplacementStep) -> None:
        self.quiet()
        self._tell(f"   {step.number}. done")

    def quiet(self) -> None:
        """Stops waiting for a line."""
        if self._reader is not None:
            self._reader.cancel()
            self._reader = None
            self._question.close()

    async def _read(self, step: ReplacementStep) -> None:
        with contextlib.suppress(OSError):
            while line := await read_line(0):
                if line.strip() == CONFIRM:
                    self._confirmed.add(step.number)
                    return

    def _tell(self, *lines: str) -> None:
        """Steps are results; with JSON only the document is a result."""
        if self._run.json:
            self._run.screen.say(*lines)
        else:
            self._run.screen.out(lines)


NEEDS_NEWCOMER = (ReplacementKind.HOST, ReplacementKind.PLANNED, ReplacementKind.GROW)


def replace(
    run: Run,
    choice: ReplacementChoice | None,
    file: Path | None,
    *,
    confirmed: frozenset[int],
    dry_run: bool,
    ask: bool,
    reason: str,
    not_rebuilt: bool = False,
) -> int:
    """Makes a plan from the choice, or reads the existing plan, shows it, and carries it out."""
    source = _source(choice, file)
    change = ReplaceController(
        source,
        file,
        _watched(run, ask=ask),
        reason,
        run.target.command("resume", "--give-up"),
        confirmed,
        attended=run.screen.interactive,
        dry_run=dry_run,
        not_rebuilt=not_rebuilt,
    )

    def unsent(prepared: ReplacementStanding) -> ReplacementEnding:
        return ReplacementEnding(prepared.planned)

    send = change_or_show(run, unsent, dry_run=dry_run)
    return run.conclude(
        change.conclusion(execute_change(run, change, REPLACED, send, ask=ask, dry_run=dry_run))
    )


def _source(choice: ReplacementChoice | None, file: Path | None) -> ReplacementChoice | ReplacementPlan:
    """The plan file or the choice to carry out. Raises InputError if there is neither or both."""
    there = file is not None and file.exists()
    if file is not None and not there and choice is None:
        raise InputError(f"{file}: this plan file does not exist; give --why to make it")
    if there and choice is not None:
        raise InputError(f"{file}: this plan file exists: leave out --why to carry it out")
    if choice is None:
        if file is None:
            raise InputError(
                "quorum replace needs --why disk|host|planned|grow|shrink, or --plan FILE with a plan that exists"
            )
        return read_replacement(file)
    if choice.kind in NEEDS_NEWCOMER and not choice.joining:
        raise InputError(f"--why {choice.kind} needs --with NODE, the new controller; nothing was sent")
    return choice


def _watched(run: Run, *, ask: bool) -> Watch:
    """Makes the watcher for the terminal; ``ask``: a person confirms each change by typing."""

    @contextlib.contextmanager
    def watch(planned: LoadedReplacement, stop: StopRequest) -> Iterator[Watcher]:
        watcher = CommandLine(run, planned.plan, stop, ask=ask, confirmed=planned.confirmed)
        try:
            yield watcher
        finally:
            watcher.quiet()

    return watch


def go_on(
    run: Run,
    file: Path | None,
    *,
    confirmed: frozenset[int],
    give_up: bool,
    ask: bool,
    reason: str,
    not_rebuilt: bool,
) -> int | None:
    """Continues the replacement that the journal shows as half done, or the one in ``file``.

    Returns None if there is none, or if the operator gave it up at the question. Raises InputError, NotDone,
    BackendError.
    """
    asked = run.screen.interactive and ask
    change = ResumeReplacement(
        file,
        _watched(run, ask=asked),
        reason or "resume",
        run.target.command("resume", "--give-up"),
        confirmed,
        attended=run.screen.interactive,
        ask=asked,
        agreed=not ask,
        forget=give_up,
        brokers=run.target.kind != "controllers",
        not_rebuilt=not_rebuilt,
    )
    ending = execute_change(run, change, RESUMED, partial(change_quorum, run), ask=asked)
    if ending.planned is None:
        return Status.DONE if ending.given_up and give_up else None
    return run.conclude(change.conclusion(ending))
