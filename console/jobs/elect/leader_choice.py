"""The choice of a leader for every surveyed partition, and the plan made of these choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from backends.base.metadata_log import MetadataLogSource
from backends.base.protocol import Backend
from backends.metadata_log.copied_log import CopiedMetadataLog
from console.reading.cluster_reading import ClusterReading
from console.reading.plan_comparison import elects_natively
from console.reading.read_cluster import with_verdicts
from console.reading.record_times import with_times
from console.reading.unread_disks import brokers_up, open_disks, states_of
from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.advice import Advice, AdviceKind, FirstStep, advise_decided, first_steps, read_first
from recovery.model import NO_LEADER, Survey, TopicPartition, Unknown, Why
from recovery.plan.importance import NO_TIERS, Importance
from recovery.plan.make import make_plan
from recovery.plan.values import Header, NotElected, Plan
from recovery.ranking import rank
from recovery.strategy import Decision, DecisionKind, Strategy, decide
from recovery.unread_disks import UnreadDisk, before_start
from recovery.wording.advice_text import (
    ACCEPT_LOSS,
    ACCEPT_UNCHECKED,
    starts_instead,
    steps_lines,
)


class LeaderChoice(NamedTuple):
    """One partition: its survey and the decision."""

    survey: Survey
    decision: Decision

    @property
    def tp(self) -> TopicPartition:
        return self.survey.tp


class NextChoice(NamedTuple):
    """How to go on where no leader was chosen: the ``strategy`` to plan by, and why, in one line.
    ``accept_unchecked``: by what was not checked.
    """

    why: str
    strategy: Strategy
    accept_unchecked: bool = False


@dataclass(frozen=True, slots=True)
class Choices:
    """A reading with the choice for each of its partitions, the most important first, and the plan made of them.

    ``steps`` are what to do first, whatever strategy the plan was made by. ``native``: the cluster elects
    designated leaders itself; asked only where a row has a successor. ``notes`` belong to the question, one line
    each.
    """

    reading: ClusterReading
    rows: tuple[LeaderChoice, ...]
    plan: Plan
    steps: tuple[FirstStep, ...]
    native: bool = False
    notes: tuple[str, ...] = ()
    recorded: tuple[UnreadDisk, ...] = ()

    @property
    def counts(self) -> Mapping[DecisionKind, int]:
        return Counter(row.decision.verdict for row in self.rows)

    @property
    def awaited(self) -> tuple[int, ...]:
        """The brokers that can still change a choice: they do not answer, or have the better log and cannot be
        elected yet. Not where the chosen leader is proved to lose nothing that was acknowledged.
        """
        brokers: set[int] = set()
        ranking = self.plan.header.ranking
        for survey, decision in self.rows:
            if not survey.state.offline or _settled(decision, self.reading.verdicts.get(survey.tp)):
                continue
            brokers.update(decision.waits_for)
            ranked = rank(survey, ranking)
            best = () if isinstance(ranked, Unknown) else ranked[:1]
            brokers.update(one.broker for one in best if not one.electable)
            for replica in survey.replicas:
                if isinstance(replica.log, Unknown) and replica.log.why is Why.NOT_ANSWERED:
                    brokers.add(replica.broker)
        return tuple(sorted(brokers))

    @property
    def instead(self) -> tuple[str, ...]:
        """What keeps more than the elections of the plan, a sentence each."""
        elected = {row.tp for row in self.plan.rows}
        advised = _advised((row for row in self.rows if row.tp in elected), self.plan.header)
        return starts_instead(advised, self.steps)

    @property
    def compares(self) -> bool:
        """Whether a partition has two branches of which no choice keeps both."""
        return any(step.advice.kind is AdviceKind.COMPARE for step in self.steps)

    @property
    def next_choice(self) -> NextChoice | None:
        """How to go on where this strategy elects nobody; None: a leader is chosen, nothing is
        offline, or the reading is old."""
        chosen = self.plan.header.strategy
        if self.plan.rows or self.reading.stale or not any(row.survey.state.offline for row in self.rows):
            return None
        if chosen is not Strategy.BALANCED and self._elects(Strategy.BALANCED):
            return NextChoice(
                "strategy balanced elects now; what it rests on stands above:", Strategy.BALANCED
            )
        if any(row.decision.instead != NO_LEADER for row in self.rows):
            return NextChoice(ACCEPT_UNCHECKED, Strategy.BALANCED, accept_unchecked=True)
        if chosen is not Strategy.AGGRESSIVE and self._elects(Strategy.AGGRESSIVE):
            return NextChoice(ACCEPT_LOSS, Strategy.AGGRESSIVE)
        return NextChoice(
            "no strategy elects a leader now; plan again when what stands above is done:", chosen
        )

    def _elects(self, strategy: Strategy) -> bool:
        ranking, verdicts = self.plan.header.ranking, self.reading.verdicts
        return any(
            decide(row.survey, ranking, strategy, verdicts.get(row.tp)).verdict is DecisionKind.ELECT
            for row in self.rows
        )


def _settled(decision: Decision, judged: PartitionVerdicts | None) -> bool:
    verdict = None if judged is None else judged.candidates.get(decision.leader)
    return decision.verdict is DecisionKind.ELECT and verdict is not None and verdict.proved_none


def _decided(
    surveys: Iterable[Survey], header: Header, verdicts: Mapping[TopicPartition, PartitionVerdicts]
) -> Iterator[LeaderChoice]:
    """Partitions that are equal in all that is judged share one verdict, and so one decision."""
    shared: dict[int, Decision] = {}
    for survey in surveys:
        judged = verdicts.get(survey.tp)
        decision = None if judged is None else shared.get(id(judged))
        if decision is None:
            decision = decide(
                survey, header.ranking, header.strategy, judged, accept_unchecked=bool(header.accepted)
            )
            if judged is not None:
                shared[id(judged)] = decision
        yield LeaderChoice(survey, decision)


def _steps(
    rows: Iterable[LeaderChoice], header: Header, reading: ClusterReading, recorded: Iterable[UnreadDisk]
) -> tuple[FirstStep, ...]:
    """By the decisions of balanced, and before them the disks of other partitions."""
    read = read_first(reading.unread, recorded, brokers_up(reading.cluster))
    return first_steps([*read, *_advised(rows, header)])


def _advised(rows: Iterable[LeaderChoice], header: Header) -> Iterator[tuple[TopicPartition, Advice]]:
    """What to do first for each. Partitions that are equal in all that is judged share one verdict, and so one
    advice.
    """
    by_verdict: dict[int, Advice | None] = {}
    for row in rows:
        judged = row.decision.judged
        if judged is None:
            continue
        if id(judged) not in by_verdict:
            by_verdict[id(judged)] = advise_decided(
                row.survey,
                header.ranking,
                judged,
                header.strategy,
                row.decision,
                accept_unchecked=bool(header.accepted),
            )
        advice = by_verdict[id(judged)]
        if advice is not None:
            yield row.tp, advice


def _recorded_disks(reading: ClusterReading) -> tuple[UnreadDisk, ...]:
    """By the journal, of brokers that the offline partitions may wait for: to be read before these are started."""
    awaited = {replica.broker for s in reading.surveys if s.state.offline for replica in s.replicas}
    disks = [one for one in open_disks(reading.cluster.cluster_id).disks if one.broker in awaited]
    states = (*(survey.state for survey in reading.surveys), *reading.led_without)
    return before_start(states_of(disks, reading.cluster, states)) if disks else ()


def _in_ms(moments: Mapping[TopicPartition, float]) -> dict[TopicPartition, int]:
    return {tp: round(seconds * 1000) for tp, seconds in moments.items()}


async def choose(
    backend: Backend,
    reading: ClusterReading,
    header: Header,
    importance: Importance = NO_TIERS,
    *,
    copy: CopiedMetadataLog | None = None,
    source: MetadataLogSource | None = None,
) -> Choices:
    """Decides for every partition, by the ranking and the strategy of the header; the most important first.

    ``copy`` is used where the active controller's metadata log cannot be read. ``source`` may have read a part of
    it before.
    """
    reading = await with_verdicts(backend, reading, copy, now=header.made_at.timestamp(), source=source)
    rows = tuple(_decided(importance.ordered(reading.surveys), header, reading.verdicts))
    since, already = map(_in_ms, (reading.offline_times.since, reading.offline_times.already))
    plan = make_plan(header, rows, reading.topic_marks, since, already)
    missing = (NotElected(tp, DecisionKind.REFUSED, (), why) for tp, why in reading.selected.missing.items())
    plan = replace(plan, not_elected=(*plan.not_elected, *missing))
    recorded = _recorded_disks(reading)
    steps = _steps(rows, header, reading, recorded)
    if not reading.stale:  # without a quorum nobody can be elected
        plan = replace(plan, steps=tuple(steps_lines(steps)))
    native = await elects_natively(backend, plan)
    timed = await with_times(backend, plan, reading.surveys)
    return Choices(reading, rows, timed, steps, native, recorded=recorded)
