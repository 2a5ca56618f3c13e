"""A replacement plan for review, and a run through it, as text and as JSON (``ktriage.quorum-replace/1``)."""

from __future__ import annotations

from collections.abc import Iterator

from console.operations.voters.replacement_steps import ReplacementResult, StopReason
from console.output.json_document import document
from console.output.quorum.quorum_report import key_json
from recovery.membership.preflight import LivenessLimits
from recovery.membership.quorum import Quorum
from recovery.membership.replacement import ReplacementPlan, ReplacementStep
from recovery.membership.replacement_file import digest
from recovery.membership.replacement_safety import after
from recovery.wording.quantity_text import printable


def review_lines(plan: ReplacementPlan, current: ReplacementStep | None, quorum: Quorum) -> Iterator[str]:
    """The whole plan: for each step what is run, sent and waited for, what can go wrong and how to undo it;
    and how many failures the voters then tolerate, given the voters that are down in ``quorum``.
    """
    request = plan.wanted
    yield f"replacement plan {plan.header.plan_id} for cluster {request.cluster_id}: {request.kind}"
    yield f"voters now: {', '.join(map(str, (v.key for v in request.voters)))}"
    for note in plan.notes:
        yield f"note: {note}"
    for step in plan.steps:
        yield ""
        done = current is None or step.number < current.number
        yield from step_lines(step, done=done)
        if step.kind.sends:
            voters = ", ".join(map(str, step.voters))
            now = "" if done else f": {after(plan, step, quorum, LivenessLimits())}"
            yield f"   then: voters {voters}{now}"
    yield ""
    yield f"digest {digest(plan)}"


def step_lines(step: ReplacementStep, *, done: bool = False) -> Iterator[str]:
    """One step in full."""
    yield f"{step.number}. {printable(step.title)}{' (done)' if done else ''}"
    for command in step.commands:
        yield f"     {printable(command)}"
    if step.sends:
        yield f"   sends: {printable(step.sends)}"
    yield f"   until: {printable(step.waits_for)}"
    for risk in step.risks:
        yield f"   can go wrong: {printable(risk)}"
    yield f"   back: {printable(step.back)}"


def result_line(result: ReplacementResult) -> str:
    """The result of a run."""
    if result.reason is StopReason.DONE or result.step is None:
        return "the replacement is done"
    why = ""
    if result.situation is not None:
        # The person ended the run, so what the step waits for is not the reason and is not printed.
        waits = result.reason in (StopReason.TOO_LONG, StopReason.UNCONFIRMED)
        why = "; ".join(result.situation.blockers) or (result.situation.waits_for if waits else "")
    return printable(
        f"{result.reason} at step {result.step.number} ({result.step.title}){f': {why}' if why else ''}"
    )


def replacement_document(plan: ReplacementPlan, file: str, result: ReplacementResult | None) -> Iterator[str]:
    """``ktriage.quorum-replace/1``."""
    request = plan.wanted
    step = result.step if result is not None else None
    return document(
        "quorum-replace",
        {
            "planId": plan.header.plan_id,
            "clusterId": request.cluster_id,
            "kind": str(request.kind),
            "leaving": [key_json(key) for key in request.leaving],
            "joining": list(request.joining),
            "digest": digest(plan),
            "file": file,
            "notes": list(plan.notes),
            "course": None if result is None else str(result.reason),
            "step": None if step is None else step.number,
            "held": list(result.situation.blockers)
            if result is not None and result.situation is not None
            else [],
            "steps": [
                {
                    "number": s.number,
                    "kind": str(s.kind),
                    "node": s.node,
                    "title": s.title,
                    "onHost": list(s.commands),
                    "sends": s.sends,
                    "waitsFor": s.waits_for,
                    "canGoWrong": list(s.risks),
                    "back": s.back,
                    "votersAfter": list(s.voters),
                }
                for s in plan.steps
            ],
        },
    )
