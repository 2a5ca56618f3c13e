"""How a row of the plan ended, in words for its line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from backends.base.answers import Outcome
from console.operations.election_batches import Elected, failure_text
from recovery.model import TopicPartition
from recovery.plan.judgement import Judgement, RowDecision
from widgets.plan import RowOutcome


def outcomes_of(checks: Iterable[Judgement], elected: Elected | None) -> Mapping[TopicPartition, RowOutcome]:
    """Every row that was to be applied: elected, online already, refused, or failed."""
    found: dict[TopicPartition, RowOutcome] = {}
    for check in checks:
        if check.decision is RowDecision.ALREADY_ONLINE:
            found[check.tp] = RowOutcome(True, "online", f"already online: {check.detail}; nothing was sent")
        elif not check.holds:
            found[check.tp] = RowOutcome(
                False, "refused", f"{check.decision}: {check.detail}; nothing was sent"
            )
    for result in () if elected is None else elected.results:
        election = result.election
        if result.succeeded:
            detail = f"led by {election.leader}, leader epoch {election.leader_epoch}"
            found[result.row.tp] = RowOutcome(True, str(election.outcome), detail)
        else:
            word = "not sent" if election.outcome is Outcome.NOT_ATTEMPTED else "failed"
            found[result.row.tp] = RowOutcome(False, word, failure_text(result))
    return found
