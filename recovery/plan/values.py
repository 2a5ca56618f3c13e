"""The plan's values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from recovery.acknowledged.verdict import Verdict
from recovery.assignment_order import WrittenOrder
from recovery.groups.offset_judgement import LastReadPlace
from recovery.loss import Loss
from recovery.model import NO_LEADER, Standing, TopicPartition
from recovery.plan.topic_marks import Mark
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy

FORMAT_VERSION = 2
"""Of a new plan. Version 1 had neither unchecked and doubtful verdicts of ``none`` nor ``acksAll``."""

# A part of the format: another text would be another digest for the same plan.
WARNING = (
    "Released Kafka tools ignore designatedLeader: kafka-leader-election --election-type unclean elects the"
    " first live replica, whatever this file says. Apply it with: ktriage apply"
)


class PlanError(ValueError):
    """A plan that cannot be read, made or changed as asked. The message is one line for a person."""


_UNKNOWN = Loss(0, None, (), (), ())


@dataclass(frozen=True, slots=True)
class Header:
    """Who made a plan, when, and for which cluster. ``made_at`` is aware, in UTC; identifiers and time are
    handed in. ``accepted``: why somebody takes it that conditions hold which were not checked; "": nobody does.
    """

    plan_id: str
    cluster_id: str
    made_at: datetime
    made_by: str
    tool_version: str
    ranking: Ranking
    strategy: Strategy
    accepted: str = ""


class PlanCandidate(NamedTuple):
    """A replica that answered when the plan was made.

    ``last_epoch`` (of the last record, -1 an empty log, None where the lineage could not be had) and
    ``log_end`` are its preconditions. ``leader_epoch`` is the partition's as that broker knew it. ``log_start`` and
    ``high_watermark`` are -1 where they were not had. ``loss`` is what electing this replica destroys.
    ``verdict``: what it loses of the acknowledged records; None: nobody judged.
    ``disk_read_ms`` as in :class:`recovery.model.Replica`: such a candidate cannot be elected. ``still_writes``:
    its log could grow although the controller knew no such leader (:func:`recovery.old_leaders.growing_logs`).
    """

    broker: int
    standing: Standing
    leader_epoch: int
    last_epoch: int | None
    log_end: int
    log_start: int
    high_watermark: int
    loss: Loss
    disk_read_ms: int | None = None
    verdict: Verdict | None = None
    still_writes: bool = False

    @property
    def electable(self) -> bool:
        return self.standing is Standing.ELECTABLE

    def key(self, ranking: Ranking) -> tuple[int, int] | None:
        """What ranks it (:mod:`recovery.ranking`), or None where ``last-record`` has no epoch to compare."""
        if ranking is Ranking.SPECIFICATION:
            return self.leader_epoch, self.log_end
        return None if self.last_epoch is None else (self.last_epoch, self.log_end)


class Silent(NamedTuple):
    """A replica that did not answer; the controller may still elect it."""

    broker: int
    standing: Standing


class Successor(NamedTuple):
    """Who may be elected instead of the chosen one, and what that loses (unknown where it was silent).

    ``standing`` other than electable: it stands first and cannot be put behind the chosen one, and is elected
    if it is back by then.
    """

    broker: int
    loss: Loss
    standing: Standing = Standing.ELECTABLE


class PlanRow(NamedTuple):
    """One designated election, with its preconditions: what must still be true when it is sent.

    ``replicas`` is the assignment to revert, ``order`` the assignment to elect with: the chosen
    leader first, then by rank, those that did not answer last. ``candidates`` are best first; every other
    replica is in ``unanswered``, in assignment order.
    ``other_ranking_leader`` is whom the other ranking would choose, None where both agree. ``clean_electors`` are
    the members of ISR and ELR: any of them that leads was elected without an unclean election.
    ``offline_since_ms`` since 1970, from the metadata log; None: not known. ``offline_already_ms``: of such a row,
    when the metadata log began and the partition had no leader already; None: that is not known either.
    """

    tp: TopicPartition
    topic_id: str
    leader_epoch: int
    replicas: tuple[int, ...]
    order: tuple[int, ...]
    candidates: tuple[PlanCandidate, ...]
    unanswered: tuple[Silent, ...]
    reason: str
    marks: tuple[Mark, ...] = ()
    other_ranking_leader: int | None = None
    clean_electors: tuple[int, ...] = ()
    offline_since_ms: int | None = None
    offline_already_ms: int | None = None

    @property
    def leader(self) -> int:
        return self.order[0]

    @property
    def chosen(self) -> PlanCandidate:
        chosen = self.candidate(self.order[0])
        assert chosen is not None  # a plan elects nobody else
        return chosen

    @property
    def loss(self) -> Loss:
        """What this row destroys when it goes as planned."""
        return self.chosen.loss

    @property
    def lossless(self) -> bool:
        """Whether nothing is lost for certain, by the logs that answered and by the verdict, if any."""
        verdict = self.chosen.verdict
        return self.loss.none and (verdict is None or verdict.proved_none)

    @property
    def order_is_fixed(self) -> bool:
        """Whether Kafka refuses to write another order: a replica's broker is not registered."""
        unregistered = Standing.UNREGISTERED
        return any(silent.standing is unregistered for silent in self.unanswered) or any(
            candidate.standing is unregistered for candidate in self.candidates
        )

    @property
    def successors(self) -> tuple[Successor, ...]:
        """Who may be elected instead of the chosen one, in Kafka's order.

        The next in the order that can be elected, if the chosen one drops out; a broker that only we cannot reach
        is elected like any other. Where no order can be written the assignment decides: a replica that stands
        before the chosen one is elected first as soon as it can be, although the chosen one is alive.
        """
        if not self.order_is_fixed:
            return tuple(self._next_electable(self.order[1:]))
        place = self.replicas.index(self.leader)
        standings = self.standings
        ahead = [b for b in self.replicas[:place] if standings[b] is not Standing.UNREGISTERED]
        first = [Successor(b, self._loss_of(b), standings[b]) for b in ahead]
        return (*first, *self._next_electable(self.replicas[place + 1 :]))

    @property
    def successor(self) -> Successor | None:
        """The first of those that may be elected instead of the chosen one."""
        return next(iter(self.successors), None)

    def _next_electable(self, brokers: tuple[int, ...]) -> Iterator[Successor]:
        """The first of ``brokers`` that can be elected; nothing where none can be."""
        for broker in brokers:
            candidate = self.candidate(broker)
            standing = self.standings[broker] if candidate is None else candidate.standing
            if standing is Standing.ELECTABLE:
                yield Successor(broker, self._loss_of(broker))
                return

    def _loss_of(self, broker: int) -> Loss:
        candidate = self.candidate(broker)
        return _UNKNOWN if candidate is None else candidate.loss

    @property
    def standings(self) -> dict[int, Standing]:
        """Each replica as the controller saw it when the plan was made."""
        reported = {candidate.broker: candidate.standing for candidate in self.candidates}
        return reported | dict(self.unanswered)

    @property
    def silent(self) -> tuple[int, ...]:
        """The replicas that did not answer, in assignment order."""
        return tuple(silent.broker for silent in self.unanswered)

    @property
    def written_order(self) -> WrittenOrder:
        """The assignment to revert if the order was written for the election."""
        return WrittenOrder(self.tp, self.topic_id, self.replicas, self.order)

    def candidate(self, broker: int) -> PlanCandidate | None:
        """The candidate on ``broker``, or None where that broker has no replica or did not answer."""
        for candidate in self.candidates:  # as Survey.replica
            if candidate.broker == broker:
                return candidate
        return None


class NotElected(NamedTuple):
    """A partition for which nobody is to be elected, and why; ``leader`` is set where it is online.
    ``offline_since_ms`` and ``offline_already_ms`` as in :class:`PlanRow`.
    """

    tp: TopicPartition
    verdict: DecisionKind
    waits_for: tuple[int, ...]
    reason: str
    leader: int = NO_LEADER
    offline_since_ms: int | None = None
    offline_already_ms: int | None = None


class AffectedGroup(NamedTuple):
    """A consumer group that the elections of a plan affect, with its committed offset when the plan was made.

    ``epoch`` is NO_EPOCH where it committed none. ``place`` and ``go_back_to`` (None: not known) are for the log of
    ``leader``.
    """

    tp: TopicPartition
    group: str
    offset: int
    epoch: int
    place: LastReadPlace
    go_back_to: int | None
    leader: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The choice for every partition asked about. ``not_elected`` stands apart: no tool may elect it.

    ``groups`` are the consumer groups that its elections affect; ``groups_unread`` says, one line each, why there
    may be others.
    ``steps``: what to do first, in sentences, as they were when the plan was made.
    """

    header: Header
    rows: tuple[PlanRow, ...]
    not_elected: tuple[NotElected, ...] = ()
    groups: tuple[AffectedGroup, ...] = ()
    groups_unread: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()

    @property
    def affected(self) -> tuple[AffectedGroup, ...]:
        """The groups as the present choice affects them: without those that were judged for another leader."""
        leaders = {row.tp: row.leader for row in self.rows}
        return tuple(group for group in self.groups if leaders.get(group.tp) == group.leader)

    def row(self, tp: TopicPartition) -> PlanRow | None:
        """The row of that partition, or None where the plan elects nobody for it."""
        return next((row for row in self.rows if row.tp == tp), None)


class BareRow(NamedTuple):
    """A partition and its designated leader, and nothing to check them against."""

    tp: TopicPartition
    leader: int


@dataclass(frozen=True, slots=True)
class BarePlan:
    """The recovery tool's own output file (unclean-recovery-tool, ``--manual-recovery-output-file``)."""

    rows: tuple[BareRow, ...]
