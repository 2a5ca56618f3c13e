"""The judgement of a plan's row: may its election be sent, given the cluster as it is now?

One function for every path: the comparison of a plan, and the last check before an election is sent on live,
native and simulated clusters.

What makes a row stale, without exception: another topic id, leader epoch or assignment (its order too), a
reassignment in progress, a candidate's log that changed (last record's epoch, log end), and a better log that was
silent or could not be elected when the plan was made and now can be. And what shows that a log may have grown
although nobody was elected: a broker that is cut off from the controllers does not know that it was replaced, and
goes on acknowledging (:mod:`recovery.old_leaders`). So a row is stale where the plan does not know of such a
broker, and where the plan knew of it and it does not answer any more.

What may change and does no harm, because the controller bumps no leader epoch for it and no log moves: a
broker is fenced or unfenced, a replica leaves ELR or LastKnownELR (KIP-966: "Change of the ELR does not
require a leader epoch bump"), a log start or a high watermark rises, a candidate that was not chosen stops
answering (its log could not grow, as long as its broker did not act as leader). The last two are reported as notes.
A leader epoch that did move means that somebody led in between, or that replicas were removed: every log may be
another.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from recovery.assignment_order import blocked_by_last_known_leader, needs_reorder
from recovery.loss import count, loss
from recovery.model import NO_EPOCH, Lineage, PartitionState, Standing, Survey, TopicPartition, Unknown, Why
from recovery.old_leaders import growing_logs
from recovery.plan.plan_review import candidate_harm
from recovery.plan.planned_log import emptied, lost_of_planned_log
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking
from recovery.wording.replica_text import STANDING_WORDS, moving_unknown


class RowDecision(StrEnum):
    """What is to be done with a row now."""

    SEND = "can be sent"
    STALE = "stale"
    ALREADY_ONLINE = "already online"
    OTHER_LEADER = "other leader"
    TRY_AGAIN = "try again"
    NOT_POSSIBLE = "not possible here"


class Reason(StrEnum):
    """Why a row is judged as it is."""

    AS_PLANNED = "as planned"
    # Stale.
    CLUSTER_ID = "cluster id"
    PARTITION = "partition"
    TOPIC_ID = "topic id"
    REASSIGNMENT = "reassignment"
    ASSIGNMENT = "assignment"
    OUR_ORDER = "assignment in the order of this plan"
    LEADER_EPOCH = "leader epoch"
    CANDIDATE_LOG = "candidate log"
    BETTER_LOG = "better log"
    LOSS = "loss"
    STILL_WRITES = "an old leader still takes writes"
    # It has a leader.
    DESIGNATED_LEADER = "the designated leader leads"
    CLEAN_LEADER = "a member of ISR or ELR leads"
    UNPLANNED_LEADER = "a leader that was not planned"
    # Asking again may help.
    NOT_ELECTABLE = "not electable now"
    NO_ANSWER = "did not answer now"
    RETURNED_SILENT = "returned and does not report its log"
    NOT_RESCUED = "its rescue is not whole"
    STATE_UNKNOWN = "state not known"
    # Asking again does not help.
    NOT_KEPT = "a silent log cannot be kept"
    NOT_ALLOWED = "not allowed"
    NEVER_ANSWERED = "its log was never read"
    UNREGISTERED_BROKER = "broker not registered"
    LAST_KNOWN_LEADER = "blocked by the last-known leader"


OTHERS_AT_WORK = frozenset(
    (
        Reason.REASSIGNMENT,
        Reason.ASSIGNMENT,
        Reason.OUR_ORDER,
        Reason.LEADER_EPOCH,
        Reason.UNPLANNED_LEADER,
    )
)
"""What only the controller or another operator can have changed since the plan was made."""


class Judgement(NamedTuple):
    """One row against the cluster as it is. ``notes`` change nothing (:func:`notes`; a comparison adds them).

    ``lost``, for another leader only: how many offsets of the planned log are gone, at least.
    """

    tp: TopicPartition
    decision: RowDecision
    reason: Reason
    detail: str
    notes: tuple[str, ...] = ()
    lost: int | Unknown | None = None

    @property
    def holds(self) -> bool:
        """Whether the row may be applied."""
        return self.decision is RowDecision.SEND

    @property
    def others_at_work(self) -> bool:
        """Whether the row shows the traces of somebody else, who may still be at work on the cluster."""
        return self.reason in OTHERS_AT_WORK

    @property
    def interrupted(self) -> bool:
        """Whether a run that applied this plan was killed before it reverted the assignment."""
        return self.reason is Reason.OUR_ORDER


class ElectionMeans(NamedTuple):
    """How the cluster elects a designated leader.

    ``by_order``: by reordering the assignment; else by ElectLeaders v3. ``blocks_on_last_known``: controllers
    before 4.1 with the ELR feature on elect nobody while the sole LastKnownELR member is dead (KAFKA-19522).
    """

    by_order: bool = False
    blocks_on_last_known: bool = False


NATIVE = ElectionMeans()


def brokers_to_ask(row: PlanRow, state: PartitionState, standings: Mapping[int, Standing]) -> tuple[int, ...]:
    """Whose logs a judgement needs: who can be elected now, or reported its log when the plan was made.

    Of a partition that has a leader, the leader's only.
    """
    if not state.offline:
        return tuple(broker for broker in state.replicas if broker == state.leader)
    return tuple(
        broker
        for broker in state.replicas
        if standings[broker] is Standing.ELECTABLE or row.candidate(broker) is not None
    )


def judge(
    row: PlanRow,
    ranking: Ranking,
    now: Survey | Unknown | None,
    means: ElectionMeans = NATIVE,
    *,
    order_is_ours: bool = False,
) -> Judgement:
    """The row against its partition as it is: ``now`` is None where the partition does not exist.

    ``order_is_ours``: this run has written the election's order, so the assignment may stand in it.
    """
    if now is None:
        return _stale(row, Reason.PARTITION, "the partition does not exist or may not be seen")
    if isinstance(now, Unknown):
        return _unknown(row, now, Reason.STATE_UNKNOWN, f"its state could not be read: {now}")
    state = now.state
    if state.topic_id != row.topic_id:
        what = f"the topic was deleted and created again since the plan (id {state.topic_id}, was {row.topic_id})"
        return _stale(row, Reason.TOPIC_ID, what)
    if not state.offline:
        return judge_leader(row, now)
    return (
        _changed_state(row, now, order_is_ours)
        or _changed_log(row, now)
        or _still_writes(row, now)
        or _better_log_of_silent(row, now, ranking)
        or _better_log_electable(row, now, ranking)
        or _larger_loss(row, now)
        or _not_electable(row, now)
        or _returned_silent(row, now)
        or _not_possible(row, now, means)
        or Judgement(row.tp, RowDecision.SEND, Reason.AS_PLANNED, "")
    )


def judge_leader(row: PlanRow, now: Survey) -> Judgement:
    """A row whose partition has a leader: the right one, one that was elected without loss, or another."""
    leader = now.state.leader
    if leader == row.leader:
        detail = f"led by {leader} as planned"
        return Judgement(row.tp, RowDecision.ALREADY_ONLINE, Reason.DESIGNATED_LEADER, detail)
    empty = emptied(row, now)
    lost = empty or lost_of_planned_log(row, now)
    # A member of ISR or ELR has every committed record where its host kept them: its log may have come back short.
    if leader in row.clean_electors and (isinstance(lost, Unknown) or not lost):
        detail = f"led by {leader}, not by {row.leader} as planned: {leader} was in ISR or ELR"
        return Judgement(row.tp, RowDecision.ALREADY_ONLINE, Reason.CLEAN_LEADER, detail)
    detail = f"{leader} leads, and not {row.leader} as planned; {lost_words(lost)}"
    if empty:
        detail += f": {EMPTIED}"
    return Judgement(row.tp, RowDecision.OTHER_LEADER, Reason.UNPLANNED_LEADER, detail, (), lost)


EMPTIED = "the leader has no record from before the plan, as after a replaced disk"


def lost_words(lost: int | Unknown) -> str:
    """What another leader lacks of the planned log, as part of a sentence."""
    if isinstance(lost, Unknown):
        return f"what is lost of the planned log is not known ({lost.detail})"
    if not lost:
        return "no offset of the planned log is known to be lost"
    offsets = "offset" if lost == 1 else "offsets"
    return f"at least {lost:,} {offsets} of the planned log are cut off"


def _stale(row: PlanRow, reason: Reason, detail: str) -> Judgement:
    return Judgement(row.tp, RowDecision.STALE, reason, detail)


def _unknown(row: PlanRow, why: Unknown, reason: Reason, detail: str) -> Judgement:
    """Asking again cannot help where the caller lacks a permission or the cluster a call."""
    if why.why in (Why.NOT_ALLOWED, Why.NOT_OFFERED):
        return Judgement(row.tp, RowDecision.NOT_POSSIBLE, Reason.NOT_ALLOWED, detail)
    return Judgement(row.tp, RowDecision.TRY_AGAIN, reason, detail)


def _changed_state(row: PlanRow, now: Survey, order_is_ours: bool) -> Judgement | None:
    state = now.state
    if isinstance(now.reassigning, Unknown):
        detail = moving_unknown(now.reassigning)
        return _unknown(row, now.reassigning, Reason.STATE_UNKNOWN, detail)
    if now.reassigning:
        return _stale(row, Reason.REASSIGNMENT, "a reassignment is in progress: somebody else is at work")
    if state.replicas != row.replicas and not (order_is_ours and state.replicas == row.order):
        return _changed_assignment(row, state)
    if state.leader_epoch != row.leader_epoch:
        what = f"the leader epoch is {state.leader_epoch}, was {row.leader_epoch}: somebody led in between"
        return _stale(row, Reason.LEADER_EPOCH, what)
    return None


def _changed_assignment(row: PlanRow, state: PartitionState) -> Judgement:
    now, before = list(state.replicas), list(row.replicas)
    if state.replicas == row.order:
        what = (
            f"the assignment is {now}, the order that this plan writes; it was {before}: a run was interrupted,"
            " resume it, or another run is at work"
        )
        return _stale(row, Reason.OUR_ORDER, what)
    what = f"the assignment is {now}, was {before}: somebody else is at work"
    return _stale(row, Reason.ASSIGNMENT, what)


def _changed_log(row: PlanRow, now: Survey) -> Judgement | None:
    for candidate in row.candidates:
        log = now.log(candidate.broker)
        if log is None:
            continue
        if log.log_end_offset != candidate.log_end:
            what = f"the log of broker {candidate.broker} ended at {candidate.log_end:,}"
            return _stale(row, Reason.CANDIDATE_LOG, f"{what}, now at {log.log_end_offset:,}")
        last = log.lineage.last_epoch if isinstance(log.lineage, Lineage) else None
        if last is not None and candidate.last_epoch is not None and last != candidate.last_epoch:
            before, after = (
                ("none" if epoch == NO_EPOCH else epoch) for epoch in (candidate.last_epoch, last)
            )
            what = f"the last record's epoch on broker {candidate.broker} was {before}"
            return _stale(row, Reason.CANDIDATE_LOG, f"{what}, now {after}")
    return None


def _still_writes(row: PlanRow, now: Survey) -> Judgement | None:
    """A log that may have grown since the plan was made, or may grow without that the plan says so."""
    growing = growing_logs(now)
    for broker in growing:
        planned = row.candidate(broker)
        if broker != row.leader and (planned is None or not planned.still_writes):
            what = "may still take writes, which this election cuts off; the plan does not know of them"
            return _stale(row, Reason.STILL_WRITES, f"broker {broker} {what}")
    for candidate in row.candidates:
        if candidate.still_writes and now.log(candidate.broker) is None:
            what = f"broker {candidate.broker} took writes when the plan was made, and does not answer now"
            return _stale(row, Reason.STILL_WRITES, f"{what}: its log may have grown")
    return None


def _better_log_of_silent(row: PlanRow, now: Survey, ranking: Ranking) -> Judgement | None:
    """A replica that was silent when the choice was made, and whose log the choice would truncate."""
    planned = row.candidate(row.leader)
    chosen = None if planned is None else planned.key(ranking)
    for broker in row.silent:
        log = now.log(broker)
        if log is None or chosen is None:
            continue
        if ranking is Ranking.SPECIFICATION:
            key = (log.leader_epoch, log.log_end_offset)
        elif isinstance(log.lineage, Lineage):
            key = (log.lineage.last_epoch, log.log_end_offset)
        else:
            continue
        if key > chosen:
            what = f"broker {broker} did not answer when the plan was made, and now answers with a better log"
            return _stale(row, Reason.BETTER_LOG, f"{what}: epoch {key[0]}, log end {key[1]:,}")
    return None


def _better_log_electable(row: PlanRow, now: Survey, ranking: Ranking) -> Judgement | None:
    """A better log that could not be elected when the choice was made, and can be now.

    Where a leader was designated by hand over a better one that could be elected, that was known and meant.
    """
    planned = row.candidate(row.leader)
    chosen = None if planned is None else planned.key(ranking)
    if chosen is None:
        return None
    better = [one for one in row.candidates if (key := one.key(ranking)) is not None and key > chosen]
    if any(one.electable for one in better):
        return None
    for one in better:
        replica = now.replica(one.broker)
        if replica is not None and replica.electable:
            was = f"broker {one.broker} was {STANDING_WORDS[one.standing]} when the plan was made"
            what = f"{was}, can be elected now"
            return _stale(row, Reason.BETTER_LOG, f"{what}, and has the better log")
    return None


def _larger_loss(row: PlanRow, now: Survey) -> Judgement | None:
    """The loss counted again: where the plan names an upper bound, a file that was edited must not get beyond it.

    Of the head nothing is said here: a log start may rise meanwhile, which is a note.
    """
    planned = row.candidate(row.leader)
    bound = None if planned is None else planned.loss.at_most
    if planned is None or bound is None or now.log(row.leader) is None:
        return None
    bound -= planned.loss.compacted or 0
    found = count(loss(now, row.leader).tail)
    if found <= bound:
        return None
    what = f"electing broker {row.leader} loses at least {found:,}, and at most {bound:,} in the plan"
    return _stale(row, Reason.LOSS, what)


def _not_electable(row: PlanRow, now: Survey) -> Judgement | None:
    """The chosen one cannot be elected now, or does not report its log."""
    leader, planned = row.leader, row.candidate(row.leader)
    replica = now.replica(leader)
    if replica is None or not replica.electable:
        standing = "gone" if replica is None else STANDING_WORDS[replica.standing]
        detail = f"broker {leader} is {standing}"
        return Judgement(row.tp, RowDecision.TRY_AGAIN, Reason.NOT_ELECTABLE, detail)
    if planned is None:
        detail = f"broker {leader} did not report its log when the plan was made"
        return Judgement(row.tp, RowDecision.NOT_POSSIBLE, Reason.NEVER_ANSWERED, detail)
    if isinstance(replica.log, Unknown):
        return _unknown(row, replica.log, Reason.NO_ANSWER, f"broker {leader}: {replica.log}")
    lineage = replica.log.lineage
    if planned.last_epoch is not None and isinstance(lineage, Unknown):
        detail = f"broker {leader} did not report its last record's epoch: {lineage}"
        return _unknown(row, lineage, Reason.NO_ANSWER, detail)
    return None


def _returned_silent(row: PlanRow, now: Survey) -> Judgement | None:
    """A replica whose log nobody knows could not be elected when the plan was made, and can be now."""
    for broker, standing in row.unanswered:
        replica = now.replica(broker)
        if standing is Standing.ELECTABLE or replica is None or not replica.electable:
            continue
        if isinstance(replica.log, Unknown):
            what = f"broker {broker} was {STANDING_WORDS[standing]} when the plan was made"
            detail = f"{what}, can be elected now, and does not report its log: {replica.log}"
            return Judgement(row.tp, RowDecision.TRY_AGAIN, Reason.RETURNED_SILENT, detail)
    return None


def _not_possible(row: PlanRow, now: Survey, means: ElectionMeans) -> Judgement | None:
    """What keeps an election by the order of the assignment from electing the chosen one."""
    if not means.by_order:
        return None
    standings = {replica.broker: replica.standing for replica in now.replicas}
    missing = [broker for broker, standing in standings.items() if standing is Standing.UNREGISTERED]
    if missing and needs_reorder(now.state.replicas, row.order, standings):
        detail = f"the assignment cannot be reordered: broker {missing[0]} is not registered"
        detail += _first_electable(row, now.state.replicas, standings)
        return Judgement(row.tp, RowDecision.NOT_POSSIBLE, Reason.UNREGISTERED_BROKER, detail)
    member = blocked_by_last_known_leader(now.state, standings) if means.blocks_on_last_known else None
    if member is None:
        return None
    detail = (
        f"this release elects only {member}, the dead last-known leader (KAFKA-19522, fixed in 4.1):"
        f" bring {member} back, or upgrade the controllers"
    )
    return Judgement(row.tp, RowDecision.NOT_POSSIBLE, Reason.LAST_KNOWN_LEADER, detail)


def _first_electable(row: PlanRow, replicas: tuple[int, ...], standings: Mapping[int, Standing]) -> str:
    """Whom an election without another order elects, and what that loses, as the end of a sentence."""
    first = next((broker for broker in replicas if standings.get(broker) is Standing.ELECTABLE), None)
    if first is None:
        return ""
    candidate = row.candidate(first)
    harm = "nobody knows what" if candidate is None else candidate_harm(candidate)
    return f"; an unclean election elects {first}, which stands first and loses {harm}"
