"""When a broker started again, and which log dirs it had then, from the metadata log."""

from __future__ import annotations

from typing import NamedTuple

from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import IN_SNAPSHOT, BrokerSubject
from recovery.metadata_log.records import BrokerRegistrationChangeRecord, RegisterBrokerRecord


class BrokerRestart(NamedTuple):
    """A new process of the broker registered at ``offset``.

    ``after_shutdown``: the previous process was in a controlled shutdown, which flushes the logs unless it is
    interrupted. ``lost_dirs`` are the ids of log dirs that the previous process registered and this one did not.
    """

    offset: int
    time_ms: int
    after_shutdown: bool
    lost_dirs: frozenset[str]
    dirs: frozenset[str]


def broker_restarts(history: MetadataHistory, broker: int) -> tuple[BrokerRestart, ...]:
    """The registrations in the log, the oldest first. A registration in a snapshot is no restart."""
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
        # A request that is repeated because its response was lost comes from the same process.
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
    """A copied log cannot show later restarts: any broker may have started again after its end."""
    return BrokerRestart(history.end_offset, history.end_ms or 0, True, frozenset(), frozenset())
