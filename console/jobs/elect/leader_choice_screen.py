"""Chooses candidates by the same rules as ``ktriage plan``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from backends.base.judged_partitions import judged
from backends.base.protocol import Backend, Progress
from backends.metadata_log.copied_log import CopiedMetadataLog
from console.app.session.view import View
from console.jobs.elect.leader_choice import choose
from console.reading.compacted_log_batches import with_batches_read
from console.reading.partition_selection import Selection
from console.reading.record_times import with_times
from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.loss import loss
from recovery.model import Survey, TopicPartition
from recovery.plan.importance import Importance
from recovery.plan.make import designate, make_plan
from recovery.plan.plan_review import AcknowledgedLoss, acknowledged_loss
from recovery.plan.values import Header, Plan
from recovery.ranking import Ranking
from recovery.strategy import Decision, DecisionKind, Strategy, decide
from recovery.wording.advice_text import short_reason


class StrategyOutcome(NamedTuple):
    """What a strategy decides for a selection: how many partitions by decision, for which brokers how many of them
    wait, why others are not elected (each reason once), what the elections lose in offsets (``at_most`` None: no
    upper limit known), and what of the acknowledged records.
    """

    strategy: Strategy
    decisions: Mapping[DecisionKind, int]
    waits_for: Mapping[int, int]
    reasons: Mapping[DecisionKind, tuple[str, ...]]
    at_least: int
    at_most: int | None
    acknowledged: AcknowledgedLoss

    @property
    def elects(self) -> int:
        return self.decisions.get(DecisionKind.ELECT, 0)


CHOOSABLE = (Strategy.BALANCED, Strategy.COMPLETE, Strategy.AGGRESSIVE)


def strategy_outcomes(
    surveys: Sequence[Survey], ranking: Ranking, verdicts: Mapping[TopicPartition, PartitionVerdicts]
) -> tuple[StrategyOutcome, ...]:
    """Every strategy beside the others, the most careful first; by the verdicts of the picture."""
    return tuple(_outcome(surveys, ranking, strategy, verdicts) for strategy in CHOOSABLE)


def _outcome(
    surveys: Sequence[Survey],
    ranking: Ranking,
    strategy: Strategy,
    judged: Mapping[TopicPartition, PartitionVerdicts],
) -> StrategyOutcome:
    decided = [(survey, decide(survey, ranking, strategy, judged.get(survey.tp))) for survey in surveys]
    elected = [(survey, one.leader) for survey, one in decided if one.verdict is DecisionKind.ELECT]
    losses = [loss(survey, leader) for survey, leader in elected]
    unlimited = any(lost.at_most is None for lost in losses)
    return StrategyOutcome(
        strategy,
        Counter(one.verdict for _, one in decided),
        Counter(broker for _, one in decided if one.verdict is DecisionKind.WAIT for broker in one.waits_for),
        _reasons(one for _, one in decided),
        sum(lost.at_least for lost in losses),
        None if unlimited else sum(lost.at_most or 0 for lost in losses),
        acknowledged_loss(
            judged[survey.tp].candidates.get(leader) if survey.tp in judged else None
            for survey, leader in elected
        ),
    )


def _reasons(decided: Iterable[Decision]) -> Mapping[DecisionKind, tuple[str, ...]]:
    reasons: dict[DecisionKind, dict[str, None]] = {}
    for one in decided:
        if one.verdict in (DecisionKind.REFUSED, DecisionKind.NO_CANDIDATE):
            reasons.setdefault(one.verdict, {})[short_reason(one)] = None
    return {kind: tuple(texts) for kind, texts in reasons.items()}


async def choose_for(
    backend: Backend,
    view: View,
    partitions: Sequence[TopicPartition],
    header: Header,
    *,
    importance: Importance,
    copy: CopiedMetadataLog | None,
    progress: Progress | None = None,
) -> Plan:
    """The choice for each surveyed partition, with the times of the lost records. ``copy`` is a copied metadata
    log, for when the active controller's cannot be read.
    """
    present = view.reading
    assert present is not None
    surveys = [view.surveys[tp] for tp in partitions if tp in view.surveys]
    chosen = Selection(partitions=tuple(partitions))
    reading = replace(present, surveys=await with_batches_read(backend, surveys, progress), selection=chosen)
    choices = await choose(backend, reading, header, importance, copy=copy)
    return await _with_groups(backend, choices.plan, progress)


async def judged_one(
    backend: Backend, view: View, survey: Survey, copy: CopiedMetadataLog | None
) -> PartitionVerdicts | None:
    """The verdicts of one partition, by the disks as they were seen last, and by ``copy`` as in
    :func:`choose_for`; None where it has a leader.
    """
    reading = view.reading
    assert reading is not None
    elr, dirs = reading.cluster.elr_enabled, reading.log_dirs
    reported = await judged(backend, elr, (survey,), dirs, reading.failed_before, copy=copy)
    return reported.verdicts.get(survey.tp)


async def choose_by_hand(
    backend: Backend,
    view: View,
    survey: Survey,
    broker: int,
    header: Header,
    *,
    copy: CopiedMetadataLog | None,
) -> tuple[Plan, Decision]:
    """Designates ``broker`` for that partition by hand; the decision has the reason if that is not possible."""
    (survey,) = await with_batches_read(backend, [survey])
    decision = designate(survey, broker, header.ranking, await judged_one(backend, view, survey, copy))
    plan = await with_times(backend, make_plan(header, [(survey, decision)], view.topic_marks), (survey,))
    return await _with_groups(backend, plan), decision


async def _with_groups(backend: Backend, plan: Plan, progress: Progress | None = None) -> Plan:
    from console.jobs.consumers.planned_groups import (  # noqa: PLC0415  # not before the first frame
        with_groups,
    )

    return await with_groups(backend, plan, progress)
