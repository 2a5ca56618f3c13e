"""Plan files for commands: read, checked against the cluster, limited to a part."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from console.errors import InputError
from console.plan_files import read
from recovery.model import TopicPartition
from recovery.plan.plan_parts import first, max_loss, only
from recovery.plan.values import BarePlan, Plan, PlanError
from recovery.plan.write import bare_json, digest, text_digest


@dataclass(frozen=True, slots=True)
class PlanPart:
    """The part of a plan for a canary: only ``topics``, of these only rows that lose at most ``most``, of
    these the ``first``.

    ``successors``: the limit is also for who may be elected instead of the chosen leader.
    """

    first: int | None = None
    topics: tuple[str, ...] = ()
    most: int | None = None
    successors: bool = True

    def of(self, plan: Plan) -> Plan:
        """That part. Raises InputError if nothing is left."""
        try:
            if self.topics:
                plan = only(plan, self.topics)
            if self.most is not None:
                plan = self._within(plan, self.most)
            if self.first is not None:
                plan = first(plan, self.first)
        except PlanError as error:
            raise InputError(f"{error}; nothing was sent") from None
        if not plan.rows:
            raise InputError("no partition of the plan is left to elect; nothing was sent")
        return plan

    def _within(self, plan: Plan, most: int) -> Plan:
        """The rows that lose at most ``most``. Raises PlanError if the plan has rows, but none of these."""
        left = max_loss(plan, most, successors=self.successors)
        if left.rows or not plan.rows:
            return left
        each = f"each of the {len(plan.rows):,}" if len(plan.rows) > 1 else str(plan.rows[0].tp)
        why = f"no partition of the plan is left to elect: {each} may lose more than --max-loss {most} allows"
        chosen = len(max_loss(plan, most, successors=False).rows)
        if chosen:
            why += f", {chosen:,} of them only if the chosen leader drops out (--ignore-successor-loss)"
        raise PlanError(why)


WHOLE = PlanPart()
"""All of a plan."""


def refuse_other_cluster(plan: Plan | BarePlan, cluster_id: str, path: Path | None = None) -> None:
    """Raises InputError if the plan was made for another cluster."""
    if isinstance(plan, Plan) and plan.header.cluster_id != cluster_id:
        where = "" if path is None else f"{path}: "
        raise InputError(
            f"{where}the plan is for cluster {plan.header.cluster_id}, and this is {cluster_id}; nothing was sent"
        )


def refuse_other_digest(plan: Plan | BarePlan, path: Path, wanted: str) -> None:
    """Raises InputError if the file is not the reviewed one (two-person rule). The message does not give the file's
    own digest: who copies it has no review.
    """
    if plan_digest(plan) != wanted.strip().lower():
        raise InputError(
            f"{path}: this is not the file that was reviewed; nothing was sent. Have it reviewed: ktriage review"
        )


def read_part(path: Path, part: PlanPart = WHOLE, digest: str | None = None) -> Plan | BarePlan:
    """The plan of a file, or the part of it that is applied; of leaders only all of them, which are surveyed first.

    Raises InputError: unreadable, nothing left of it, or not the file with the reviewed ``digest``.
    """
    plan = read(path)
    if digest is not None:
        refuse_other_digest(plan, path, digest)
    return part.of(plan) if isinstance(plan, Plan) else plan


def plan_digest(plan: Plan | BarePlan) -> str:
    """SHA-256 of the plan as it is written."""
    return digest(plan) if isinstance(plan, Plan) else text_digest(bare_json(plan))


def partitions_of(plan: Plan | BarePlan) -> tuple[TopicPartition, ...]:
    """Every partition that the plan elects a leader for."""
    return tuple(row.tp for row in plan.rows)
