"""The guided replacement of a controller: ``ktriage quorum replace`` with a screen as its watcher."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

from backends.base.errors import BackendError
from backends.base.membership import Membership
from backends.base.protocol import Backend
from console.app.base.confirmed_change import Confirmed
from console.change.access import Access, membership_access
from console.change.change import run_change
from console.errors import NotDone
from console.jobs.quorum.prepared_change import PreparedChange
from console.jobs.quorum.replace_controller import ReplaceController, ResumeReplacement
from console.jobs.quorum.replacement_consent import Consent
from console.jobs.quorum.replacement_plan import ReplacementChoice
from console.jobs.quorum.replacement_run import (
    LoadedReplacement,
    make_replacement,
    read_replacement,
    refuse_replacement_of_other_cluster,
    save_replacement,
)
from console.jobs.quorum.replacement_steps import ReplacementResult, standing
from console.jobs.quorum.voter_change import VoterChangeResult
from console.journal.run_records import ClusterMarks
from console.journal.unfinished_entries import unfinished
from console.program import Program
from console.signals import StopRequest
from recovery.membership.replacement import (
    ReplacementError,
    ReplacementKind,
    ReplacementPlan,
    ReplacementStep,
)
from recovery.membership.replacement_state import StepSituation, situation
from recovery.membership.replica_lookup import NotChosen

ANSWER_LOOKS = 0.05
"""Seconds between checks for a signal, because a signal does not wake a waiting thread."""


class ReplacementProgress(NamedTuple):
    """The state of a replacement. ``question`` is the change to be agreed to, None if there is none, and
    ``wording`` everything that the agreement covers; ``refused``: why the current step is not sent yet;
    ``said``: what was last seen or sent.
    """

    step: ReplacementStep | None = None
    situation: StepSituation | None = None
    seconds_left: float | None = None
    said: str = ""
    question: PreparedChange | None = None
    wording: str = ""
    refused: tuple[str, ...] = ()


class Bridge:
    """Watches a replacement on the backend's thread, and reports to a screen by ``show``.

    ``armed`` returns, on this thread, whether anything may be sent: without it, an agreed change is not sent
    either.
    """

    def __init__(
        self,
        show: Callable[[ReplacementProgress], None],
        stop: StopRequest,
        plan: ReplacementPlan,
        confirmed: frozenset[int] = frozenset(),
        armed: Callable[[], bool] = lambda: True,
    ) -> None:
        self._show = show
        self._stop = stop
        self._consent = Consent(plan)
        self._confirmed = set(confirmed)
        self._armed = armed
        self._loop = asyncio.get_running_loop()
        self._allowed: PreparedChange | None = None
        self.progress = ReplacementProgress()

    @property
    def confirmed(self) -> frozenset[int]:
        return frozenset(self._confirmed)

    def confirm(self, number: int) -> None:
        """The operator confirms that the step is done. Called on the screen's thread."""
        self._loop.call_soon_threadsafe(self._confirmed.add, number)

    def allow(self, question: PreparedChange) -> None:
        """A person agreed to exactly that question. Called on the screen's thread."""
        self._loop.call_soon_threadsafe(self._settle, question)

    def _settle(self, question: PreparedChange) -> None:
        self._allowed = question

    def begins(self, step: ReplacementStep, step_state: StepSituation) -> None:
        self._tell(self.progress._replace(step=step, situation=step_state, seconds_left=None, refused=()))

    def waits(self, step: ReplacementStep, step_state: StepSituation, seconds_left: float | None) -> None:
        self._tell(self.progress._replace(step=step, situation=step_state, seconds_left=seconds_left))

    def quorum_unknown(self, step: ReplacementStep, why: BackendError) -> None:
        self._tell(self.progress._replace(step=step, said=f"the quorum is unknown just now: {why}"))

    def judged(self, step: ReplacementStep, prepared: PreparedChange) -> None:
        self._consent.judged(step, prepared)
        self._tell(self.progress._replace(step=step, said="", refused=prepared.verdict.refused))

    async def allows(self, step: ReplacementStep, prepared: PreparedChange) -> bool:
        """Waits for the person without a time limit; stopping the run, also by a signal, answers no."""
        if self._consent.covers(step, prepared) and self._armed():
            return not self._stop
        wording = self._consent.question(step, prepared)
        self._tell(self.progress._replace(step=step, question=prepared, wording=wording))
        try:
            while not self._stop and self._allowed is not prepared:  # noqa: ASYNC110  # a signal sets no event
                await asyncio.sleep(ANSWER_LOOKS)
            if not self._stop:
                self._consent.given(step, prepared)
            return not self._stop
        finally:
            self._tell(self.progress._replace(question=None))

    def says(self, step: ReplacementStep, said: str) -> None:
        self._tell(self.progress._replace(step=step, said=said))

    def changed(self, step: ReplacementStep, changed: VoterChangeResult) -> None:
        self._consent.changed(changed)
        text = f"not sent: {changed.detail}" if changed.answer is None else f"{changed.answer}"
        self._tell(self.progress._replace(step=step, said=text))

    def tells(self, *lines: str) -> None:
        """Information besides the steps."""
        self._tell(self.progress._replace(said="; ".join(lines)))

    def ends(self, step: ReplacementStep) -> None:
        self._tell(self.progress._replace(said=f"step {step.number} is done"))

    def _tell(self, reported: ReplacementProgress) -> None:
        if reported != self.progress:
            self.progress = reported
            self._show(reported)


async def membership_of(backend: Backend) -> Membership:
    """Opens the quorum, because its cluster id shows whether a new node belongs to it. Raises NotDone if the
    backend has no quorum, and BackendError.
    """
    found: Membership | None = getattr(backend, "membership", None)
    if found is None:
        raise NotDone("the quorum of this cluster cannot be changed from here")
    await found.open()
    return found


async def planned(backend: Backend, choice: ReplacementChoice) -> LoadedReplacement:
    """Makes the plan and saves it to a file; nothing is sent. Raises NotDone and BackendError."""
    try:
        plan = await make_replacement(await membership_of(backend), choice)
    except (NotChosen, ReplacementError) as error:
        raise NotDone(f"{error}; nothing was sent") from None
    return LoadedReplacement.of(plan, save_replacement(plan))


async def stands(backend: Backend, wanted: LoadedReplacement) -> ReplacementProgress:
    """The current state of the replacement, without starting anything; without a step if all are done. Raises
    BackendError.
    """
    plan = wanted.plan
    picture, step = await standing(await membership_of(backend), plan, wanted.confirmed)
    return ReplacementProgress(step, None if step is None else situation(plan, step, picture))


def half_done(cluster_id: str, marks: ClusterMarks) -> LoadedReplacement | None:
    """The replacement that an earlier run left half done. Raises InputError and JournalError."""
    found = unfinished(cluster_id, marks=marks)
    if found.replacement is None:
        return None
    plan = read_replacement(found.replacement.file)
    refuse_replacement_of_other_cluster(plan, cluster_id)
    confirmed = found.confirmed_steps(plan.header.plan_id)
    return LoadedReplacement.of(plan, found.replacement.file, confirmed)


KINDS = {
    ReplacementKind.DISK: "its metadata disk is lost or replaced; the same node comes back",
    ReplacementKind.HOST: "its host is lost; another node takes its place",
    ReplacementKind.PLANNED: "it works, and another node will take its place",
    ReplacementKind.GROW: "no voter leaves; another voter is added",
    ReplacementKind.SHRINK: "it leaves, and no voter is added",
}


def reason_for(kind: ReplacementKind) -> str:
    """The answer to why the controller is replaced, as the journal keeps it."""
    return f"{kind}: {KINDS[kind]}"


async def run(
    access: Access[Backend], program: Program, wanted: LoadedReplacement, stop: StopRequest, bridge: Bridge
) -> ReplacementResult:
    """Carries out the plan from the cluster's current state. Raises NotDone, JournalError and BackendError."""
    await membership_of(access.reading)
    membership: Membership = getattr(access.changing(), "membership")  # noqa: B009  # no part of every backend
    ending = await run_change(
        ReplaceController(
            wanted.plan,
            wanted.file,
            lambda _planned, _stop: nullcontext(bridge),
            reason_for(wanted.plan.wanted.kind),
            confirmed=wanted.confirmed,
        ),
        membership_access(membership, access.refuse),
        wanted.cluster_id,
        Confirmed(None, bridge.tells, bridge.tells),
        invocation=program,
        stop=stop,
        resume_command=program.resume,
    )
    assert ending.result is not None, "a plan that is carried out has a result"
    return ending.result


async def give_up(
    access: Access[Backend], program: Program, wanted: LoadedReplacement, stop: StopRequest
) -> None:
    """Gives up the replacement that was begun, so that another can be planned: nothing is sent. Raises NotDone,
    JournalError and BackendError.
    """
    membership = await membership_of(access.reading)
    say: list[str] = []
    await run_change(
        ResumeReplacement(
            None,
            lambda _planned, _stop: nullcontext(Bridge(lambda _reported: None, stop, wanted.plan)),
            "given up in the console",
            ask=False,
            forget=True,
        ),
        membership_access(membership, access.refuse),
        wanted.cluster_id,
        Confirmed(None, say.append, say.append),
        invocation=program,
        stop=stop,
        resume_command=program.resume,
    )
