"""What a key makes of the plan being edited, and the result of each of its rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from backends.base.answers import Outcome
from console.app.session.draft import ONLINE, Draft, DraftRescue
from console.jobs.elect.election_batches import Elected, Result, row_failure
from recovery.model import TopicPartition
from recovery.plan.edit import with_leader
from recovery.plan.judgement import Judgement, RowDecision
from recovery.plan.values import Header, Plan, PlanError
from recovery.plan.verify import RowOutcome
from recovery.plan.write import digest
from recovery.rescue_branches import BranchPart
from recovery.strategy import Strategy

if TYPE_CHECKING:
    from console.jobs.elect.apply_plan import Applied
    from console.jobs.elect.verify_plan import Verified
    from console.jobs.rescue.rescue_read import Rescued

V = TypeVar("V")
_CAREFUL = list(Strategy)
"""The least careful first."""


def loaded(plan: Plan, path: Path | None) -> Draft:
    """A plan that was read from a file."""
    return Draft(plan, path, digest=digest(plan))


def with_choices(draft: Draft, chosen: Plan, edited: Iterable[TopicPartition] = ()) -> Draft:
    """The draft with the rows of ``chosen``, which replace older rows of the same partitions, and with its
    header.

    If older rows stay, the header names the least careful strategy of all rows. Raises PlanError if they were
    chosen by another ranking: a plan has only one, which is also used for the comparison.
    """
    fresh = {row.tp for row in chosen.rows} | {row.tp for row in chosen.not_elected}
    old = draft.plan
    older_rows = () if old is None else tuple(row for row in old.rows if row.tp not in fresh)
    left = () if old is None else tuple(row for row in old.not_elected if row.tp not in fresh)
    header = chosen.header
    if old is not None and (older_rows or left):
        if old.header.ranking is not header.ranking:
            raise PlanError(
                f"the plan's rows were chosen by {old.header.ranking}: choose the new rows by it too, or"
                " remove the old ones"
            )
        header = replace(
            header,
            strategy=min(old.header.strategy, header.strategy, key=_CAREFUL.index),
            accepted="; ".join(dict.fromkeys(filter(None, (old.header.accepted, header.accepted)))),
        )
    older_groups = () if old is None else tuple(group for group in old.groups if group.tp not in fresh)
    # What to do first was said of the chosen rows alone.
    steps = () if older_rows or left else chosen.steps
    plan = Plan(
        header,
        (*older_rows, *chosen.rows),
        (*left, *chosen.not_elected),
        (*older_groups, *chosen.groups),
        chosen.groups_unread,
        steps,
    )
    return _changed(draft, plan, fresh, (draft.edited - fresh) | frozenset(edited))


def led_by(draft: Draft, tp: TopicPartition, broker: int, header: Header) -> Draft:
    """The draft with another designated leader. Raises PlanError with the reason if it cannot lead."""
    assert draft.plan is not None
    plan = replace(with_leader(draft.plan, tp, broker), header=header)
    return _changed(draft, plan, {tp}, draft.edited | {tp})


def without(draft: Draft, partitions: Collection[TopicPartition], header: Header) -> Draft:
    """The draft without those rows; empty if no row is left."""
    if draft.plan is None:
        return draft
    gone = frozenset(partitions)
    rows = tuple(row for row in draft.plan.rows if row.tp not in gone)
    left = tuple(row for row in draft.plan.not_elected if row.tp not in gone)
    if not rows and not left:
        return Draft()
    plan = replace(draft.plan, header=header, rows=rows, not_elected=left)
    return _changed(draft, plan, gone, draft.edited - gone)


def compared(draft: Draft, checks: Iterable[Judgement]) -> Draft:
    if draft.plan is None:  # the plan was dropped while it was compared
        return draft
    return replace(draft, checks={check.tp: check for check in checks})


def verified(draft: Draft, found: Verified) -> Draft:
    if draft.plan is None:
        return draft
    states = {**draft.states, **{state.tp: state for state in found.states}}
    return replace(draft, states=states, clients=found.aftermath.in_short)


def refused(draft: Draft, checks: Iterable[Judgement]) -> Draft:
    """The draft after nothing of it could be applied."""
    return replace(
        draft,
        checks={check.tp: check for check in checks},
        outcomes={**draft.outcomes, **outcomes_of(checks, None)},
    )


def applied(draft: Draft, checks: Sequence[Judgement], done: Applied) -> Draft:
    """The draft after it was applied: the refused rows, what was rescued, and the result of each election."""
    if draft.plan is None:
        return draft
    elected = done.elected
    states = {} if elected is None else {r.row.tp: r.state for r in elected.results if r.state is not None}
    return replace(
        draft,
        checks={check.tp: check for check in checks},
        outcomes={**draft.outcomes, **outcomes_of(checks, elected)},
        states={**draft.states, **states},
        rescue=rescue_of(draft.plan, done.rescued) or draft.rescue,
    )


def rescue_of(plan: Plan, rescued: Rescued | None) -> DraftRescue | None:
    """What was read before the plan was applied; None: nothing."""
    if rescued is None or not rescued.offsets:
        return None
    parted: dict[TopicPartition, int] = {}
    for branch, _, _ in rescued.results:
        if branch.part is BranchPart.TAIL:
            parted[branch.tp] = min(branch.start, parted.get(branch.tp, branch.start))
    ends = {row.tp: row.chosen.log_end for row in plan.rows}
    newer = sum(max(ends[tp] - start, 0) for tp, start in parted.items())
    unread = tuple(sorted({one.broker for one in rescued.unread}))
    return DraftRescue(rescued.directory, rescued.offsets, newer, unread)


def _changed(
    draft: Draft, plan: Plan, touched: Collection[TopicPartition], edited: frozenset[TopicPartition]
) -> Draft:
    """Drops what was known of the changed rows, and the file, which has another plan."""
    return Draft(
        plan,
        None,
        edited,
        _rest(draft.checks, touched),
        _rest(draft.states, touched),
        _rest(draft.outcomes, touched),
        digest(plan),
    )


def _rest(
    known: Mapping[TopicPartition, V], touched: Collection[TopicPartition]
) -> Mapping[TopicPartition, V]:
    return {tp: value for tp, value in known.items() if tp not in touched}


def outcomes_of(checks: Iterable[Judgement], elected: Elected | None) -> Mapping[TopicPartition, RowOutcome]:
    """The result of every row that was applied: elected, already online, refused, or failed."""
    found: dict[TopicPartition, RowOutcome] = {}
    for check in checks:
        if check.decision is RowDecision.ALREADY_ONLINE:
            found[check.tp] = RowOutcome(True, ONLINE, f"already online: {check.detail}; nothing was sent")
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
            return RowOutcome(True, ONLINE, f"already online: {election.detail or led}")
        return RowOutcome(True, str(election.outcome), led)
    words = {Outcome.NOT_ATTEMPTED: "not sent", Outcome.STALE: "refused"}
    word = "unfinished" if result.only_order_open else words.get(election.outcome, "failed")
    return RowOutcome(False, word, row_failure(result).reason)
