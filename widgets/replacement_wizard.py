"""A controller replacement as a guided change: its steps as the cluster shows them now."""

from __future__ import annotations

from dataclasses import replace

from recovery.membership.preflight import LivenessLimits, strength
from recovery.membership.replacement import ReplacementPlan, StepKind
from recovery.membership.replacement import ReplacementStep as Planned
from recovery.membership.replacement_state import QuorumPicture, StepSituation, current, situation
from widgets.wizard import StepProgress, StepState, Wizard, WizardStep


def wizard_of(
    plan: ReplacementPlan, picture: QuorumPicture, *, left_s: float | None = None, problem: str = ""
) -> Wizard:
    """The wizard of ``plan`` with the cluster as in ``picture``.

    ``left_s`` is the estimate of the step that is being done, in seconds; ``problem`` is why it failed, "" if it
    did not.
    """
    now = current(plan, picture)
    steps = []
    for planned in plan.steps:
        shown = _step(planned, situation(plan, planned, picture))
        if now is not None and planned.number == now.number:
            shown = _current(shown, situation(plan, planned, picture), left_s, problem)
        steps.append(shown)
    wanted = plan.wanted
    nodes = ", ".join(map(str, dict.fromkeys((*(key.id for key in wanted.leaving), *wanted.joining))))
    quorum = picture.quorum
    stands = f"the voters now: {strength(quorum, quorum.voters, LivenessLimits())}"
    return Wizard(f"Replacement ({wanted.kind}) of {nodes}", tuple(steps), stands)


def _step(planned: Planned, seen: StepSituation) -> WizardStep:
    """A step that is not the current one. A later one may be done already: it needed nobody."""
    return WizardStep(
        planned.title,
        StepState.DONE if seen.done else StepState.WAITING,
        host="" if planned.kind is StepKind.SERVERS else f"the host of {planned.node}",
        commands=planned.commands,
        sends=planned.sends,
        waits_for=seen.waits_for or planned.waits_for,
        wrong=planned.risks,
        back=planned.back,
        stands=planned.stands,
    )


def _current(step: WizardStep, seen: StepSituation, left_s: float | None, problem: str) -> WizardStep:
    counted = seen.target > 0 and seen.caught >= 0
    return replace(
        step,
        state=StepState.FAILED if problem else StepState.CURRENT,
        held=seen.held,
        problem=problem,
        progress=StepProgress(seen.caught, seen.target, "offsets", left_s) if counted else None,
    )
