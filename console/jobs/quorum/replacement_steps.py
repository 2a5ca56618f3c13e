"""Going through a replacement: each step starts when its condition holds, and the cluster shows when it is
done.

Nothing is remembered between runs: a run that was killed at any point continues from the cluster's present state.
A :class:`Watcher` is called for each event; nothing is printed here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, Protocol

from backends.base.errors import BackendError
from backends.base.membership import Membership
from backends.base.protocol import Recorder, Stop
from console.change.elapsed_time import ElapsedWait
from console.jobs.quorum.prepared_change import PreparedChange
from console.jobs.quorum.replacement_plan import joins_of, mute_of, servers_of
from console.jobs.quorum.voter_change import (
    VoterChangeResult,
    execute,
    is_done,
    prepare_add,
    prepare_remove,
    unregistered,
)
from console.journal.change_kinds import CONFIRM
from recovery.membership.catch_up_rate import CatchUpRate
from recovery.membership.quorum import Quorum
from recovery.membership.replacement import ReplacementPlan, ReplacementStep, StepKind, gone_nodes
from recovery.membership.replacement_state import (
    QuorumPicture,
    StepSituation,
    current,
    key_of,
    silent,
    situation,
)
from recovery.membership.replica_lookup import NotChosen
from recovery.model import Unknown, Why

POLL = 0.5
"""Seconds between two readings of the cluster."""


class Watcher(Protocol):
    """Who watches a replacement: the command line, or the console's wizard."""

    def begins(self, step: ReplacementStep, step_state: StepSituation) -> None:
        """A step's turn has come. ``step_state.blockers`` is what must change before it can be taken."""
        ...

    def waits(self, step: ReplacementStep, step_state: StepSituation, seconds_left: float | None) -> None:
        """The step is not done yet; called at every reading. ``step_state.caught`` of ``step_state.target`` for a
        progress bar.
        """
        ...

    def quorum_unknown(self, step: ReplacementStep, why: BackendError) -> None:
        """The quorum could not be read just now; it is read again."""
        ...

    def judged(self, step: ReplacementStep, prepared: PreparedChange) -> None:
        """The preflight of what the step sends."""
        ...

    async def allows(self, step: ReplacementStep, prepared: PreparedChange) -> bool:
        """Whether it may be sent: a person is asked, or was asked before. False ends the run."""
        ...

    def says(self, step: ReplacementStep, said: str) -> None:
        """What is waited for while a change is under way."""
        ...

    def changed(self, step: ReplacementStep, changed: VoterChangeResult) -> None:
        """The result of what was sent; nothing was sent if ``changed.answer`` is None."""
        ...

    def ends(self, step: ReplacementStep) -> None:
        """The step is done."""
        ...

    @property
    def confirmed(self) -> frozenset[int]:
        """Steps that the operator says are done, where the cluster cannot show it."""
        ...


class StopReason(StrEnum):
    """How a run through a replacement ended."""

    DONE = "done"
    STOPPED = "stopped"
    DECLINED = "declined"
    TOO_LONG = "waited too long"
    UNCONFIRMED = "nobody said that it is done"
    UNATTENDED = "nobody can be asked"


@dataclass(frozen=True, slots=True)
class ReplacementResult:
    """How far a run went: ``step`` is the one that is not done, None at the end."""

    reason: StopReason
    step: ReplacementStep | None
    situation: StepSituation | None = None
    quorum: Quorum | None = None


async def go_through(
    membership: Membership,
    plan: ReplacementPlan,
    recorder: Recorder,
    watcher: Watcher,
    stop: Stop,
    *,
    patience: float,
    attended: bool = True,
    confirmed: frozenset[int] = frozenset(),
) -> ReplacementResult:
    """Takes the steps from where the cluster is. ``patience`` is how many seconds may pass without a step
    that was not reached before. Unless it is ``attended`` by somebody who can say that a step is done, it ends
    where the cluster will never show that. ``confirmed`` are the steps that were said to be done in earlier runs.

    Raises BackendError only from the first reading: later the quorum is read again until ``patience`` is over.
    """
    run = _Run(membership, plan, recorder, watcher, patience, attended=attended, confirmed=confirmed)
    await run.refresh()
    while not stop:
        result = await run.on()
        if result is not None:
            # A signal ends the question too: that is not an answer "no".
            return (
                replace(result, reason=StopReason.STOPPED)
                if stop and result.reason is StopReason.DECLINED
                else result
            )
    return ReplacementResult(StopReason.STOPPED, run.step, None, run.picture.quorum)


async def standing(
    membership: Membership, plan: ReplacementPlan, confirmed: frozenset[int] = frozenset()
) -> tuple[QuorumPicture, ReplacementStep | None]:
    """The current state of a replacement, read without a run. Raises BackendError."""
    picture = await _picture(membership, plan, confirmed, None)
    return picture, current(plan, picture)


class _Run:
    def __init__(
        self,
        membership: Membership,
        plan: ReplacementPlan,
        recorder: Recorder,
        watcher: Watcher,
        patience: float,
        *,
        attended: bool,
        confirmed: frozenset[int],
    ) -> None:
        self._membership = membership
        self._plan = plan
        self._recorder = recorder
        self._watcher = watcher
        self._patience = patience
        self._attended = attended
        self._confirmed = confirmed
        self._waited = ElapsedWait(membership)
        self._furthest = 0
        self._pace = CatchUpRate()
        self._silent: frozenset[int] = frozenset()
        self._swapped: frozenset[int] = frozenset()
        self._history = _History({}, set())
        self.step: ReplacementStep | None = None
        self.picture: QuorumPicture

    async def refresh(self) -> None:
        new = self._watcher.confirmed - self._confirmed
        if new:  # so that a later run does not ask again
            detail = {"planId": self._plan.header.plan_id, "steps": sorted(new)}
            self._recorder.after(self._recorder.before(CONFIRM, detail), {})
            self._confirmed |= new
        confirmed = self._confirmed | self._swapped
        self.picture = await _picture(self._membership, self._plan, confirmed, self._history)
        self._note_swaps()

    def _note_swaps(self) -> None:
        """A static voter whose disk is replaced is seen to fall silent, and then to fetch again."""
        for step in self._plan.steps:
            if step.kind is StepKind.SWAP:
                if silent(step, self.picture.quorum):
                    self._silent |= {step.number}
                elif step.number in self._silent:
                    self._swapped |= {step.number}

    async def on(self) -> ReplacementResult | None:
        """Reads the cluster once and acts on it; None: go on."""
        step = current(self._plan, self.picture)
        if step is None:
            self._turn(None)
            await self._unregister_gone()
            return ReplacementResult(StopReason.DONE, None, None, self.picture.quorum)
        step_state = situation(self._plan, step, self.picture)
        self._turn(step, step_state)
        if step.kind.sends and not step_state.blockers and not await self._send(step):
            return ReplacementResult(StopReason.DECLINED, step, step_state, self.picture.quorum)
        if step_state.unseen and not self._attended:
            return ReplacementResult(StopReason.UNCONFIRMED, step, step_state, self.picture.quorum)
        if self._waited.seconds >= self._patience:
            return ReplacementResult(StopReason.TOO_LONG, step, step_state, self.picture.quorum)
        await self._wait(step, step_state)
        return None

    def _turn(self, step: ReplacementStep | None, step_state: StepSituation | None = None) -> None:
        """Reports the current step to the watcher."""
        if self.step is not None and (step is None or step.number > self.step.number):
            self._watcher.ends(self.step)
        if (
            step is not None
            and step_state is not None
            and (self.step is None or step.number != self.step.number)
        ):
            # A newcomer that comes and goes must not keep the run going for ever.
            if step.number > self._furthest:
                self._waited.restart()
            self._furthest, self._pace = max(self._furthest, step.number), CatchUpRate()
            self._watcher.begins(step, step_state)
        self.step = step

    async def _send(self, step: ReplacementStep) -> bool:
        """Sends what the step sends, if its preflight allows it; False where a person said no."""
        try:
            prepared = await self._prepared(step)
        except (NotChosen, BackendError):
            return True  # the cluster has changed since the last reading: read again
        self._watcher.judged(step, prepared)
        if not prepared.verdict.allowed:
            return True
        with self._waited.not_counted():
            allowed = await self._watcher.allows(step, prepared)
        if not allowed:
            return False
        try:
            changed = await execute(
                self._membership, prepared, self._recorder, lambda said: self._watcher.says(step, said)
            )
        except BackendError as error:
            self._watcher.quorum_unknown(step, error)
        else:
            self._watcher.changed(step, changed)
        return True

    async def _unregister_gone(self) -> None:
        """Removes the registrations of the controllers that are gone, at the end, when they are stopped: one that
        starts registers again.
        """
        last, gone = self._plan.steps[-1], gone_nodes(self._plan.wanted)
        listed = await self._membership.controllers() if gone else ()
        for node in gone:
            if not isinstance(listed, Unknown) and node not in {one.id for one in listed}:
                continue
            answer = await unregistered(self._membership, node, self._recorder)
            if isinstance(answer, Unknown) and answer.why is Why.NOT_OFFERED:
                return
            done = f"unregistered: controller {node}"
            self._watcher.says(
                last, done if is_done(answer) else f"controller {node} is still registered: {answer}"
            )

    async def _prepared(self, step: ReplacementStep) -> PreparedChange:
        key = key_of(self._plan, step, self.picture.quorum)
        if key is None:
            raise NotChosen(f"node {step.node} does not fetch")
        if step.kind is StepKind.REMOVE:
            return await prepare_remove(self._membership, key.id, key.directory_id)
        given = dict(self._plan.wanted.endpoints).get(step.node, ())
        return await prepare_add(self._membership, key.id, key.directory_id, given)

    async def _wait(self, step: ReplacementStep, step_state: StepSituation) -> None:
        if step_state.target >= 0:
            self._pace = self._pace.with_sample(self._waited.seconds, step_state.target - step_state.caught)
        self._watcher.waits(step, step_state, self._pace.seconds_left)
        await self._waited.pause(POLL)
        try:
            await self.refresh()
        except BackendError as error:
            # A leader that was just removed has resigned; another leader is elected soon.
            self._watcher.quorum_unknown(step, error)


class _History(NamedTuple):
    """What a run remembers: when it first saw each leader epoch, and the steps whose controller it saw stopped."""

    leaders: dict[int, int]
    quiet: set[int]


async def _picture(
    membership: Membership, plan: ReplacementPlan, confirmed: frozenset[int], history: _History | None
) -> QuorumPicture:
    """The cluster now; ``history`` is None for a single look."""
    quorum = await membership.describe()
    picture = QuorumPicture(quorum, confirmed=confirmed)
    if history is not None:
        since = history.leaders.setdefault(quorum.leader_epoch, quorum.now_ms)
        picture = replace(picture, since_ms=since, quiet=frozenset(history.quiet))
        stops = [step for step in plan.steps if step.kind is StepKind.STOP]
        history.quiet.update(s.number for s in stops if situation(plan, s, picture).done)
    step = current(plan, picture)
    if step is not None and step.kind in (StepKind.SERVERS, StepKind.STAY_OUT):
        nodes = await membership.nodes()
        servers = servers_of(nodes, quorum, plan.wanted.leaving)
        mute = mute_of(nodes, asks_brokers=membership.asks_brokers)
        return replace(picture, servers=servers, joins=joins_of(nodes), mute=mute)
    return picture
