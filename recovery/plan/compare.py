"""Whether a plan still holds (design: "The plan file", the fences).

A fence that moved makes its row stale, without exception: topic id, leader epoch, assignment (its order too),
no reassignment in progress, and for every candidate that answers the last record's epoch and the log end.

What may change and does no harm, because the controller bumps no leader epoch for it and no log moves: a
broker is fenced or unfenced, a replica leaves ELR or LastKnownELR (KIP-966: "Change of the ELR does not
require a leader epoch bump"), a log start or a high watermark rises, a candidate that was not chosen stops
answering (a log that nobody leads cannot grow meanwhile). The last two are told as notes. A better log than the
chosen one's that was silent or could not be elected, and now can be, makes the row stale: no reason is left to give
up what it holds. A leader epoch that did move means that somebody led in between, or that replicas were removed:
every log may be another.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from recovery.fences import state_changed
from recovery.loss import count, loss
from recovery.model import Lineage, Survey, TopicPartition, Unknown
from recovery.plan.make import standing_words
from recovery.plan.values import Plan, PlanRow
from recovery.ranking import Ranking


class Now(StrEnum):
    """What has become of a row."""

    TRUE = "still true"
    STALE = "stale"
    ONLINE = "already online"
    NOT_ELECTABLE = "not electable now"
    UNANSWERED = "did not answer now"


class Moved(StrEnum):
    """The fence that makes a row stale."""

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


class RowCheck(NamedTuple):
    """One row against the cluster as it is. ``fence`` is set where it is stale; ``notes`` change nothing."""

    tp: TopicPartition
    now: Now
    fence: Moved | None
    detail: str
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the row may be applied."""
        return self.now is Now.TRUE

    @property
    def interrupted(self) -> bool:
        """Whether a run that applied this plan was killed before it restored the assignment."""
        return self.fence is Moved.OUR_ORDER


def compare(plan: Plan, surveys: Iterable[Survey], cluster_id: str) -> tuple[RowCheck, ...]:
    """Every row of the plan against fresh ``surveys``, in the plan's order."""
    planned = plan.header.cluster_id
    if cluster_id != planned:
        detail = f"the plan is for cluster {planned}, this is {cluster_id}"
        return tuple(RowCheck(row.tp, Now.STALE, Moved.CLUSTER_ID, detail) for row in plan.rows)
    found = {survey.tp: survey for survey in surveys}
    return tuple(check_row(row, found.get(row.tp), plan.header.ranking) for row in plan.rows)


def check_row(row: PlanRow, survey: Survey | None, ranking: Ranking) -> RowCheck:
    """One row against its partition as it is; None: it was not found."""
    if survey is None:
        return _stale(row, Moved.PARTITION, "the partition does not exist or may not be seen")
    state = survey.state
    if state.topic_id != row.topic_id:
        return _stale(row, Moved.TOPIC_ID, "the topic was deleted and made again since the plan")
    if not state.offline:
        chosen = " as planned" if state.leader == row.leader else f", not by {row.leader} as planned"
        return RowCheck(row.tp, Now.ONLINE, None, f"led by {state.leader}{chosen}")
    moved = (
        _moved_state(row, survey)
        or _moved_log(row, survey)
        or _better_log(row, survey, ranking)
        or _better_log_electable(row, survey, ranking)
        or _larger_loss(row, survey)
    )
    if moved is not None:
        return moved
    return _electable_now(row, survey)


def _stale(row: PlanRow, fence: Moved, detail: str) -> RowCheck:
    return RowCheck(row.tp, Now.STALE, fence, detail)


def _moved_state(row: PlanRow, survey: Survey) -> RowCheck | None:
    state = survey.state
    if isinstance(survey.reassigning, Unknown):
        detail = f"whether a reassignment is in progress is not known ({survey.reassigning})"
        return _stale(row, Moved.REASSIGNMENT, detail)
    if survey.reassigning:
        return _stale(row, Moved.REASSIGNMENT, "a reassignment is in progress")
    changed = state_changed(row.fence, state)
    if changed is None:
        return None
    if state.replicas == row.replicas:
        return _stale(row, Moved.LEADER_EPOCH, f"{changed}: somebody led in between")
    if state.replicas == row.order:
        interrupted = f"{changed}, the order that this plan writes: a run was interrupted, resume it"
        return _stale(row, Moved.OUR_ORDER, interrupted)
    return _stale(row, Moved.ASSIGNMENT, changed)


def _moved_log(row: PlanRow, survey: Survey) -> RowCheck | None:
    for candidate in row.candidates:
        log = survey.log(candidate.broker)
        if log is None:
            continue
        if log.log_end_offset != candidate.log_end:
            what = f"the log of broker {candidate.broker} ended at {candidate.log_end}"
            return _stale(row, Moved.CANDIDATE_LOG, f"{what}, now at {log.log_end_offset}")
        now = log.lineage.last_epoch if isinstance(log.lineage, Lineage) else None
        if now is not None and candidate.last_epoch is not None and now != candidate.last_epoch:
            what = f"the last record's epoch on broker {candidate.broker} was {candidate.last_epoch}"
            return _stale(row, Moved.CANDIDATE_LOG, f"{what}, now {now}")
    return None


def _better_log(row: PlanRow, survey: Survey, ranking: Ranking) -> RowCheck | None:
    """A replica that was silent when the choice was made, and whose log the choice would truncate."""
    chosen = row.chosen.key(ranking)
    for broker in row.silent:
        log = survey.log(broker)
        if log is None or chosen is None:
            continue
        if ranking is Ranking.SPECIFICATION:
            key = (log.leader_epoch, log.log_end_offset)
        elif isinstance(log.lineage, Lineage):
            key = (log.lineage.last_epoch, log.log_end_offset)
        else:
            continue
        if key > chosen:
            what = f"broker {broker} was silent when the plan was made and answers now with a better log"
            return _stale(row, Moved.BETTER_LOG, f"{what}: epoch {key[0]}, log end {key[1]}")
    return None


def _better_log_electable(row: PlanRow, survey: Survey, ranking: Ranking) -> RowCheck | None:
    """A better log that could not be elected when the choice was made, and can be now.

    Where a leader was designated by hand over a better one that could be elected, that was known and meant.
    """
    chosen = row.chosen.key(ranking)
    if chosen is None:
        return None
    better = [one for one in row.candidates if (key := one.key(ranking)) is not None and key > chosen]
    if any(one.electable for one in better):
        return None
    for one in better:
        replica = survey.replica(one.broker)
        if replica is not None and replica.electable:
            was = f"broker {one.broker} was {standing_words(one.standing)} when the plan was made"
            what = f"{was}, can be elected now"
            return _stale(row, Moved.BETTER_LOG, f"{what}, and has the better log")
    return None


def _larger_loss(row: PlanRow, survey: Survey) -> RowCheck | None:
    """The loss counted again: where the plan names an upper bound, a file that was edited must not get beyond it.

    Of the head nothing is said here: a log start may rise meanwhile, which is a note.
    """
    bound = row.loss.at_most
    if bound is None or survey.log(row.leader) is None:
        return None
    now = count(loss(survey, row.leader).tail)
    if now <= bound:
        return None
    return _stale(
        row, Moved.LOSS, f"electing broker {row.leader} loses at least {now}, and at most {bound} in the plan"
    )


def _electable_now(row: PlanRow, survey: Survey) -> RowCheck:
    chosen = row.chosen
    replica = survey.replica(chosen.broker)
    if replica is None or not replica.electable:
        standing = "gone" if replica is None else standing_words(replica.standing)
        return RowCheck(row.tp, Now.NOT_ELECTABLE, None, f"broker {chosen.broker} is {standing}")
    if isinstance(replica.log, Unknown):
        return RowCheck(row.tp, Now.UNANSWERED, None, f"broker {chosen.broker}: {replica.log}")
    if chosen.last_epoch is not None and isinstance(replica.log.lineage, Unknown):
        detail = f"broker {chosen.broker} did not tell its last record's epoch: {replica.log.lineage}"
        return RowCheck(row.tp, Now.UNANSWERED, None, detail)
    return RowCheck(row.tp, Now.TRUE, None, "", tuple(_notes(row, survey)))


def _notes(row: PlanRow, survey: Survey) -> list[str]:
    notes = []
    for candidate in row.candidates:
        log = survey.log(candidate.broker)
        if log is None:
            notes.append(f"broker {candidate.broker} does not answer now")
        elif candidate.broker == row.leader and log.log_start_offset > candidate.log_start >= 0:
            rise = f"rose from {candidate.log_start} to {log.log_start_offset}"
            notes.append(f"the log start of broker {candidate.broker} {rise}: more of the head may be lost")
    then, now = row.successor, _successor_now(row, survey)
    if then is not None and now != then.broker:
        whom = "nobody" if now is None else f"broker {now}"
        notes.append(f"should {row.leader} drop out, {whom} would lead, and not {then.broker} as planned")
    return notes


def _successor_now(row: PlanRow, survey: Survey) -> int | None:
    replicas = {replica.broker: replica for replica in survey.replicas}
    return next((b for b in row.order[1:] if b in replicas and replicas[b].electable), None)
