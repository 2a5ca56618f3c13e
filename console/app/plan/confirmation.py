"""A confirmation: the target is frozen when the question opens, and a text must be typed to continue."""

from __future__ import annotations

from dataclasses import dataclass

from console.app.session.safety import Safety
from console.errors import NotDone
from console.operations.elections.loss_consent import LossConsent, consent_to
from recovery.plan.plan_review import Summary, summarise
from recovery.plan.values import Plan
from recovery.plan.write import digest


@dataclass(frozen=True, slots=True)
class ConfirmedTargets:
    """The plan and its cluster when the confirmation opened; ``digest`` is that of the whole plan."""

    plan: Plan
    digest: str
    cluster_id: str
    title: str
    simulated: bool

    @property
    def summary(self) -> Summary:
        return summarise(self.plan)

    @property
    def consent(self) -> LossConsent:
        """The answer that agrees."""
        return consent_to(self.plan)


def freeze(plan: Plan, cluster_id: str, title: str, *, simulated: bool) -> ConfirmedTargets:
    """Raises NotDone if there is nothing to elect."""
    if not plan.rows:
        raise NotDone("the plan elects no leader: choose a candidate first")
    return ConfirmedTargets(plan, digest(plan), cluster_id, title, simulated)


def refuse_unconfirmed(frozen: ConfirmedTargets, typed: str, reason: str) -> None:
    """Raises NotDone unless the answer agrees. If nothing may be lost, the button alone confirms."""
    if frozen.consent.lossy:
        frozen.consent.refuse_unless(typed, reason)


def refuse_changed(frozen: ConfirmedTargets, plan: Plan | None, cluster_id: str, safety: Safety) -> None:
    """The second check, after the confirmation. Raises NotDone if anything has changed."""
    safety.refuse()
    if cluster_id != frozen.cluster_id:
        raise NotDone(
            f"the plan was confirmed for cluster {frozen.cluster_id}, and this is {cluster_id}; nothing was sent"
        )
    if plan is None or digest(plan) != frozen.digest:
        raise NotDone("the plan is not the one that was shown; nothing was sent")
