"""Agreeing to what the elections of a plan may lose: one rule for the command line and the console.

What is typed is the number of partitions that may lose something; for one partition its topic's name, which nobody
types by habit. Where something may be lost, the journal gets a reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from console.change.change import Question
from recovery.acknowledged.verdict import VerdictValue
from recovery.model import Standing
from recovery.plan.plan_review import (
    Summary,
    brief_candidate_harm,
    passes_over,
    summarise,
    worst,
)
from recovery.plan.successors import risk_lines
from recovery.plan.values import Plan
from recovery.unread_brokers import unread_brokers
from recovery.wording.group_text import affected_groups_in_short
from recovery.wording.loss_text import brief_range
from recovery.wording.quantity_text import counted, more
from recovery.wording.unread_disk_text import unread_brokers_in_short

if TYPE_CHECKING:
    from console.reading.plan_comparison import PreparedPlan

WORST = 5
"""Lines of each kind in a confirmation."""
NAMED = 3
"""Partitions that the question names: those that may lose most."""
NO_REASON = "not confirmed: give a reason for the journal; nothing was sent"


LOST, RISK, SAVED = "Lost", "Risk", "Saved"
"""The words before what a change destroys, what could still go wrong, and what is saved before it."""
REHEARSED = "Rehearsed"
"""The word before what happened when the elections were tried on a copy of the cluster."""


class Outline(NamedTuple):
    """What elections do, in sentences: the same on the screen, at the terminal and in Markdown. ``lost`` and
    ``risks`` have the worst first; ``proved`` says that no acknowledged record is lost, where that is proved.
    """

    elects: str
    lost: tuple[str, ...]
    risks: tuple[str, ...]
    proved: tuple[str, ...] = ()

    def parts(self, saved: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
        """Each sentence with the word before it; ``saved`` are those about what is read first."""
        for label, sentences in ((LOST, (*self.proved, *self.lost)), (RISK, self.risks), (SAVED, saved)):
            yield from ((label, sentence) for sentence in sentences)


def outline(
    plan: Plan,
    *,
    native: bool | None,
    prepared: PreparedPlan | None = None,
    named: int = NAMED,
) -> Outline:
    """``native``: the cluster has designated elections of its own; None: that is not known. ``prepared``: the plan
    as it was compared with the cluster right now. ``named``: so many of several partitions are named.
    """
    summary = summarise(plan)
    # Of a plan that was not compared: as it says, whose logs nobody had read when it was made.
    unread = {row.tp: unread_brokers(row) for row in plan.rows} if prepared is None else prepared.unread
    risks = (
        *(() if prepared is None else prepared.instead),
        *unread_brokers_in_short(plan.rows, unread, WORST),
        *affected_groups_in_short(plan.affected, plan.groups_unread),
        *risk_lines(plan, WORST, native=native),
        *(_left_out(prepared) if prepared is not None else ()),
    )
    proved = summary.acknowledged.is_none(summary.elect) and summary.elect > 0
    return Outline(
        _elects(plan, summary),
        tuple(_losses(plan, summary, named)),
        risks,
        ("No record acknowledged with acks=all: that is proved.",) if proved else (),
    )


def election_outline(prepared: PreparedPlan) -> Outline:
    """What the elections of a compared plan do."""
    return outline(prepared.holding, native=prepared.native, prepared=prepared)


def _elects(plan: Plan, summary: Summary) -> str:
    if summary.elect == 1:
        (row,) = plan.rows
        return f"Elect broker {row.leader} as leader of {row.tp}"
    return f"Elect the planned leaders of {counted(summary.elect, 'partition')}"


def _losses(plan: Plan, summary: Summary, named: int) -> Iterator[str]:
    acknowledged = summary.acknowledged
    if set(acknowledged.values) == {VerdictValue.SOME}:
        or_more = "" if acknowledged.exact else " or more"
        of = "" if summary.elect == 1 else f" of {counted(acknowledged.of(VerdictValue.SOME), 'partition')}"
        yield f"{acknowledged.at_least:,}{or_more} committed offsets{of}."
    elif str(acknowledged) and not acknowledged.is_none(summary.elect):
        yield f"Acknowledged records: {acknowledged}."
    losing = worst(plan, named if summary.elect > 1 else 1)
    what = summary.unacknowledged or "records"
    if summary.elect == 1:
        which = "Unacknowledged offsets" if summary.unacknowledged else "Offsets"
        yield from (f"{which} cut off: {brief_candidate_harm(row.chosen)}." for row in losing)
    elif summary.may_lose:
        cut = brief_range(summary.at_least, summary.at_most)
        yield f"{summary.may_lose:,} of {summary.elect:,} may lose {what}. Offsets cut off: {cut}."
        yield from (f"{row.tp}: {row.leader} loses {brief_candidate_harm(row.chosen)}" for row in losing)
        if losing:
            yield from more(summary.may_lose - len(losing), noun="partition")
    yield from _passed_over(plan, summary)
    marked = (f"{row.tp}: {mark}: {mark.meaning}" for row in worst(plan, WORST) for mark in row.marks)
    yield from islice(marked, WORST)


def _passed_over(plan: Plan, summary: Summary) -> Iterator[str]:
    rows = [row for row in plan.rows if passes_over(row)]
    if len(rows) == 1:
        (row,) = rows
        best = next(one for one in row.candidates if one.standing is Standing.ELECTABLE)
        yield f"{row.tp}: NOT the best log: broker {best.broker} loses {brief_candidate_harm(best)}."
    elif rows:
        yield f"{summary.passed_over}."


def _left_out(prepared: PreparedPlan) -> Iterator[str]:
    if prepared.refused:
        yield f"{counted(len(prepared.refused), 'row')} of the plan left out: they cannot be applied now."
    if any(check.others_at_work for check in prepared.checks):
        yield "Somebody else may be at work on this cluster: see the rows that changed."


def loss_question(prepared: PreparedPlan, title: str) -> Question:
    """The question before the elections of this plan, on the cluster that ``title`` names."""
    plan = prepared.holding
    number, losing = len(plan.rows), [row for row in plan.rows if not row.lossless]
    what = "unacknowledged records" if summarise(plan).unacknowledged else "something"
    if len(losing) == 1:
        phrase = shown = losing[0].tp.topic
        means = f"the name of the topic that may lose {what}"
    else:
        phrase, shown = str(len(losing)), f"{len(losing):,}"
        means = f"the number of partitions that may lose {what}"
    elections = "1 election" if number == 1 else f"{number:,} elections"
    where = f"cluster {plan.header.cluster_id} ({title})"
    said = election_outline(prepared)
    return Question(
        f"{elections} will be run on {where}. To go on, type {means}:",
        (phrase, shown),
        f"not confirmed ({means} is {shown}); nothing was sent",
        (
            said.elects,
            *(f"  {label}: {sentence}" for label, sentence in said.parts(prepared.notes)),
            *(f"  {REHEARSED}: {sentence}" for sentence in prepared.rehearsal),
        ),
        needs_reason=bool(losing),
        means=means,
    )
