"""Shows a replacement on the terminal: each step with its commands, one line of progress, and questions."""

# ruff: noqa: ARG002  # the signatures are the protocol's

from __future__ import annotations

import asyncio
import contextlib

from backends.base.errors import BackendError
from backends.base.protocol import Stop
from console.cli.base.run import Run
from console.operations.voters.prepared_change import PreparedChange
from console.operations.voters.replacement_consent import Consent
from console.operations.voters.voter_change import VoterChangeResult
from console.output.quorum.quorum_change_report import changed_lines, step_lines
from console.output.quorum.quorum_report import preflight_lines
from recovery.membership.replacement import ReplacementPlan, ReplacementStep
from recovery.membership.replacement_state import StepSituation
from recovery.wording.quantity_text import printable

CONFIRM = "done"
UNASKED = ("--yes", "--reason", "TEXT")
"""The additional options of ``resume`` if nobody can be asked."""
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
        from console.cli.base.line_input import read_line  # noqa: PLC0415  # where somebody is asked only

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
