"""When a broker started again, and which of its log dirs it had then, from the metadata log."""

from __future__ import annotations

from typing import NamedTuple

from recovery.metadata_log.history import IN_SNAPSHOT, BrokerSubject, MetadataHistory
from recovery.metadata_log.records import BrokerRegistrationChangeRecord, RegisterBrokerRecord


class BrokerRestart(NamedTuple):
    """A new process of the broker registered at ``offset``.

    ``after_shutdown``: the one before was in a controlled shutdown, which flushes its logs unless interrupted.
    ``lost_dirs`` are the ids of log dirs that the one before had registered, and that this one has not.
    """

    offset: int
    time_ms: int
    after_shutdown: bool
    lost_dirs: frozenset[str]
    dirs: frozenset[str]


def broker_restarts(history: MetadataHistory, broker: int) -> tuple[BrokerRestart, ...]:
    """The registrations that the log shows, the oldest first. One that a snapshot holds is no restart."""
    found = []
    before: RegisterBrokerRecord | None = None
    dirs: frozenset[str] = frozenset()
    shutting_down = False
    for row in history.of(BrokerSubject(broker)):
        change = row.change
        if isinstance(change, BrokerRegistrationChangeRecord):
            shutting_down = shutting_down or change.in_controlled_shutdown is True
        if not isinstance(change, RegisterBrokerRecord):
            continue
        mine = frozenset(change.directories)
        # A request that is sent again, because its answer was lost, comes from the same process.
        again = before is not None and before.incarnation == change.incarnation
        if row.batch != IN_SNAPSHOT and not again:
            lost = dirs - mine
            found.append(BrokerRestart(row.offset, row.time_ms, shutting_down, lost, mine))
        before, dirs, shutting_down = change, mine, change.in_controlled_shutdown
    return tuple(found)


def shut_down(history: MetadataHistory, broker: int) -> bool:
    """Whether the newest process of the broker began a controlled shutdown."""
    began = False
    for row in history.of(BrokerSubject(broker)):
        if isinstance(row.change, RegisterBrokerRecord):
            began = row.change.in_controlled_shutdown
        elif isinstance(row.change, BrokerRegistrationChangeRecord):
            began = began or row.change.in_controlled_shutdown is True
    return began


def restart_after_copy(history: MetadataHistory) -> BrokerRestart:
    """What a copied log cannot show: any broker may have started again after its end."""
    return BrokerRestart(history.end_offset, history.end_ms or 0, True, frozenset(), frozenset())
