"""Transactions that the elections of an incident have left open, by the plans that were carried out."""

from __future__ import annotations

from collections.abc import Sequence

from backends.base.protocol import Backend, Progress
from console.jobs.consumers.election_aftermath import read_within
from console.jobs.consumers.hanging_transactions import read_transactions
from console.jobs.incident.incident import PlanFile, PlanTransactions
from recovery.model import TopicPartition


async def read_plan_transactions(
    cluster: Backend, files: Sequence[PlanFile], seconds: float, progress: Progress | None = None
) -> tuple[PlanTransactions, ...]:
    """Each partition once, by the newest plan (the last of ``files``) that has it; each plan takes at most
    ``seconds``. Never raises BackendError.
    """
    read: list[PlanTransactions] = []
    planned: set[TopicPartition] = set()
    for file in reversed(files):
        plan = file.plan
        partitions = [row.tp for row in plan.rows if row.tp not in planned] if plan is not None else []
        if not partitions:
            continue
        planned.update(partitions)
        reading = read_transactions(cluster, partitions, progress=progress, plan=plan)
        read.append(PlanTransactions(file, await read_within(seconds, reading)))
    return tuple(read)
