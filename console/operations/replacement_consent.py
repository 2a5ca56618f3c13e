"""What a person allows of a replacement: a disk's removal and the addition that follows it are one question."""

from __future__ import annotations

from typing import NamedTuple

from console.operations.voter_change import Changed, PreparedChange
from recovery.membership.preflight import VoterSetStrength
from recovery.membership.replacement import ReplacementPlan, ReplacementStep, StepKind
from recovery.membership.replacement_state import key_of
from recovery.membership.voters import ReplicaKey


class _Agreed(NamedTuple):
    """Who is to be added, and the voters as the removal was to leave them."""

    key: ReplicaKey
    left: VoterSetStrength


class Consent:
    """In between the two a voter is missing: nobody is asked for the second while all is as it was agreed to.

    The watcher of a replacement passes on each preflight, and the result of each request.
    """

    def __init__(self, plan: ReplacementPlan) -> None:
        self._plan = plan
        self._agreed: _Agreed | None = None

    def question(self, step: ReplacementStep, prepared: PreparedChange) -> str:
        """What is asked for, all of it."""
        follows = self._follows(step, prepared)
        return prepared.sentence + ("" if follows is None else f" and then add voter {follows} in its place")

    def given(self, step: ReplacementStep, prepared: PreparedChange) -> None:
        """A person said yes to that question."""
        follows, left = self._follows(step, prepared), prepared.verdict.after
        self._agreed = None if follows is None or left is None else _Agreed(follows, left)

    def judged(self, step: ReplacementStep, prepared: PreparedChange) -> None:
        """What was agreed to lapses for good where the cluster is another than the removal was to leave."""
        if step.kind is StepKind.ADD and self._agreed is not None and not _as_agreed(self._agreed, prepared):
            self._agreed = None

    def changed(self, changed: Changed) -> None:
        """What was held back at the last moment is asked for anew, and what was to follow it too."""
        if changed.answer is None:
            self._agreed = None

    def covers(self, step: ReplacementStep, prepared: PreparedChange) -> bool:
        """Whether it was allowed together with the removal before it."""
        return (
            step.kind is StepKind.ADD and self._agreed is not None and prepared.voter.key == self._agreed.key
        )

    def _follows(self, step: ReplacementStep, prepared: PreparedChange) -> ReplicaKey | None:
        """The replica that takes the place of the voter that is removed, where it is the next to be added."""
        following = next((s for s in self._plan.steps if s.number == step.number + 1), None)
        if following is None or following.node != step.node:
            return None
        pair = (step.kind, following.kind) == (StepKind.REMOVE, StepKind.ADD)
        return key_of(self._plan, following, prepared.quorum) if pair else None


def _as_agreed(agreed: _Agreed, prepared: PreparedChange) -> bool:
    """The same replica, the same voters, and none of them down that was up."""
    now, left = prepared.verdict.before, agreed.left
    same = prepared.voter.key == agreed.key and set(now.voters.keys) == set(left.voters.keys)
    return same and set(now.down) <= set(left.down)
