"""Since when a partition has had no leader, from the folded metadata log."""

from __future__ import annotations

from recovery.controller.registration import Registration
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import IN_SNAPSHOT, PartitionSubject, applied


def offline_since_ms(history: MetadataHistory, subject: PartitionSubject, leader_epoch: int) -> int | None:
    """When the partition lost its leader, in ms; None if the log does not contain it.

    ``leader_epoch`` is the epoch that the cluster reports: a log that ends with another one does not describe the
    present state. A snapshot contains a state, not the time of its change.
    """
    since: int | None = None
    now: Registration | None = None
    for row in history.of(subject):
        before, now = now, applied(now, row.change)
        if now is None or now.has_leader:
            since = None
        elif (before is None or before.has_leader) and row.batch != IN_SNAPSHOT:
            since = row.time_ms
    if now is None or now.has_leader or now.leader_epoch != leader_epoch:
        return None
    return since


def offline_already_ms(history: MetadataHistory, subject: PartitionSubject, leader_epoch: int) -> int | None:
    """The time of the snapshot with which the log begins, in ms, if the partition had no leader in it and has had
    none since; otherwise None. ``leader_epoch`` as in :func:`offline_since_ms`.
    """
    already: int | None = None
    now: Registration | None = None
    for row in history.of(subject):
        if now is None and row.batch == IN_SNAPSHOT:
            already = row.time_ms
        now = applied(now, row.change)
        if now is None or now.has_leader:
            return None
    return already if now is not None and now.leader_epoch == leader_epoch else None
