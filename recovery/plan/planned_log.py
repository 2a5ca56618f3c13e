"""What another leader lacks of the log that a plan chose."""

from __future__ import annotations

from recovery.loss import count, union, without
from recovery.model import Lineage, ReplicaLog, Survey, Unknown, Why
from recovery.plan.values import PlanCandidate, PlanRow


def lost_of_planned_log(row: PlanRow, survey: Survey) -> int | Unknown:
    """The minimum number of offsets of the planned log that the current leader does not have. Computed from
    the leader's epoch lineage where it reaches down to the chosen log's last epoch. Otherwise from the plan,
    if this is the first leader since the plan was made: without a leader its log could grow, and lost nothing.
    """
    state, chosen = survey.state, row.candidate(row.leader)
    if chosen is None or chosen.last_epoch is None:
        return Unknown(
            Why.NOT_ANSWERED, f"the plan does not hold the last epoch of broker {row.leader}'s log"
        )
    then = row.candidate(state.leader)
    log = survey.log(state.leader)
    if log is not None and isinstance(log.lineage, Lineage):
        older = [span for span in log.lineage.spans if span.epoch <= chosen.last_epoch]
        if older and older[-1].epoch == chosen.last_epoch:
            return max(0, chosen.log_end - older[-1].end)
        if older:
            # It holds no record of the chosen log's last epoch, and behind its older epochs only newer ones.
            return max(1, _planned_loss(then, chosen), chosen.log_end - older[-1].end)
        if lost := _lost_with_its_start(log, chosen):
            return lost
    if then is not None and state.leader_epoch == row.leader_epoch + 1:
        return _planned_loss(then, chosen)
    return Unknown(Why.NOT_ANSWERED, f"the log of broker {state.leader} is not known far enough down")


def emptied(row: PlanRow, survey: Survey) -> int:
    """How many offsets of the planned log the leader lacks because it holds no record that is older than the plan,
    as where its disk was replaced; 0 where it holds one, or that is not known.
    """
    chosen, log = row.candidate(row.leader), survey.log(survey.state.leader)
    if chosen is None or log is None or not isinstance(log.lineage, Lineage):
        return 0
    if any(span.epoch <= row.leader_epoch for span in log.lineage.spans):
        return 0
    return _lost_with_its_start(log, chosen)


def _lost_with_its_start(log: ReplicaLog, chosen: PlanCandidate) -> int:
    """Of a log without a record of the chosen log's epochs, which is known from its start on. Below its start,
    records may have been deleted since; 0: all that the chosen log held may have been.
    """
    assert isinstance(log.lineage, Lineage)
    if log.lineage.floor > log.log_start_offset:
        return 0
    return max(0, chosen.log_end - max(chosen.log_start, log.log_start_offset, 0))


def _planned_loss(elected: PlanCandidate | None, chosen: PlanCandidate) -> int:
    """What the chosen log holds and the elected one did not: the loss of one choice without that of the other."""
    if elected is None:
        return 0
    lost_either_way = (*chosen.loss.tail, *chosen.loss.head)
    return count(without(union((*elected.loss.tail, *elected.loss.head)), lost_either_way))
