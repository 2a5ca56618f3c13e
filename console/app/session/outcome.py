"""The result of a row of the plan, in words for its line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from backends.base.answers import Outcome
from console.operations.elections.election_batches import Elected, Result, row_failure
from recovery.model import TopicPartition
from recovery.plan.judgement import Judgement, RowDecision
from widgets.plan import RowOutcome


def outcomes_of(checks: Iterable[Judgement], elected: Elected | None) -> Mapping[TopicPartition, RowOutcome]:
    """The result of every row that was applied: elected, already online, refused, or failed."""
    found: dict[TopicPartition, RowOutcome] = {}
    for check in checks:
        if check.decision is RowDecision.ALREADY_ONLINE:
            found[check.tp] = RowOutcome(True, "online", f"already online: {check.detail}; nothing was sent")
        elif not check.holds:
            found[check.tp] = RowOutcome(
                False, "refused", f"{check.decision}: {check.detail}; nothing was sent"
            )
    for result in () if elected is None else elected.results:
        found[result.row.tp] = _outcome(result)
    return found


def _outcome(result: Result) -> RowOutcome:
    election = result.election
    if result.succeeded:
        led = f"led by {election.leader}, leader epoch {election.leader_epoch}"
        if election.outcome is Outcome.ALREADY_ONLINE:
            return RowOutcome(True, "online", f"already online: {election.detail or led}")
        return RowOutcome(True, str(election.outcome), led)
    words = {Outcome.NOT_ATTEMPTED: "not sent", Outcome.STALE: "refused"}
    word = "unfinished" if result.only_order_open else words.get(election.outcome, "failed")
    return RowOutcome(False, word, row_failure(result).reason)
