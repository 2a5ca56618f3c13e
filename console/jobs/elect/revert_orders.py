"""Finishing what earlier runs of elections left: ``ktriage resume`` on the brokers of a cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Container, Sequence, Set
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from backends.base.errors import BackendError
from backends.base.protocol import Backend
from console.change.change import ChangeRun, Conclusion
from console.change.finish_earlier import FinishedChanges, Resumption
from console.change.unfinished_orders import (
    OrderOutcome,
    SettledOrders,
    revert,
    settle,
)
from console.errors import InputError, Status
from console.journal.change_kinds import (
    KEEP_LOG,
    RESTORE_RECORDS,
    Left,
    OpenChange,
    keep_moves,
    kind_of,
)
from console.journal.unfinished_entries import Unfinished
from console.plan_file_checks import partitions_of
from console.plan_files import read
from console.reading.partition_selection import described
from console.reading.unread_disks import brokers_up
from recovery.assignment_order import WrittenOrder
from recovery.log_preservation import taken_out
from recovery.model import PartitionState, TopicPartition
from recovery.plan.values import BarePlan, Plan
from recovery.requests_in_doubt import ELECTION_ALIVE_FOR, FOUND_ORDER, SentRequest
from recovery.wording.quantity_text import counted, some_of

READS = 10
READ_PAUSE = 0.2
"""While an election may still be carried out, the partitions are read again after ``READS`` of these pauses; a
signal ends each of them.
"""


async def finish(
    cluster: Backend, found: Unfinished, run: ChangeRun[Unfinished], asked: Resumption
) -> FinishedChanges:
    """Reverts the assignment orders that the journal says may still stand as an election needed them, and those of
    a plan that was applied on another host; waits for requests in doubt, and closes those whose end is not known.
    """
    planned = () if asked.plan is None else tuple(row.written_order for row in asked.plan.rows)
    with run.stop.in_flight():
        clock = _SteadyClock(run.journal.now())
        orders = (await _with_found_orders(cluster, found, planned, run)).none_sent_after(clock.now())
        settled = await settle(cluster, orders, run.journal, clock.now())
        known = {row.tp for row in settled.rows}
        rest = [SentRequest("", row) for row in planned if row.tp not in known]
        others = await revert(cluster, rest, run.journal, clock.now())
        settled = await _wait_for_requests(cluster, orders, settled.then(others), run, clock)
    restores = _still_possible(found.of(RESTORE_RECORDS), run)
    settled = replace(settled, restores=restores)
    file = str(asked.file) if asked.file is not None else _if_there(found.plan_file)
    following = await _next(cluster, found, settled, asked.plan, file)
    partly = settled.of(OrderOutcome.LEFT, OrderOutcome.FOREIGN) or restores
    status = Status.PARTLY if partly else Status.DONE
    return FinishedChanges(Conclusion(status, unfinished=settled.open, next=following), settled=settled)


async def _next(
    cluster: Backend, found: Unfinished, settled: SettledOrders, plan: Plan | None, file: str
) -> tuple[str, ...]:
    """The command that comes next. ``file``: the plan whose elections are left to apply; "" if it is not known."""
    if settled.open:
        return ("resume",)
    if settled.restores:
        return settled.restores[0].command
    if not file:
        return ("status",)
    offline = await _offline_of(cluster, plan, Path(file))
    if offline is not None and not offline:
        return ("verify", file)
    brokers = () if offline is None else await _still_to_keep(cluster, found.of(KEEP_LOG), offline)
    return ("apply", file, *(("--keep-log-of", ",".join(map(str, brokers))) if brokers else ()))


async def _with_found_orders(
    cluster: Backend, found: Unfinished, planned: Sequence[WrittenOrder], run: ChangeRun[Unfinished]
) -> Unfinished:
    """``found`` with the plan's orders that partitions without a leader still have.

    It is not known here when the run on the other host sent its elections, so they count as sent now. The
    journal records this moment, so that a later ``resume`` on this host does not start the wait again.
    """
    known = {order.written.tp for order in found.orders}
    rows = {row.tp: row for row in planned if row.tp not in known and row.order != row.replicas}
    if not rows:
        return found
    read = await cluster.partitions(tuple(dict.fromkeys(tp.topic for tp in rows)))
    standing = [
        rows[state.tp] for state in read.states if state.tp in rows and _stands(rows[state.tp], state)
    ]
    if not standing:
        return found
    entry = run.journal.before(FOUND_ORDER, {"rows": standing})
    run.journal.after(entry, {"applied": [row.tp for row in standing]})
    at = run.journal.now()
    requests = tuple(SentRequest(entry, row, applied=True, election_at=at.timestamp()) for row in standing)
    change = OpenChange(kind_of(FOUND_ORDER), "", entry, at.isoformat(), {}, requests, ended=True)
    return replace(found, changes=(*found.changes, change))


async def _offline_of(cluster: Backend, plan: Plan | None, file: Path) -> frozenset[TopicPartition] | None:
    """The partitions of the plan that are offline, so that they are left to apply; None where that is not known."""
    try:
        partitions = partitions_of(plan if plan is not None else read(file))
        states = (await described(cluster, partitions)).states
    except (InputError, BackendError):
        return None
    return frozenset(state.tp for state in states if state.offline)


async def _still_to_keep(
    cluster: Backend, keeps: Sequence[OpenChange], offline: Set[TopicPartition]
) -> tuple[int, ...]:
    """The brokers whose logs a killed run was to keep in those partitions. Without those that are up again: an
    election that was to keep the log of such a broker would be refused.
    """
    wanted = {
        broker
        for entry in keeps
        for keep in keep_moves(entry.detail)
        if keep.move.tp in offline
        for broker in taken_out(keep.move)
    }
    try:
        return tuple(sorted(wanted - brokers_up(await cluster.cluster()))) if wanted else ()
    except BackendError:
        return tuple(sorted(wanted))


def _if_there(file: str) -> str:
    """The plan's file, or "" if it was deleted or never had one."""
    return file if file and Path(file).is_file() else ""


def _still_possible(restores: Sequence[OpenChange], run: ChangeRun[Unfinished]) -> tuple[OpenChange, ...]:
    """Restores of rescued records whose directory is there; the others are closed."""
    gone = [one for one in restores if not Path(one.command[1]).exists()]
    for one in gone:
        run.operator.says(f"{one.command[1]}: not there any more; what was not written back of it stays so")
    if gone:
        run.journal.settle("the rescue directory is not there", entries=[one.entry for one in gone])
    return tuple(one for one in restores if one not in gone)


def _stands(row: WrittenOrder, state: PartitionState) -> bool:
    return state.offline and state.topic_id == row.topic_id and state.replicas == row.order


class _SteadyClock:
    """The time of day when it was made, and the seconds since: setting the host's clock does not change it, so a
    wait ends neither early nor hours later.
    """

    def __init__(self, now: datetime) -> None:
        self._from = now
        self._began = time.monotonic()

    def now(self) -> datetime:
        return self._from + timedelta(seconds=time.monotonic() - self._began)


async def _wait_for_requests(
    cluster: Backend,
    found: Unfinished,
    settled: SettledOrders,
    run: ChangeRun[Unfinished],
    clock: _SteadyClock,
) -> SettledOrders:
    """The orders that stay for an election which may still be carried out are reverted as soon as somebody leads,
    or no election can come any more; those that an unanswered write may still change, once it cannot. A signal ends
    the waiting; what is left then stays open.
    """
    if settled.requests_alive and not run.stop:
        ordered = {order.written.tp for order in found.orders}
        run.operator.says(*_waiting_lines(settled, ordered, run.resume_command))
    while settled.requests_alive and not run.stop:
        await _pause(settled, run, clock)
        waiting = settled.requests_alive
        # All orders of a partition: what is found out about one of them closes the others too.
        rest = found.without(Left.REQUEST).where(_of(waiting))
        try:
            settled = settled.then(await settle(cluster, rest, run.journal, clock.now()))
        except BackendError:
            # The brokers may be out of reach for a moment. The orders that stay are reported, with the command.
            if clock.now() >= max(waiting.values()):
                break
    return settled


def _waiting_lines(settled: SettledOrders, ordered: Set[TopicPartition], resume: str) -> tuple[str, str]:
    waiting = settled.requests_alive
    until = max(waiting.values())
    orders = (
        " Where nobody leads, the chosen replica stays first in the assignment until then, or until somebody leads."
        " Then the order is reverted."
    )
    return (
        f"{counted(len(waiting), 'partition')} ({some_of(sorted(waiting))}): a request of the earlier run may"
        f" still be carried out until {until:%H:%M:%S} UTC.{orders if waiting.keys() & ordered else ''}",
        f"waiting for it; Ctrl-C ends the wait, and this command finishes it later: {resume}",
    )


def _of(tps: Container[TopicPartition]) -> Callable[[SentRequest], bool]:
    return lambda request: request.written.tp in tps


async def _pause(settled: SettledOrders, run: ChangeRun[Unfinished], clock: _SteadyClock) -> None:
    until = max(settled.requests_alive.values())
    for _ in range(READS):
        left = (until - clock.now()) / timedelta(seconds=1)
        if run.stop or left <= 0:
            return
        if run.operator.progress is not None:
            total = round(ELECTION_ALIVE_FOR)
            run.operator.progress("waiting for a request in doubt, second", total - round(left), total)
        await asyncio.sleep(READ_PAUSE)


def with_preconditions(plan: Plan | BarePlan, file: Path) -> Plan:
    """The plan. Raises InputError if it does not have the original assignments."""
    if isinstance(plan, BarePlan):
        raise InputError(
            f"{file}: the file names only leaders, not the original assignments; nothing was sent"
        )
    return plan
