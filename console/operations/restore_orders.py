"""Finishing what earlier runs of elections left: ``ktriage resume`` on the brokers of a cluster."""

# ruff: noqa: ARG002  # the signatures are the change's

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from backends.base.protocol import Backend
from console.errors import InputError
from console.exit_status import Status
from console.journal.unfinished_entries import Unfinished, unfinished
from console.operations.change import Change, ChangeRun, Conclusion, Operator
from console.operations.plan_file_checks import refuse_other_cluster
from console.operations.unfinished_orders import Fate, SettledOrders, restore, settle
from recovery.assignment_order import WrittenOrder
from recovery.plan.values import BarePlan, Plan


@dataclass(frozen=True, slots=True)
class RestoreOrders(Change[Backend, Unfinished, SettledOrders]):
    """Restores the assignment orders that the journal says may still stand as an election needed them, and those of
    a ``plan`` that was applied on another host, which ``file`` holds.

    ``before_replacement``: only where a controller replacement is half done too, or ``file`` is one's plan, and
    only the orders: what was sent to the voters is looked at by the replacement.
    """

    plan: Plan | None = None
    file: Path | None = None
    before_replacement: bool = False
    reason: str = "resume"

    def without_lock(self, cluster_id: str) -> SettledOrders | None:
        if self.plan is not None:
            refuse_other_cluster(self.plan, cluster_id, self.file)
        if not self.before_replacement:
            return None
        found = unfinished(cluster_id)
        replacement = self.file is not None or found.replacements
        return None if found.orders and replacement else SettledOrders()

    async def prepare(self, cluster: Backend, cluster_id: str, operator: Operator[Unfinished]) -> Unfinished:
        found = unfinished(cluster_id)
        return replace(found, entries=()) if self.before_replacement else found

    def unsent(self, prepared: Unfinished) -> SettledOrders | None:
        return None

    async def carry_out(
        self, cluster: Backend, prepared: Unfinished, run: ChangeRun[Unfinished]
    ) -> SettledOrders:
        with run.stop.in_flight():
            settled = await settle(cluster, prepared, run.journal)
            known = {row.tp for row in settled.rows}
            others = await restore(cluster, [r for r in self._planned if r.tp not in known], run.journal)
        return SettledOrders((*settled.rows, *others.rows), settled.entries)

    @property
    def _planned(self) -> Sequence[WrittenOrder]:
        return () if self.plan is None else tuple(row.written_order for row in self.plan.rows)

    def conclusion(self, result: SettledOrders) -> Conclusion:
        partly = bool(result.of(Fate.LEFT, Fate.FOREIGN))
        return Conclusion(Status.PARTLY if partly else Status.DONE, unfinished=result.open)


def with_preconditions(plan: Plan | BarePlan, file: Path) -> Plan:
    """The plan. Raises InputError for one that does not tell what the assignments were."""
    if isinstance(plan, BarePlan):
        raise InputError(f"{file}: it holds leaders only, not what the assignments were; nothing was sent")
    return plan
