"""Records in the journal the steps that an operator confirmed, so that a later run does not ask again."""

from __future__ import annotations

from backends.base.errors import BackendError
from backends.base.protocol import Recorder
from console.journal.change_kinds import CONFIRM
from console.operations.voters.prepared_change import PreparedChange
from console.operations.voters.replacement_steps import Watcher
from console.operations.voters.voter_change import VoterChangeResult
from recovery.membership.replacement import ReplacementStep
from recovery.membership.replacement_state import StepSituation


class ConfirmedStepRecorder:
    """A watcher around another one that records confirmed steps. ``earlier`` are the steps confirmed in earlier
    runs.
    """

    def __init__(self, watcher: Watcher, plan_id: str, recorder: Recorder, earlier: frozenset[int]) -> None:
        self._watcher = watcher
        self._plan_id = plan_id
        self._recorder = recorder
        self._confirmed = earlier

    @property
    def confirmed(self) -> frozenset[int]:
        new = self._watcher.confirmed - self._confirmed
        if new:
            detail = {"planId": self._plan_id, "steps": sorted(new)}
            self._recorder.after(self._recorder.before(CONFIRM, detail), {})
            self._confirmed |= new
        return self._confirmed

    def begins(self, step: ReplacementStep, step_state: StepSituation) -> None:
        self._watcher.begins(step, step_state)

    def waits(self, step: ReplacementStep, step_state: StepSituation, seconds_left: float | None) -> None:
        self._watcher.waits(step, step_state, seconds_left)

    def quorum_unknown(self, step: ReplacementStep, why: BackendError) -> None:
        self._watcher.quorum_unknown(step, why)

    def judged(self, step: ReplacementStep, prepared: PreparedChange) -> None:
        self._watcher.judged(step, prepared)

    async def allows(self, step: ReplacementStep, prepared: PreparedChange) -> bool:
        return await self._watcher.allows(step, prepared)

    def says(self, step: ReplacementStep, said: str) -> None:
        self._watcher.says(step, said)

    def changed(self, step: ReplacementStep, changed: VoterChangeResult) -> None:
        self._watcher.changed(step, changed)

    def ends(self, step: ReplacementStep) -> None:
        self._watcher.ends(step)
