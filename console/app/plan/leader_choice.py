"""Chooses candidates by the same rules as ``ktriage plan``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from backends.base.judged_partitions import judged
from backends.base.protocol import Backend, Progress
from console.app.session.view import JudgedSurvey, View
from console.operations.compacted_log_batches import with_batches_read
from console.operations.leader_choice import choose
from console.operations.partition_picture import Picture
from console.operations.partition_selection import Selection
from console.operations.record_times import with_times
from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.model import Survey, TopicPartition
from recovery.plan.importance import Importance
from recovery.plan.make import designate, make_plan
from recovery.plan.values import Header, Plan
from recovery.ranking import Ranking
from recovery.strategy import Decision, DecisionKind, Strategy, decide


class Comes(NamedTuple):
    """The result of a strategy for a selection: the number of each verdict."""

    strategy: Strategy
    verdicts: Mapping[DecisionKind, int]

    @property
    def elects(self) -> int:
        return self.verdicts.get(DecisionKind.ELECT, 0)


CHOOSABLE = (Strategy.BALANCED, Strategy.COMPLETE, Strategy.AGGRESSIVE)


def what_each_comes_to(
    surveys: Sequence[Survey], ranking: Ranking, verdicts: Mapping[TopicPartition, JudgedSurvey]
) -> tuple[Comes, ...]:
    """Every strategy beside the others, the most careful first; by the verdicts of the picture."""

    def decided(survey: Survey, strategy: Strategy) -> DecisionKind:
        held = verdicts.get(survey.tp)
        return decide(survey, ranking, strategy, None if held is None else held.verdicts).verdict

    return tuple(
        Comes(strategy, Counter(decided(survey, strategy) for survey in surveys)) for strategy in CHOOSABLE
    )


async def choose_for(
    backend: Backend,
    view: View,
    partitions: Sequence[TopicPartition],
    header: Header,
    *,
    importance: Importance,
    progress: Progress | None = None,
) -> Plan:
    """The choice for each surveyed partition, with the times of the lost records."""
    assert view.cluster is not None
    surveys = [view.surveys[tp] for tp in partitions if tp in view.surveys]
    picture = Picture(
        view.cluster,
        await with_batches_read(backend, surveys, progress),
        tuple(view.contacts.values()),
        view.marks,
        (),
        False,
        Selection(partitions=tuple(partitions)),
    )
    return (await choose(backend, picture, header, importance)).plan


async def judged_one(backend: Backend, view: View, survey: Survey) -> PartitionVerdicts | None:
    """The verdicts of one partition; None where it has a leader."""
    assert view.cluster is not None
    told = await judged(backend, view.cluster.elr_enabled, (survey,))
    return told.verdicts.get(survey.tp)


async def choose_by_hand(
    backend: Backend, view: View, survey: Survey, broker: int, header: Header
) -> tuple[Plan, Decision]:
    """Designates ``broker`` for that partition by hand; the decision has the reason if that is not possible."""
    (survey,) = await with_batches_read(backend, [survey])
    decision = designate(survey, broker, header.ranking, await judged_one(backend, view, survey))
    plan = make_plan(header, [(survey, decision)], view.marks)
    return await with_times(backend, plan, (survey,)), decision
