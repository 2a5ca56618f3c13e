"""``ktriage resume``: finishes what earlier runs left, each kind of change as its description says."""

# ruff: noqa: ARG002  # the signatures are the change's

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from backends.base.protocol import Backend
from console.change.change import Change, ChangeRun, Conclusion, Operator
from console.change.unfinished_orders import SettledOrders
from console.errors import Status
from console.journal.change_kinds import KINDS, ORDERS_ROOM, REPLACE, Left
from console.journal.unfinished_entries import Unfinished, unfinished
from console.plan_file_checks import refuse_other_cluster
from recovery.plan.values import Plan

C = TypeVar("C")

_JOBS = f"{__name__.removesuffix('.change.finish_earlier')}.jobs"
RESUMED = "resume"
"""The reason in the journal where nobody gave one."""


class Resumption(NamedTuple):
    """What is to be finished: ``plan``, of ``file``, is that of a run on another host. ``only_orders``: only the
    assignment orders of elections, and only if a controller replacement is half done too, or ``file`` is the
    plan of one: the replacement checks what was sent to the voters.
    """

    plan: Plan | None = None
    file: Path | None = None
    only_orders: bool = False


class FinishedChanges(NamedTuple):
    """What became of the changes of some kinds: ``lines`` say it, ``settled`` are the orders of elections."""

    conclusion: Conclusion
    lines: tuple[str, ...] = ()
    settled: SettledOrders | None = None

    def then(self, later: FinishedChanges) -> FinishedChanges:
        """Both. The command that comes next is the later one's, and ``resume`` where something is left."""
        before, after = self.conclusion, later.conclusion
        left = before.unfinished or after.unfinished
        following = (RESUMED,) if left else after.next or before.next
        conclusion = Conclusion(max(before.status, after.status), unfinished=left, next=following)
        return FinishedChanges(conclusion, (*self.lines, *later.lines), self.settled or later.settled)


STOPPED = FinishedChanges(Conclusion(Status.PARTLY, unfinished=True, next=(RESUMED,)))
"""Of what was not begun because of a signal."""

Finish = Callable[[C, Unfinished, ChangeRun[Unfinished], Resumption], Awaitable[FinishedChanges]]
"""Finishes the open changes of some kinds. Raises ConsoleError and BackendError."""


def finishers(found: Unfinished, asked: Resumption) -> Iterator[Finish[Backend]]:
    """Those of the kinds that are open, in the order of :data:`console.journal.change_kinds.KINDS`; the orders and
    requests of elections are always looked at, first.
    """
    yield import_module(f"{_JOBS}.{ORDERS_ROOM}").finish
    if asked.plan is not None or asked.only_orders:
        return
    for kind in KINDS.values():
        if kind.finished_by not in ("", ORDERS_ROOM) and found.of(kind.action):
            yield import_module(f"{_JOBS}.{kind.finished_by}").finish


@dataclass(frozen=True, slots=True)
class FinishEarlier(Change[C, Unfinished, FinishedChanges], Generic[C]):
    """What is left in the journal is read by ``read``, and finished by each of the ``finishers``, in one run."""

    read: Callable[[C, str], Awaitable[Unfinished]]
    finishers: Callable[[Unfinished, Resumption], Iterator[Finish[C]]]
    asked: Resumption = Resumption()  # noqa: RUF009  # frozen
    reason: str = RESUMED

    def without_lock(self, cluster_id: str) -> FinishedChanges | None:
        plan, file, only_orders = self.asked
        if plan is not None:
            refuse_other_cluster(plan, cluster_id, file)
        elif only_orders:
            found = unfinished(cluster_id)
            if not (found.orders and (file is not None or found.of(REPLACE))):
                return FinishedChanges(Conclusion(Status.DONE), settled=SettledOrders())
        elif unfinished(cluster_id).nothing:
            return FinishedChanges(Conclusion(Status.DONE, next=("status",)), settled=SettledOrders())
        return None

    async def prepare(self, cluster: C, cluster_id: str, operator: Operator[Unfinished]) -> Unfinished:
        found = await self.read(cluster, cluster_id)
        return found.without(Left.ELECTIONS, Left.REQUEST, Left.RECORDS) if self.asked.only_orders else found

    def nothing_to_send(self, prepared: Unfinished) -> FinishedChanges | None:
        return None

    async def execute(self, cluster: C, prepared: Unfinished, run: ChangeRun[Unfinished]) -> FinishedChanges:
        endings: list[FinishedChanges] = []
        for finish in self.finishers(prepared, self.asked):
            if endings and run.stop:
                endings.append(STOPPED)
                break
            endings.append(await finish(cluster, prepared, run, self.asked))
        return reduce(FinishedChanges.then, endings)

    def conclusion(self, result: FinishedChanges) -> Conclusion:
        return result.conclusion
