"""A partition with what is suggested for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.advice import Advice, FirstStep, advise_decided, first_steps
from recovery.loss import Loss, loss
from recovery.model import NO_EPOCH, PartitionState, Survey, TopicPartition, Unknown, Why
from recovery.ranking import Ranking
from recovery.strategy import Decision, DecisionKind, Strategy, best_electable, decide
from widgets.loss_tone import last_epoch

UNKNOWN_LEADER = -2
"""It has a leader: NO_LEADER would make it an offline partition."""
_NOT_ASKED = Unknown(Why.NOT_ANSWERED, "not asked")


class PartitionHealth(StrEnum):
    """How a partition fares, worst first."""

    OFFLINE = "OFFLINE"
    LEADER_UNKNOWN = "leader unknown"
    UNDER_MIN_ISR = "under min ISR"
    MAY_BE_UNDER = "may be under min ISR"
    UNDER_REPLICATED = "under-replicated"
    ONLINE = "online"


class PartitionRow(NamedTuple):
    """One partition. ``survey`` is None where its logs were not asked; then nothing is suggested.

    ``since``: when it was first seen in trouble, seconds since the epoch; None where that is not known. ``exact``:
    it is when the partition went offline, by the metadata log.
    ``now`` is the broker that could be elected at once (the suggested one, or the best there is while the
    suggestion is to wait or to choose), and ``loss`` what that loses; ``last_epoch`` is that of its log.
    ``advice`` is what to do first, None where it was not judged.
    ``leader_unknown`` says why its leader is not known although it has one; ``state`` then has only its name.
    """

    state: PartitionState
    survey: Survey | None
    min_isr: int | Unknown
    decision: Decision | None
    now: int | None
    loss: Loss | None
    last_epoch: int | None
    since: float | None
    leader_unknown: Unknown | None = None
    exact: bool = False
    advice: Advice | None = None

    @property
    def health(self) -> PartitionHealth:
        state = self.state
        if self.leader_unknown is not None:
            return PartitionHealth.LEADER_UNKNOWN
        if state.offline:
            return PartitionHealth.OFFLINE
        if isinstance(self.min_isr, int) and len(state.isr) < self.min_isr:
            return PartitionHealth.UNDER_MIN_ISR
        if len(state.isr) == len(state.replicas):
            return PartitionHealth.ONLINE
        return (
            PartitionHealth.UNDER_REPLICATED if self.unknown_min_isr is None else PartitionHealth.MAY_BE_UNDER
        )

    @property
    def unknown_min_isr(self) -> Unknown | None:
        """Why the min ISR is not known although it was asked for; None where it is known, or nobody asked."""
        return self.min_isr if isinstance(self.min_isr, Unknown) and self.min_isr != _NOT_ASKED else None

    @property
    def judged(self) -> PartitionVerdicts | None:
        """The verdicts that the decision rests on; None where nobody judged."""
        return None if self.decision is None else self.decision.judged

    @property
    def answered(self) -> int | None:
        """How many replicas answered with their log; None where nobody was asked."""
        if self.survey is None:
            return None
        return sum(1 for replica in self.survey.replicas if not isinstance(replica.log, Unknown))


def partition_row(
    survey: Survey,
    ranking: Ranking,
    strategy: Strategy,
    since: float | None,
    judged: PartitionVerdicts | None = None,
) -> PartitionRow:
    """The row of a surveyed partition: decides, and counts what the choice loses."""
    decision = decide(survey, ranking, strategy, judged)
    now = _electable_now(survey, ranking, decision)
    return PartitionRow(
        survey.state,
        survey,
        survey.min_isr,
        decision,
        now,
        None if now is None else loss(survey, now),
        None if now is None else last_epoch(survey.log(now)),
        since,
        advice=advise_decided(survey, ranking, judged, strategy, decision),
    )


def _electable_now(survey: Survey, ranking: Ranking, decision: Decision) -> int | None:
    if decision.verdict is DecisionKind.ELECT:
        return decision.leader
    if decision.verdict is DecisionKind.REFUSED:
        at_once = decide(survey, ranking, Strategy.AGGRESSIVE)  # which may refuse it too
        return at_once.leader if at_once.verdict is DecisionKind.ELECT else None
    if decision.verdict not in (DecisionKind.WAIT, DecisionKind.REPORT_ONLY):
        return None
    return best_electable(survey, ranking)


def bare_row(
    state: PartitionState, since: float | None = None, min_isr: int | Unknown = _NOT_ASKED
) -> PartitionRow:
    """The row of a partition whose logs were not asked."""
    return PartitionRow(state, None, min_isr, None, None, None, None, since)


def unjudged_row(survey: Survey, since: float | None) -> PartitionRow:
    """The row of an offline partition whose logs have answered, while what was acknowledged is not judged yet: what
    is suggested then may be the opposite.
    """
    return PartitionRow(survey.state, survey, survey.min_isr, None, None, None, None, since)


def leader_unknown_row(tp: TopicPartition, why: Unknown) -> PartitionRow:
    """The row of a partition that has a leader which the listener that was asked does not reach."""
    state = PartitionState(tp.topic, tp.partition, "", UNKNOWN_LEADER, NO_EPOCH, (), (), (), (), ())
    return bare_row(state)._replace(leader_unknown=why)


@dataclass(frozen=True, slots=True)
class PartitionHealthCounts:
    """``health``: how many partitions are in which state; ``steps``: what to do first for those
    that are offline; ``unknown_min_isr``: why the min ISR of how many is unknown.
    """

    health: Mapping[PartitionHealth, int] = field(default_factory=dict)
    steps: tuple[FirstStep, ...] = ()
    unknown_min_isr: Mapping[Unknown, int] = field(default_factory=dict)

    def count(self, health: PartitionHealth) -> int:
        return self.health.get(health, 0)


def count_partitions(rows: Iterable[PartitionRow]) -> PartitionHealthCounts:
    """Counts the rows; it may run on another thread."""
    online = 0
    health: Counter[PartitionHealth] = Counter()
    advised: list[tuple[TopicPartition, Advice]] = []
    unknown_min_isr: Counter[Unknown] = Counter()
    for row in rows:
        state = row.state
        # Nearly all are in order, and a named tuple's property costs more than all the rest.
        if row.survey is None and state.leader >= 0 and len(state.isr) == len(state.replicas):
            online += 1
            continue
        health[row.health] += 1
        if row.unknown_min_isr is not None:
            unknown_min_isr[row.unknown_min_isr] += 1
        if row.advice is not None:
            advised.append((state.tp, row.advice))
    health[PartitionHealth.ONLINE] += online
    return PartitionHealthCounts(dict(health), first_steps(advised), dict(unknown_min_isr))
