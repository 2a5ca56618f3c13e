"""Rows of a plan for tests that hand them straight to a backend."""

from __future__ import annotations

from collections.abc import Mapping

from recovery.loss import Loss, loss
from recovery.model import Lineage, PartitionState, ReplicaLog, Standing, Survey
from recovery.plan.values import PlanCandidate, PlanRow, Silent
from recovery.strategy import clean_electors

NOTHING = Loss(0, None, (), (), ())


def row_of(survey: Survey, order: tuple[int, ...]) -> PlanRow:
    """The election of ``order``'s first, whoever that is, with what was seen of the partition."""
    state = survey.state
    answered = [replica for replica in survey.replicas if isinstance(replica.log, ReplicaLog)]
    silent = [replica for replica in survey.replicas if not isinstance(replica.log, ReplicaLog)]
    return PlanRow(
        state.tp,
        state.topic_id,
        state.leader_epoch,
        state.replicas,
        order,
        tuple(_candidate(survey, replica.broker) for replica in answered),
        tuple(Silent(replica.broker, replica.standing) for replica in silent),
        "as the test says",
        clean_electors=clean_electors(survey),
    )


def _candidate(survey: Survey, broker: int) -> PlanCandidate:
    replica, log = survey.replica(broker), survey.log(broker)
    assert replica is not None and log is not None
    epoch = log.lineage.last_epoch if isinstance(log.lineage, Lineage) else None
    return PlanCandidate(
        broker,
        replica.standing,
        log.leader_epoch,
        epoch,
        log.log_end_offset,
        log.log_start_offset,
        log.high_watermark,
        loss(survey, broker),
    )


def row(
    state: PartitionState,
    order: tuple[int, ...],
    logs: Mapping[int, tuple[int | None, int]],
    *,
    standings: Mapping[int, Standing] | None = None,
) -> PlanRow:
    """A row from the (last record's epoch, log end) of each replica that answered.

    Those are electable, and the silent ones fenced, unless told otherwise.
    """
    found = standings or {}
    candidates = [
        PlanCandidate(
            broker, found.get(broker, Standing.ELECTABLE), state.leader_epoch, epoch, end, -1, -1, NOTHING
        )
        for broker, (epoch, end) in logs.items()
    ]
    silent = [Silent(b, found.get(b, Standing.FENCED)) for b in state.replicas if b not in logs]
    return PlanRow(
        state.tp,
        state.topic_id,
        state.leader_epoch,
        state.replicas,
        order,
        tuple(candidates),
        tuple(silent),
        "as the test says",
        clean_electors=(*state.isr, *(state.elr or ())),
    )


def with_log(row: PlanRow, broker: int, *, epoch: int = 0, end: int = 0) -> PlanRow:
    """The row with the planned log of ``broker`` moved by so much."""
    return row._replace(
        candidates=tuple(
            one._replace(last_epoch=(one.last_epoch or 0) + epoch, log_end=one.log_end + end)
            if one.broker == broker
            else one
            for one in row.candidates
        )
    )
