"""Designated elections: the cluster's own where it has them (ElectLeaders v3), else reorder, elect, revert.

ElectLeaders UNCLEAN takes the first live replica in assignment order, and the same replicas in another order
are accepted on an offline partition at once. So
the chosen replica is put first, the rest by rank, the election is run, and the order is reverted.

AlterPartitionReassignments compares nothing: had the replica set changed meanwhile, the old one would start a
reassignment that deletes replicas. Hence every write is preceded by a read, and a changed assignment is not
written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from backends.base.answers import Election, Outcome
from backends.base.errors import BackendError
from backends.base.protocol import Progress, Recorder, Stop
from backends.live.elections.election_api import ElectionApi
from backends.live.elections.election_batch import ElectionBatch
from backends.live.elections.order_revert import revert_assignments
from backends.live.elections.sent_elections import SentElections
from recovery.assignment_order import WrittenOrder
from recovery.model import PartitionState, TopicPartition, Unknown
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking

BATCH = 1_000
"""Partitions in one ElectLeaders request (the recovery tool's specification, "Designated Leader Elections")."""

BACKOFF = 1.0
"""Seconds before a retry after a temporary failure."""


async def designate(
    api: ElectionApi,
    rows: Sequence[PlanRow],
    ranking: Ranking,
    recorder: Recorder,
    *,
    attempts: int,
    stop: Stop,
    progress: Progress | None = None,
) -> tuple[Election, ...]:
    """Elect the designated leaders batch by batch; one result a row, in the order given.

    Rows with a temporary failure are retried up to ``attempts`` times; every retry judges them again. Raises
    BackendError only if nothing at all was sent.
    """
    ended: dict[TopicPartition, Election] = {}
    waiting = list(rows)
    tell = None if progress is None else partial(progress, "electing")
    job = _DesignateJob(api, ranking, stop, tell, len(rows), SentElections(recorder))
    for attempt in range(attempts + 1):
        if attempt:
            await asyncio.sleep(BACKOFF)
        waiting = await _attempt(job, waiting, ended)
        if not waiting or stop:
            break
    for row in waiting:
        ended.setdefault(row.tp, Election(row.tp, Outcome.NOT_ATTEMPTED, -1, -1, "stopped before its turn"))
    return tuple(ended[row.tp] for row in rows)


class _DesignateJob(NamedTuple):
    """The state that all attempts share; ``tell`` is called with (finished rows, ``total`` rows)."""

    api: ElectionApi
    ranking: Ranking
    stop: Stop
    tell: Callable[[int, int], None] | None
    total: int
    sent: SentElections


async def _attempt(
    job: _DesignateJob, rows: Sequence[PlanRow], ended: dict[TopicPartition, Election]
) -> list[PlanRow]:
    """One attempt at each row; returns those that may be tried again, with their last failure in ``ended``."""
    again: list[PlanRow] = []
    for first in range(0, len(rows), BATCH):
        if job.stop:
            return [*again, *rows[first:]]
        batch = await _run_batch(job, rows[first : first + BATCH], ended)
        again.extend(row for row in batch.rows if row.tp in batch.retryable)
        if job.tell is not None:
            job.tell(len(ended) - len(again), job.total)
    return again


async def _run_batch(
    job: _DesignateJob, rows: Sequence[PlanRow], ended: dict[TopicPartition, Election]
) -> ElectionBatch:
    """One batch, by the cluster's own designated elections if it has them."""
    if await job.api.designates():
        from backends.live.elections.native_election import NativeBatch

        native = NativeBatch(job.api, rows, job.ranking, job.sent)
        reported = await native.run()
        if not native.unable:
            ended.update(reported)
            return native
    batch = ElectionBatch(job.api, rows, job.ranking, job.sent)
    ended.update(await batch.run())
    return batch


async def revert_orders(
    api: ElectionApi, rows: Sequence[WrittenOrder], recorder: Recorder
) -> tuple[Election, ...]:
    """Revert the assignment of rows whose current order is the written one or already the original one, and
    of no other row.
    """
    ended: dict[TopicPartition, Election] = {}
    for first in range(0, len(rows), BATCH):
        chunk = rows[first : first + BATCH]
        problems = await revert_assignments(api, chunk, recorder)
        try:
            states = await api.states([row.tp for row in chunk])
        except BackendError:
            states = {}
        for row in chunk:
            state = states.get(row.tp)
            ended[row.tp] = _reverted(row, state, problems.get(row.tp))
    return tuple(ended[row.tp] for row in rows)


def _reverted(row: WrittenOrder, state: PartitionState | Unknown | None, problem: str | None) -> Election:
    detail = problem or "nothing of ours stands any more"
    if not isinstance(state, PartitionState):
        return Election(row.tp, Outcome.FAILED, -1, -1, detail, reverted=problem is None)
    if problem is None and state.replicas == row.replicas:
        detail = "assignment order reverted"
    right = state.leader == row.leader
    outcome = Outcome.ELECTED if right else Outcome.FAILED if state.offline else Outcome.OTHER_LEADER
    return Election(row.tp, outcome, state.leader, state.leader_epoch, detail, reverted=problem is None)
