"""Voter changes of earlier runs without a recorded end: checks whether the voter set shows each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from backends.base.membership import KRAFT_VERSION, Membership
from console.change.change import ChangeRun, Conclusion
from console.change.finish_earlier import FinishedChanges, Resumption
from console.change.unfinished_orders import OrderOutcome, Row, SettledOrders
from console.errors import Status
from console.journal.change_kinds import ADD_VOTER, REMOVE_VOTER, UPGRADE_FEATURE, OpenChange
from console.journal.unfinished_entries import Unfinished
from console.reading.quorum_state import settled_quorum
from recovery.membership.quorum import Quorum
from recovery.membership.voters import ReplicaKey

BROKERS = "reverting it needs the brokers: give --bootstrap-server"


async def finish(
    membership: Membership, found: Unfinished, run: ChangeRun[Unfinished], _asked: Resumption
) -> FinishedChanges:
    """Closes the requests whose result the voters show. Orders of partitions stay open: only the brokers can revert
    them.
    """
    with run.stop.in_flight():
        checks = await check_entries(membership, found.entries)
        for check in checks:
            run.operator.says(f"{check.entry.action}: {check.evidence}")
        closed = [check.entry.entry for check in checks if check.closed]
        run.journal.settle("a later run checked the voters", entries=closed)
    orders = dict.fromkeys(order.written.tp for order in found.orders)
    rows = tuple(Row(tp, OrderOutcome.LEFT, BROKERS) for tp in orders)
    done = len(closed) == len(checks) and not rows
    conclusion = Conclusion(Status.DONE if done else Status.PARTLY, unfinished=not done)
    return FinishedChanges(conclusion, settled=SettledOrders(rows, len(closed)))


class EntryCheck(NamedTuple):
    """An entry, whether it can be ``closed``, and what the quorum shows of it (``evidence``)."""

    entry: OpenChange
    closed: bool
    evidence: str


async def check_entries(membership: Membership, entries: Sequence[OpenChange]) -> tuple[EntryCheck, ...]:
    """Reads the voters once for all of ``entries``. Raises NoLeader, BackendError."""
    if not entries:
        return ()
    quorum = (await settled_quorum(membership)).quorum
    return tuple(_check_entry(entry, quorum) for entry in entries)


def _check_entry(entry: OpenChange, quorum: Quorum) -> EntryCheck:
    detail = entry.detail
    if entry.action == UPGRADE_FEATURE and detail.get("feature") == KRAFT_VERSION:
        return EntryCheck(entry, True, f"{KRAFT_VERSION} is {quorum.kraft_version}")
    if entry.action not in (ADD_VOTER, REMOVE_VOTER):
        return EntryCheck(entry, False, "checking it needs the brokers: give --bootstrap-server")
    key = ReplicaKey(int(detail.get("voter", -1)), str(detail.get("directoryId", "")))
    if quorum.change_pending is not False:
        return EntryCheck(
            entry, False, "a change of the voters is written and not yet committed: run this again"
        )
    votes = key in quorum.voters.keys
    made = "was made" if votes == (entry.action == ADD_VOTER) else "was not made"
    return EntryCheck(entry, True, f"{key} is {'a' if votes else 'no'} voter: the change {made}")
