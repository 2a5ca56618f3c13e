"""The result of a voter change, as text and as JSON (``ktriage.quorum-add/1``, ``quorum-remove/1``)."""

from __future__ import annotations

from collections.abc import Iterator

from console.operations.voters.prepared_change import VoterChange
from console.operations.voters.voter_change import VoterChangeResult
from console.output.json_document import document
from console.output.quorum.quorum_report import key_json, strength_json
from recovery.membership.quorum import TimeoutCause
from recovery.membership.quorum_health import non_voter_leads
from recovery.wording.quantity_text import printable


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


def changed_document(verb: str, changed: VoterChangeResult) -> Iterator[str]:
    """``ktriage.quorum-VERB/1``."""
    verdict = changed.prepared.verdict
    answer = changed.answer
    return document(
        f"quorum-{verb}",
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
            "error": answer.error if answer is not None else "",
            "cause": None if changed.cause is None else str(changed.cause),
            "detail": changed.detail,
        },
    )
