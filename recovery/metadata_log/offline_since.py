"""Since when a partition has had no leader, from the folded metadata log."""

from __future__ import annotations

from recovery.metadata_log.history import MetadataHistory, PartitionInterval
from recovery.metadata_log.log_changes import IN_SNAPSHOT, BrokerSubject, PartitionSubject
from recovery.metadata_log.records import BrokerRegistrationChangeRecord, RegisterBrokerRecord

# Since when a broker has been fenced, from the folded metadata log.


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


def offline_since_ms(history: MetadataHistory, subject: PartitionSubject, leader_epoch: int) -> int | None:
    """When the partition lost its leader, in ms; None if the log does not contain it.

    ``leader_epoch`` is the epoch that the cluster reports: a log that ends with another one does not describe the
    present state. A snapshot contains a state, not the time of its change.
    """
    intervals = _offline_now(history, subject, leader_epoch)
    if not intervals:
        return None
    lost = len(intervals) - 1
    while lost > 0 and not intervals[lost - 1].registration.has_leader:
        lost -= 1
    in_snapshot = lost == 0 and next(history.of(subject)).batch == IN_SNAPSHOT
    return None if in_snapshot else intervals[lost].since_ms


def offline_already_ms(history: MetadataHistory, subject: PartitionSubject, leader_epoch: int) -> int | None:
    """The time of the snapshot with which the log begins, in ms, if the partition had no leader in it and has had
    none since; otherwise None. ``leader_epoch`` as in :func:`offline_since_ms`.
    """
    intervals = _offline_now(history, subject, leader_epoch)
    if not intervals or any(interval.registration.has_leader for interval in intervals):
        return None
    first = next(history.of(subject))
    return first.time_ms if first.batch == IN_SNAPSHOT else None


def _offline_now(
    history: MetadataHistory, subject: PartitionSubject, leader_epoch: int
) -> tuple[PartitionInterval, ...]:
    """The states of a partition that has no leader at the end of the log, in that epoch; empty for any other."""
    intervals = history.intervals(subject)
    if not intervals or intervals[-1].until_ms is not None:
        return ()
    now = intervals[-1].registration
    return () if now.has_leader or now.leader_epoch != leader_epoch else intervals
