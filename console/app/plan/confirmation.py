"""What is confirmed: a target that is frozen when the question is put, and what must be typed to go on."""

from __future__ import annotations

from dataclasses import dataclass

from console.app.session.safety import Safety
from console.errors import NotDone
from recovery.plan.plan_review import Summary, summarise
from recovery.plan.values import Plan
from recovery.plan.write import digest


@dataclass(frozen=True, slots=True)
class Frozen:
    """A plan as it stood when the confirmation opened, of which cluster; ``digest`` is the whole plan's."""

    plan: Plan
    digest: str
    cluster_id: str
    title: str
    simulated: bool

    @property
    def summary(self) -> Summary:
        return summarise(self.plan)

    @property
    def lossy(self) -> bool:
        """Some row may lose records: it is not certain of every row that it loses nothing."""
        return self.summary.may_lose > 0

    @property
    def phrase(self) -> str:
        """What must be typed: the number of partitions that may lose something, for one its topic; "" for none."""
        rows = [row for row in self.plan.rows if not row.loss.none]
        if not rows:
            return ""
        return rows[0].tp.topic if len(rows) == 1 else str(len(rows))

    @property
    def phrase_means(self) -> str:
        """What the phrase is, for the question."""
        if not self.lossy:
            return ""
        if self.summary.may_lose == 1:
            return "the topic's name"
        return "the number of partitions that may lose records"


def freeze(plan: Plan, cluster_id: str, title: str, *, simulated: bool) -> Frozen:
    """Raises NotDone where there is nothing to elect."""
    if not plan.rows:
        raise NotDone("the plan elects nobody: choose a candidate first")
    return Frozen(plan, digest(plan), cluster_id, title, simulated)


def refuse_unconfirmed(frozen: Frozen, typed: str, reason: str) -> None:
    """Raises NotDone unless what was typed is the phrase, and a reason is given where records may go."""
    if typed.strip() != frozen.phrase:
        raise NotDone(f"not confirmed: type {frozen.phrase_means} ({frozen.phrase}); nothing was sent")
    if frozen.lossy and not reason.strip():
        raise NotDone("not confirmed: give a reason for the journal; nothing was sent")


def refuse_changed(frozen: Frozen, plan: Plan | None, cluster_id: str, safety: Safety) -> None:
    """The second look, when it is confirmed. Raises NotDone where anything is not as it was."""
    safety.refuse()
    if cluster_id != frozen.cluster_id:
        raise NotDone(
            f"the plan was confirmed for cluster {frozen.cluster_id}, and this is {cluster_id}; nothing was sent"
        )
    if plan is None or digest(plan) != frozen.digest:
        raise NotDone("the plan is not the one that was shown; nothing was sent")
