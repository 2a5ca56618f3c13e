"""The consent of a person to a replacement's changes: for a new disk, the removal and the addition after it
are one question.
"""

from __future__ import annotations

from typing import NamedTuple

from console.jobs.quorum.prepared_change import PreparedChange
from console.jobs.quorum.voter_change import VoterChangeResult
from recovery.membership.preflight import VoterSetStrength
from recovery.membership.replacement import ReplacementPlan, ReplacementStep, StepKind
from recovery.membership.replacement_state import key_of
from recovery.membership.voters import ReplicaKey


class _Agreed(NamedTuple):
    """The voter to be added, and the voters that the removal was expected to leave."""

    key: ReplicaKey
    left: VoterSetStrength


class Consent:
    """Between the two a voter is missing, so the second is not asked about if everything is as the operator
    agreed.

    The watcher of a replacement passes each preflight and the result of each request to this object.
    """

    def __init__(self, plan: ReplacementPlan) -> None:
        self._plan = plan
        self._agreed: _Agreed | None = None

    def question(self, step: ReplacementStep, prepared: PreparedChange) -> str:
        """The whole question."""
        follows = self._follows(step, prepared)
        return prepared.sentence + ("" if follows is None else f" and then add voter {follows} in its place")

    def given(self, step: ReplacementStep, prepared: PreparedChange) -> None:
        """Records that a person agreed to the question."""
        follows, left = self._follows(step, prepared), prepared.verdict.after
        self._agreed = None if follows is None or left is None else _Agreed(follows, left)

    def judged(self, step: ReplacementStep, prepared: PreparedChange) -> None:
        """The consent ends if the cluster differs from what the removal was expected to leave."""
        if step.kind is StepKind.ADD and self._agreed is not None and not _as_agreed(self._agreed, prepared):
            self._agreed = None

    def changed(self, changed: VoterChangeResult) -> None:
        """If the change was not sent at the last moment, it is asked about again, and so is the addition
        after it.
        """
        if changed.answer is None:
            self._agreed = None

    def covers(self, step: ReplacementStep, prepared: PreparedChange) -> bool:
        """Whether the operator agreed to it together with the removal before it."""
        return (
            step.kind is StepKind.ADD and self._agreed is not None and prepared.voter.key == self._agreed.key
        )

    def _follows(self, step: ReplacementStep, prepared: PreparedChange) -> ReplicaKey | None:
        """The replica that replaces the removed voter, if adding it is the next change."""
        following = next((s for s in self._plan.steps if s.number == step.number + 1), None)
        if following is None or following.node != step.node:
            return None
        pair = (step.kind, following.kind) == (StepKind.REMOVE, StepKind.ADD)
        return key_of(self._plan, following, prepared.quorum) if pair else None


def _as_agreed(agreed: _Agreed, prepared: PreparedChange) -> bool:
    """Whether it is the same replica and the same voters, and no voter that was up is down."""
    now, left = prepared.verdict.before, agreed.left
    same = prepared.voter.key == agreed.key and set(now.voters.keys) == set(left.voters.keys)
    return same and set(now.down) <= set(left.down)
