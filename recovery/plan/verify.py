"""Whether the elections of a plan had the planned result.

The right leader, at min ISR, and fully replicated are three different things: below min ISR the
high watermark stands still. And a right leader can have lost records in the moment between the last check and
the election: then its new epoch starts below the planned log end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from recovery.heal_plan import ReplicaMove
from recovery.model import (
    NO_LEADER,
    Lineage,
    PartitionState,
    ReplicaLog,
    Survey,
    TopicPartition,
    Unknown,
    Why,
)
from recovery.old_leaders import OldLeader, old_leaders
from recovery.plan.judgement import EMPTIED, lost_words
from recovery.plan.planned_log import emptied, lost_of_planned_log
from recovery.plan.values import BarePlan, BareRow, Plan, PlanCandidate, PlanRow
from recovery.wording.quantity_text import both
from recovery.wording.replica_text import MADE_AGAIN, still_writes_text


class Leading(StrEnum):
    """Who leads, measured against the plan. CLEAN: a member of ISR or ELR when the plan was made, whose log is not
    known to lack anything of the planned log. MOVED: a replica
    with all of the planned log, which took the leadership over after the election, as Kafka moves it to the
    preferred replica by itself (``auto.leader.rebalance.enable``).
    """

    RIGHT = "right"
    CLEAN = "clean"
    MOVED = "moved"
    OTHER = "other"
    OFFLINE = "offline"
    NOT_SEEN = "not seen"


_AS_PLANNED = (Leading.RIGHT, Leading.CLEAN, Leading.MOVED)


class Order(StrEnum):
    """The current assignment: in its original order, still in ours, or changed by somebody else. WITHOUT_KEPT: as
    it is to be until a log that was kept has been read; TO_ASSIGN: it was read, or waived.
    """

    REVERTED = "reverted"
    NOT_REVERTED = "not reverted"
    WITHOUT_KEPT = "without the brokers whose logs are kept"
    TO_ASSIGN = "without the brokers whose logs were kept"
    CHANGED = "changed"
    NOT_KNOWN = "not known"


class RowState(NamedTuple):
    """The state of one row after its election.

    ``usable``: ISR ≥ min ISR. ``gap`` counts the offsets below the leader's planned log end that are missing from
    its log now; above 0 is a failure. ``missing`` says what is not as it should be. ``lost``,
    for another leader only: how many offsets of the planned log it does not hold, at least. ``old_leaders`` have
    not heard of their successor: what they still take is lost when they do. ``min_isr``: by which it was judged,
    ``not_in_sync``: those of ``missing`` that follow from the ISR.
    """

    tp: TopicPartition
    leader: int
    leading: Leading
    usable: bool | Unknown
    replicated: bool
    order: Order
    gap: int | Unknown
    missing: tuple[str, ...]
    lost: int | Unknown | None = None
    old_leaders: tuple[OldLeader, ...] = ()
    min_isr: int | Unknown | None = None
    not_in_sync: tuple[str, ...] = ()

    def with_isr_of(self, now: PartitionState) -> RowState:
        """As it is once the ISR is another one under the same leader: that is known without a survey."""
        if self.min_isr is None or now.leader != self.leader:
            return self
        short = tuple(_not_in_sync(now, self.min_isr))
        return self._replace(
            usable=self.min_isr if isinstance(self.min_isr, Unknown) else len(now.isr) >= self.min_isr,
            replicated=set(now.isr) == set(now.replicas),
            missing=(*short, *(text for text in self.missing if text not in self.not_in_sync)),
            not_in_sync=short,
        )

    @property
    def as_planned(self) -> bool:
        """The plan accepts this leader, whatever its log lost and in whichever order the assignment is."""
        return self.leading in _AS_PLANNED

    @property
    def lost_offsets(self) -> bool:
        """The leader's log is known to lack offsets that the plan keeps."""
        return self.lost_count > 0

    @property
    def lost_count(self) -> int:
        """How many offsets that the plan keeps the leader's log is known to lack, at least."""
        return max((count for count in (self.gap, self.lost) if isinstance(count, int)), default=0)

    @property
    def good(self) -> bool:
        """The election came out as planned: nothing of ours is left to do."""
        reverted = self.order in (Order.REVERTED, Order.NOT_KNOWN, Order.WITHOUT_KEPT, Order.TO_ASSIGN)
        return self.as_planned and reverted and not self.lost_offsets

    @property
    def complete(self) -> bool:
        """Good, at min ISR, every replica in sync, no old leader that still writes, nothing left unknown."""
        gap_unknown = isinstance(self.gap, Unknown) and self.gap.why is not Why.NOT_OFFERED
        without_replicas = self.order in (Order.WITHOUT_KEPT, Order.TO_ASSIGN)
        whole = self.usable is True and self.replicated and not self.old_leaders and not without_replicas
        return self.good and whole and not gap_unknown


def verify(
    plan: Plan | BarePlan,
    surveys: Iterable[Survey],
    keeps: Mapping[TopicPartition, ReplicaMove] = MappingProxyType({}),
    done_with: Collection[TopicPartition] = (),
) -> tuple[RowState, ...]:
    """Every row of the plan against fresh ``surveys``, in the plan's order. ``keeps`` are moves that took silent
    brokers out of their assignments, so that their logs are kept; of ``done_with`` these logs were read, or waived.

    The surveys should go deep enough to show the new epoch's start (Depth.DIVERGENCE or FULL).
    """
    found = {survey.tp: survey for survey in surveys}
    return tuple(
        _row_state(row, found.get(row.tp), keeps.get(row.tp), done_with=row.tp in done_with)
        for row in plan.rows
    )


def depends_on_depth(state: RowState, survey: Survey) -> bool:
    """Whether something is not known that older epochs of the leader's log would tell."""
    log = survey.log(state.leader)
    if log is None or not isinstance(log.lineage, Lineage):
        return False
    open_ = isinstance(state.gap, Unknown) or isinstance(state.lost, Unknown)
    return open_ and log.lineage.floor > log.log_start_offset


def _row_state(
    row: PlanRow | BareRow, survey: Survey | None, keep: ReplicaMove | None, *, done_with: bool
) -> RowState:
    if survey is None or (isinstance(row, PlanRow) and survey.state.topic_id != row.topic_id):
        what = "the partition is not to be seen" if survey is None else MADE_AGAIN
        unseen = Unknown(Why.NOT_ANSWERED, what)
        return RowState(row.tp, NO_LEADER, Leading.NOT_SEEN, unseen, False, Order.NOT_KNOWN, unseen, (what,))
    leading = _leading(row, survey)
    lost = _lost(row, survey, leading)
    if leading is Leading.CLEAN and lost:
        leading = Leading.OTHER  # it returned without a part of its log
    later = isinstance(row, PlanRow) and survey.state.leader_epoch > row.leader_epoch + 1
    if later and leading in (Leading.CLEAN, Leading.OTHER) and _lacking(row, survey) == 0:
        leading = Leading.MOVED
    usable = _usable(survey)
    order = _order(row, survey, keep, done_with=done_with)
    # Of another replica's own branch the election was to leave the common part only: what a replica that took over
    # later lacks of its own old log is no loss.
    unknown = lost if later and leading is Leading.OTHER and isinstance(lost, Unknown) else None
    gap = 0 if leading is Leading.MOVED else unknown or _gap(row, survey)
    return RowState(
        row.tp,
        survey.state.leader,
        leading,
        usable,
        set(survey.state.isr) == set(survey.state.replicas),
        order,
        gap,
        (*_wrong_leader(row, survey, leading, lost), *_missing(row, survey, order, gap, lost)),
        lost,
        old_leaders(survey),
        survey.min_isr,
        tuple(_not_in_sync(survey.state, survey.min_isr)),
    )


def _leading(row: PlanRow | BareRow, survey: Survey) -> Leading:
    if survey.state.offline:
        return Leading.OFFLINE
    if survey.state.leader == row.leader:
        return Leading.RIGHT
    clean = isinstance(row, PlanRow) and survey.state.leader in row.clean_electors
    return Leading.CLEAN if clean else Leading.OTHER


def _lost(row: PlanRow | BareRow, survey: Survey, leading: Leading) -> int | Unknown | None:
    """None where the leader holds what it should, as far as its log tells."""
    if isinstance(row, BareRow) or leading in (Leading.RIGHT, Leading.OFFLINE):
        return None
    lost = _lacking(row, survey)
    return None if leading is Leading.CLEAN and (isinstance(lost, Unknown) or not lost) else lost


def _lacking(row: PlanRow | BareRow, survey: Survey) -> int | Unknown:
    """How many offsets of the planned log the leader does not hold, at least."""
    if isinstance(row, BareRow):
        return Unknown(Why.NOT_OFFERED, "a bare file has no preconditions")
    return emptied(row, survey) or lost_of_planned_log(row, survey)


def _usable(survey: Survey) -> bool | Unknown:
    if survey.state.offline:
        return False
    if isinstance(survey.min_isr, Unknown):
        return survey.min_isr
    return len(survey.state.isr) >= survey.min_isr


def _order(row: PlanRow | BareRow, survey: Survey, keep: ReplicaMove | None, *, done_with: bool) -> Order:
    if isinstance(row, BareRow):
        return Order.NOT_KNOWN
    replicas = survey.state.replicas
    if replicas == row.replicas:
        return Order.REVERTED
    if keep is not None and (keep.before, keep.after) == (row.replicas, replicas):
        return Order.TO_ASSIGN if done_with else Order.WITHOUT_KEPT
    return Order.NOT_REVERTED if replicas == row.order else Order.CHANGED


def _gap(row: PlanRow | BareRow, survey: Survey) -> int | Unknown:
    """How far the leader's log, as it is, falls short of the planned log end."""
    leader = survey.state.leader
    if isinstance(row, BareRow):
        return Unknown(Why.NOT_OFFERED, "a bare file has no preconditions")
    if survey.state.offline:
        return 0
    candidate, log = row.candidate(leader), survey.log(leader)
    if candidate is None:
        return Unknown(Why.NOT_ANSWERED, f"broker {leader} did not answer when the plan was made")
    if log is None:
        return Unknown(Why.NOT_ANSWERED, f"broker {leader} does not report its log")
    return _shortfall(candidate, log, row.leader_epoch)


def _shortfall(candidate: PlanCandidate, log: ReplicaLog, planned_epoch: int) -> int | Unknown:
    present_end = log.log_end_offset
    if isinstance(log.lineage, Unknown):
        return log.lineage if present_end >= candidate.log_end else candidate.log_end - present_end
    # Records of a later epoch were not there when the plan was made: where they begin, the old log ends.
    present_end = min(
        [present_end, *(span.start for span in log.lineage.spans if span.epoch > planned_epoch)]
    )
    if present_end >= candidate.log_end and log.lineage.floor > candidate.log_end:
        floor = log.lineage.floor
        return Unknown(Why.NOT_ANSWERED, f"broker {candidate.broker}'s log is known only from {floor} on")
    return max(0, candidate.log_end - present_end)


def _wrong_leader(
    row: PlanRow | BareRow, survey: Survey, leading: Leading, lost: int | Unknown | None
) -> Iterable[str]:
    if leading is Leading.OFFLINE:
        yield "no leader"
    elif leading is Leading.OTHER:
        yield f"led by {survey.state.leader}, not by {row.leader}"
    if lost:
        yield lost_words(lost)
    if leading is not Leading.OFFLINE and isinstance(row, PlanRow) and emptied(row, survey):
        yield EMPTIED


def _missing(
    row: PlanRow | BareRow, survey: Survey, order: Order, gap: int | Unknown, lost: int | Unknown | None
) -> Iterable[str]:
    state = survey.state
    if writing := old_leaders(survey):
        yield still_writes_text(writing, offline=state.offline)
    if isinstance(gap, int) and gap:
        yield f"the log of leader {state.leader} lost {gap} offsets that it had when the plan was made"
    elif isinstance(gap, Unknown) and isinstance(row, PlanRow) and not lost:
        yield f"whether leader {state.leader} kept its log is not known ({gap})"
    yield from _not_in_sync(state, survey.min_isr)
    if isinstance(row, PlanRow) and order is Order.NOT_REVERTED:
        yield f"assignment order is {list(state.replicas)}, not yet reverted to {list(row.replicas)}"
    elif isinstance(row, PlanRow) and order in (Order.WITHOUT_KEPT, Order.TO_ASSIGN):
        preserved = [broker for broker in row.replicas if broker not in state.replicas]
        read = "is kept: read it, then" if order is Order.WITHOUT_KEPT else "needs no reading any more:"
        yield f"the log of broker {both(preserved)} {read} assign the replica again"
    elif isinstance(row, PlanRow) and order is Order.CHANGED:
        yield f"assignment was {list(row.replicas)}, somebody made it {list(state.replicas)}"


def _not_in_sync(state: PartitionState, min_isr: int | Unknown) -> Iterable[str]:
    """What the ISR lacks."""
    if isinstance(min_isr, Unknown):
        yield f"min ISR is not known ({min_isr})"
    elif len(state.isr) < min_isr:
        yield f"ISR {len(state.isr)} of min ISR {min_isr}"
    behind = [broker for broker in state.replicas if broker not in state.isr]
    if behind:
        yield f"not in ISR: {', '.join(map(str, behind))}"


class RowOutcome(NamedTuple):
    """How a row's election ended, in the words of the command line."""

    good: bool
    word: str
    detail: str = ""
