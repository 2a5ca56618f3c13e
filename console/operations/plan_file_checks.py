"""Plan files as commands take them: read, checked against the cluster, narrowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from console.errors import InputError
from console.planfile import read
from recovery.assignment_order import WrittenOrder
from recovery.model import TopicPartition
from recovery.plan.select import first, max_loss, only
from recovery.plan.values import BarePlan, Plan, PlanError
from recovery.plan.write import bare_json, digest, text_digest


def refuse_other_cluster(plan: Plan | BarePlan, cluster_id: str, path: Path) -> None:
    """Raises InputError where the plan was made for another cluster."""
    if isinstance(plan, Plan) and plan.header.cluster_id != cluster_id:
        raise InputError(
            f"{path}: the plan is for cluster {plan.header.cluster_id}, and this is {cluster_id}; nothing was sent"
        )


def written_orders_of(path: Path) -> Callable[[str], Sequence[WrittenOrder]]:
    """The orders that a plan file's elections write, once the cluster's id is known.

    Raises InputError where the file holds leaders only.
    """
    plan = read(path)
    if isinstance(plan, BarePlan):
        raise InputError(f"{path}: it holds leaders only, not what the assignments were; nothing was sent")

    def checked(cluster_id: str) -> Sequence[WrittenOrder]:
        refuse_other_cluster(plan, cluster_id, path)
        return tuple(row.written_order for row in plan.rows)

    return checked


def refuse_other_digest(plan: Plan | BarePlan, path: Path, wanted: str) -> None:
    """Raises InputError where the file is not the one that was reviewed (two-person rule)."""
    found = plan_digest(plan)
    if found != wanted.strip().lower():
        raise InputError(f"{path}: its digest is {found}, not the reviewed one; nothing was sent")


def plan_digest(plan: Plan | BarePlan) -> str:
    """SHA-256 of the plan as it is written."""
    return digest(plan) if isinstance(plan, Plan) else text_digest(bare_json(plan))


def narrowed(
    plan: Plan, count: int | None, topics: Sequence[str], most: int | None, *, successors: bool = True
) -> Plan:
    """The part of the plan for a canary: those topics, that lose so much at most, the first so many of these.

    ``successors``: the limit is also for who may be elected instead of the chosen leader. Raises InputError where
    nothing is left.
    """
    try:
        if topics:
            plan = only(plan, topics)
        if most is not None:
            plan = max_loss(plan, most, successors=successors)
        if count is not None:
            plan = first(plan, count)
    except PlanError as error:
        raise InputError(f"{error}; nothing was sent") from None
    if not plan.rows:
        raise InputError("no partition of the plan is left to elect; nothing was sent")
    return plan


def partitions_of(plan: Plan | BarePlan) -> tuple[TopicPartition, ...]:
    """Every partition that the plan elects a leader for."""
    return tuple(row.tp for row in plan.rows)
