"""Agreeing to what the elections of a plan may lose: one rule for the command line and the console.

What is typed is the number of partitions that may lose something; for one partition its topic's name, which nobody
types by habit. Where something may be lost, the journal gets a reason.
"""

from __future__ import annotations

from typing import NamedTuple

from console.errors import NotDone
from console.operations.change import Question
from recovery.plan.plan_review import summarise
from recovery.plan.successors import risk_lines
from recovery.plan.values import Plan

WORST_SUCCESSORS = 5
"""Partitions named in a confirmation whose successor loses more than the chosen leader."""
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


def loss_question(plan: Plan, title: str, *, native: bool = False) -> Question:
    """The question before the elections of this plan, on the cluster that ``title`` names. ``native``: it has
    designated elections of its own.
    """
    consent, summary = consent_to(plan), summarise(plan)
    number = summary.elect
    elections = "1 election" if number == 1 else f"{number:,} elections"
    where = f"cluster {plan.header.cluster_id} ({title})"
    text = f"{elections} will be run on {where}. To go on, type {consent.means}:"
    acknowledged = str(summary.acknowledged)
    warnings = (
        *([f"acknowledged records lost: {acknowledged}"] if acknowledged else []),
        *risk_lines(plan, WORST_SUCCESSORS, native=native),
    )
    return Question(
        text, (consent.phrase, consent.shown), consent.otherwise, warnings, needs_reason=consent.lossy
    )
