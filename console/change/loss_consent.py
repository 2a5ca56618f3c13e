"""Agreeing to what the elections of a plan may lose: one rule for the command line and the console.

What is typed is the number of partitions that may lose something; for one partition its topic's name, which nobody
types by habit. Where something may be lost, the journal gets a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from console.change.change import Question
from console.errors import NotDone
from recovery.plan.plan_review import summarise, worst
from recovery.plan.successors import risk_lines
from recovery.plan.values import Plan
from recovery.wording.quantity_text import counted
from recovery.wording.unread_disk_text import unread_broker_lines

if TYPE_CHECKING:
    from console.reading.plan_comparison import PreparedPlan

WORST = 5
"""Lines of each kind in a confirmation."""
NO_REASON = "not confirmed: give a reason for the journal; nothing was sent"


class LossConsent(NamedTuple):
    """What agrees to a plan: ``phrase`` is to be typed, and ``means`` says what it is; ``shown`` is the phrase as
    a person reads it, and may be typed so too. ``lossy``: some partition may lose something; a reason is needed.
    """

    phrase: str
    means: str
    lossy: bool
    shown: str

    def refuse_unless(self, typed: str, reason: str) -> None:
        """Raises NotDone unless the phrase was typed, and a reason given where something may be lost."""
        if typed.strip() not in (self.phrase, self.shown):
            raise NotDone(self.otherwise)
        if self.lossy and not reason.strip():
            raise NotDone(NO_REASON)

    @property
    def otherwise(self) -> str:
        """The message where something else was typed."""
        return f"not confirmed ({self.means} is {self.shown}); nothing was sent"


def consent_to(plan: Plan) -> LossConsent:
    """What has to be typed for the elections of this plan."""
    losing = [row for row in plan.rows if not row.lossless]
    if len(losing) == 1:
        topic = losing[0].tp.topic
        return LossConsent(topic, "the name of the topic that may lose something", True, topic)
    number, means = len(losing), "the number of partitions that may lose something"
    return LossConsent(str(number), means, bool(losing), f"{number:,}")


def election_warnings(prepared: PreparedPlan) -> tuple[str, ...]:
    """What is said before a plan's elections are confirmed, on the terminal and on the screen: the worst first."""
    return tuple(_warnings(prepared))


def _warnings(prepared: PreparedPlan) -> Iterator[str]:
    plan, summary = prepared.holding, summarise(prepared.holding)
    acknowledged = str(summary.acknowledged)
    if acknowledged and not summary.acknowledged.is_none(summary.elect):
        yield f"acknowledged records lost: {acknowledged}"
    if summary.passed_over:
        yield summary.passed_over
    if summary.may_lose:
        what = summary.unacknowledged or "records"
        yield f"{summary.may_lose:,} of {summary.elect:,} may lose {what}; offsets lost: {summary.loss}"
    marked = (f"{row.tp}: {mark}: {mark.meaning}" for row in worst(plan, WORST) for mark in row.marks)
    yield from islice(marked, WORST)
    yield from islice(unread_broker_lines(prepared.unread), WORST)
    yield from risk_lines(plan, WORST, native=prepared.native)
    if prepared.refused:
        yield f"left out, because it cannot be applied: {counted(len(prepared.refused), 'row')} of the plan"
    if any(check.others_at_work for check in prepared.checks):
        yield "somebody else may be at work on this cluster: see the rows that changed"


def loss_question(prepared: PreparedPlan, title: str) -> Question:
    """The question before the elections of this plan, on the cluster that ``title`` names."""
    plan = prepared.holding
    consent, number = consent_to(plan), len(plan.rows)
    elections = "1 election" if number == 1 else f"{number:,} elections"
    where = f"cluster {plan.header.cluster_id} ({title})"
    text = f"{elections} will be run on {where}. To go on, type {consent.means}:"
    warnings = (*election_warnings(prepared), *prepared.notes)
    answers = (consent.phrase, consent.shown)
    return Question(text, answers, consent.otherwise, warnings, needs_reason=consent.lossy)
