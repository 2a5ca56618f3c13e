"""Sends a change that was confirmed on the screen. The target is frozen when the question opens, and a text must be
typed to continue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from backends.base.protocol import Progress
from console.app.session.safety import Safety
from console.change.change import Conclusion, Question
from console.change.loss_consent import NO_REASON, RISK
from console.change.unfinished_orders import SettledOrders
from console.errors import NotDone
from console.journal.unfinished_entries import Unfinished
from recovery.plan.values import Plan
from recovery.plan.write import digest
from widgets.dialogs.confirmation import ConfirmOption, ConfirmPart, ConfirmRequest


@dataclass(frozen=True, slots=True)
class ConfirmedTargets:
    """The plan and its cluster when the confirmation opened; ``digest`` is that of the whole plan."""

    plan: Plan
    digest: str
    cluster_id: str
    title: str
    simulated: bool


def freeze(plan: Plan, cluster_id: str, title: str, *, simulated: bool) -> ConfirmedTargets:
    """Raises NotDone if there is nothing to elect."""
    if not plan.rows:
        raise NotDone("the plan elects no leader: choose a candidate first")
    return ConfirmedTargets(plan, digest(plan), cluster_id, title, simulated)


def refuse_changed(frozen: ConfirmedTargets, plan: Plan | None, cluster_id: str, safety: Safety) -> None:
    """The second check, after the confirmation. Raises NotDone if anything has changed."""
    safety.refuse()
    if cluster_id != frozen.cluster_id:
        raise NotDone(
            f"the plan was confirmed for cluster {frozen.cluster_id}, and this is {cluster_id}; nothing was sent"
        )
    if plan is None or digest(plan) != frozen.digest:
        raise NotDone("the plan is not the one that was shown; nothing was sent")


def asked_on_screen(
    question: Question,
    title: str,
    target: tuple[str, ...],
    *,
    label: str,
    opened_by: str,
    options: tuple[ConfirmOption, ...] = (),
    option_label: str = "",
) -> ConfirmRequest:
    """A question that is answered by a text, as a screen asks it, with a reason; ``label`` is the button's."""
    return ConfirmRequest(
        title=title,
        target=target,
        confirm_label=label,
        opened_by=opened_by,
        parts=(ConfirmPart(RISK, question.warnings),),
        expected=question.answers[0],
        expected_what=f"{question.means} ({question.shown})",
        needs_reason=True,
        options=options,
        option_label=option_label,
    )


# ruff: noqa: ARG002  # the signatures are the operator's


class Confirmed(NamedTuple):
    """A person who confirmed on the screen; implements :class:`console.change.change.Operator`.

    ``revert``: the person agreed to revert first what an earlier run left. ``unrecorded``, ``says`` and
    ``progress`` are called on the backend's thread.
    """

    progress: Progress | None
    unrecorded: Callable[[str], None]
    says: Callable[..., None] = lambda *_: None
    revert: bool = False

    def finds(self, found: Unfinished) -> None:
        """The screen asks about it after :class:`HalfDone` has ended the change."""

    async def reverts_first(self, found: Unfinished) -> bool:
        return self.revert

    def reverted(self, settled: SettledOrders) -> None:
        """Nothing to do: the journal shows it."""

    def shows(self, prepared: object) -> None:
        """Nothing to do: the screen showed it before the question."""

    @property
    def asks(self) -> bool:
        """The screen asked for consent and reason before."""
        return False

    async def answers(self, question: Question, prepared: object) -> str:
        raise NotDone(question.otherwise)

    async def gives_reason(self) -> str:
        raise NotDone(NO_REASON)


P = TypeVar("P")
R = TypeVar("R")


class Sent(NamedTuple, Generic[R]):
    """``unrecorded``: the lines that say what the journal could not record; [] if it has everything."""

    result: R
    unrecorded: list[str]
    conclusion: Conclusion
