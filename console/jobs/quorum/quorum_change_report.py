"""The result of a voter change, of a replacement and of an upgrade, as text and as JSON
(``ktriage.quorum-add/1``, ``quorum-remove/1`` and others).
"""

from __future__ import annotations

from collections.abc import Iterator

from backends.base.membership import ClusterNode, NodeProbe
from console.change.change import ChangeReport
from console.jobs.quorum.change_voters import UpgradeResult
from console.jobs.quorum.kraft_upgrade import UpgradeCheck, supports
from console.jobs.quorum.prepared_change import PreparedChange, VoterChange
from console.jobs.quorum.quorum_report import key_json, preflight_lines, strength_json
from console.jobs.quorum.replace_controller import (
    HalfDoneReplacement,
    ReplacementEnding,
    ReplacementStanding,
)
from console.jobs.quorum.replacement_steps import ReplacementResult, StopReason
from console.jobs.quorum.voter_change import VoterChangeResult, is_done
from console.output.json_document import document
from recovery.membership.preflight import LivenessLimits
from recovery.membership.quorum import Quorum, TimeoutCause
from recovery.membership.quorum_health import non_voter_leads
from recovery.membership.replacement import ReplacementPlan, ReplacementStep
from recovery.membership.replacement_file import digest
from recovery.membership.replacement_safety import after
from recovery.wording.quantity_text import printable
from widgets.fields import Field, data_field, json_of, text_field, text_rows


def changed_lines(changed: VoterChangeResult) -> Iterator[str]:
    """One line with the result; if the change failed, also what that means."""
    if changed.answer is None:
        if changed.detail:
            yield printable(f"not sent: {changed.detail}")
        return
    key = changed.prepared.voter.key
    if changed.done:
        verb = "added" if changed.prepared.change is VoterChange.ADD else "removed"
        yield f"{verb}: {key}, committed by the new set"
        if changed.after is not None and (problem := non_voter_leads(changed.after)):
            yield problem
        if is_done(changed.unregistered):
            yield f"unregistered: controller {key.id}"
        elif changed.unregistered is not None:
            yield printable(f"controller {key.id} is still registered: {changed.unregistered}")
        return
    yield printable(f"{changed.prepared.sentence}: {changed.answer}")
    if changed.cause is not None:
        yield f"cause: {changed.cause}"
    if changed.done is None:
        yield (
            "the change is written, but not known to be committed: it takes effect as soon as a majority"
            " of the new set follows. Do not send it again; check with ktriage quorum status"
            if changed.cause is TimeoutCause.NOT_COMMITTED
            else f"the result is not known ({changed.detail}): check with ktriage quorum status"
        )


def changed_document(changed: VoterChangeResult) -> Iterator[str]:
    """``ktriage.quorum-add/1`` or ``ktriage.quorum-remove/1``."""
    verdict = changed.prepared.verdict
    answer = changed.answer
    return document(
        f"quorum-{changed.prepared.change}",
        {
            "voter": {
                **key_json(changed.prepared.voter.key),
                "endpoints": [str(endpoint) for endpoint in changed.prepared.voter.endpoints],
            },
            "preflight": {
                "allowed": verdict.allowed,
                "refused": list(verdict.refused),
                "warnings": list(verdict.warnings),
                "before": strength_json(verdict.before),
                "after": None if verdict.after is None else strength_json(verdict.after),
            },
            "sent": answer is not None,
            "done": changed.done,
            "unregistered": None if changed.unregistered is None else is_done(changed.unregistered),
            "error": answer.error if answer is not None else "",
            "cause": None if changed.cause is None else str(changed.cause),
            "detail": changed.detail,
        },
    )


def _prepared_lines(prepared: PreparedChange, _rows: int) -> Iterator[str]:
    return preflight_lines(prepared.verdict, prepared.sentence)


def _ended_lines(changed: VoterChangeResult) -> Iterator[str]:
    return iter(()) if changed.answer is None else changed_lines(changed)


def _refusals(changed: VoterChangeResult) -> Iterator[str]:
    against = changed.prepared.verdict.refused or tuple(filter(None, (changed.detail,)))
    if changed.answer is None and against:
        yield from (f"refused: {reason}" for reason in against)
        yield "nothing was sent"


CHANGED_VOTERS = ChangeReport(_prepared_lines, _ended_lines, _refusals, changed_document)


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


def _replacement_lines(prepared: ReplacementStanding, _rows: int) -> Iterator[str]:
    return review_lines(prepared.planned.plan, prepared.step, prepared.quorum)


def _replaced_lines(ending: ReplacementEnding) -> Iterator[str]:
    if ending.result is not None:
        yield result_line(ending.result)


def _replacement_problems(ending: ReplacementEnding) -> Iterator[str]:
    if ending.result is not None and ending.result.reason is not StopReason.DONE:
        yield f"not done: {result_line(ending.result)}"


def replacement_document(ending: ReplacementEnding) -> Iterator[str]:
    """``ktriage.quorum-replace/1``; no line where no replacement is half done."""
    if ending.planned is None:
        return iter(())
    plan, file, result = ending.planned.plan, ending.planned.file, ending.result
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
            "file": "" if file is None else str(file),
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


REPLACED = ChangeReport(_replacement_lines, _replaced_lines, _replacement_problems, replacement_document)
RESUMED: ChangeReport[HalfDoneReplacement, ReplacementEnding] = ChangeReport(
    None, _replaced_lines, _replacement_problems, replacement_document
)


def _support(node: ClusterNode) -> str:
    if not isinstance(node.answer, NodeProbe):
        return str(node.answer)
    if not supports(node.answer):
        return "no"
    assert node.answer.kraft_versions is not None
    return "{}-{}".format(*node.answer.kraft_versions)


NODE: tuple[Field[ClusterNode], ...] = (
    text_field("ROLE", lambda n: str(n.role)),
    Field("id", "NODE", lambda n: n.id, lambda n: str(n.id)),
    data_field("role", lambda n: str(n.role)),
    Field("address", "ADDRESS", lambda n: n.address),
    Field("supports", "KRAFT.VERSION", _support, lambda n: printable(_support(n))),
)
AFTERWARDS = (
    "afterwards: replace controller.quorum.voters by controller.quorum.bootstrap.servers in every node's settings,"
    " and restart them one by one"
)


def upgrade_lines(check: UpgradeCheck, _rows: int) -> Iterator[str]:
    """Every node with what it supports, then the problems that prevent the upgrade."""
    yield f"kraft.version {check.quorum.kraft_version}, level 1 requested"
    yield from text_rows(NODE, check.nodes, "  ")
    if check.already:
        yield "the cluster already has this level: the voters are dynamic"
        return
    for reason in check.refused:
        yield printable(f"  refused: {reason}")
    for warning in check.warnings:
        yield f"  note: {warning}"
    if not check.refused:
        yield "  no problem found; the controller would accept it"
        yield f"  {AFTERWARDS}"


def _upgraded_lines(upgraded: UpgradeResult) -> Iterator[str]:
    if upgraded.answer is not None:
        yield f"kraft.version: {upgraded.answer}{', confirmed by the cluster' if upgraded.confirmed else ''}"


def _upgrade_refusals(upgraded: UpgradeResult) -> Iterator[str]:
    if upgraded.check.refused:
        yield from (f"refused: {reason}" for reason in upgraded.check.refused)
        yield "nothing was sent"


def upgrade_document(upgraded: UpgradeResult) -> Iterator[str]:
    """``ktriage.quorum-upgrade/1``."""
    check, answer, confirmed = upgraded
    return document(
        "quorum-upgrade",
        {
            "kraftVersion": 1 if confirmed else check.quorum.kraft_version,
            "already": check.already,
            "refused": list(check.refused),
            "warnings": list(check.warnings),
            "sent": answer is not None,
            "done": confirmed,
            "error": "" if answer is None else answer.error,
            "nodes": list(map(json_of(NODE), check.nodes)),
        },
    )


UPGRADED = ChangeReport(upgrade_lines, _upgraded_lines, _upgrade_refusals, upgrade_document)
