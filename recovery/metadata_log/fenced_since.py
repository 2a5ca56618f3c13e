"""Since when a broker has been fenced, from the folded metadata log."""

from __future__ import annotations

from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import IN_SNAPSHOT, BrokerSubject
from recovery.metadata_log.records import BrokerRegistrationChangeRecord, RegisterBrokerRecord


def fenced_since_ms(history: MetadataHistory, broker: int) -> int | None:
    """When the broker was last fenced, in ms; None if it is not fenced, or if the log does not contain it.

    A fenced broker that registers again stays fenced until it has caught up; the earlier time counts. A snapshot
    contains a state, not the time of its change.
    """
    since: int | None = None
    fenced = False
    for row in history.of(BrokerSubject(broker)):
        change = row.change
        if (
            not isinstance(change, BrokerRegistrationChangeRecord | RegisterBrokerRecord)
            or change.fenced is None
        ):
            continue
        if not change.fenced:
            since = None
        elif not fenced and row.batch != IN_SNAPSHOT:
            since = row.time_ms
        fenced = change.fenced
    return since if fenced else None
