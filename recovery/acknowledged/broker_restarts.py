"""When a broker started again, and which log dirs it had then, from the metadata log."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from recovery.controller.registration import PartitionChange
from recovery.controller.rules import ELR_FEATURE
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import (
    IN_SNAPSHOT,
    BrokerSubject,
    FeatureSubject,
    HistoryRow,
    PartitionSubject,
)
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
)


class LastStop(StrEnum):
    """How the process before a restart ended, as far as the metadata log tells.

    - CLEAN: its log dirs had the file of a clean stop, with its broker epoch: every log was written to disk. No
      record has that epoch, only the request to register (PreviousBrokerEpoch, KIP-966), but its effect: with the
      ELR on, the controller takes a broker that does not send it out of every ELR.
    - SHUT_DOWN: it began a controlled shutdown, which writes the logs to disk unless it is interrupted.
    - UNTOLD: no record tells. A broker that leads nothing is granted its shutdown at once, and only fenced
      (BrokerHeartbeatManager.calculateNextBrokerState), as a killed one is.
    - UNCLEAN: it led, or was not even fenced, and began no controlled shutdown; or the controller took it out of an
      ELR when it registered.
    """

    CLEAN = "clean"
    SHUT_DOWN = "shut down"
    UNTOLD = "untold"
    UNCLEAN = "unclean"


class BrokerRestart(NamedTuple):
    """A new process of the broker registered at ``offset``.

    ``stop`` is the end of the process before. ``lost_dirs`` are the ids of log dirs that the previous process
    registered and this one did not. ``elr_on``: the ELR was on, by the log, so that the
    controller took the broker out of every ELR unless it had stopped cleanly
    (ClusterControlManager.registerBroker); while the feature is off it leaves the ELRs of before as they are.
    """

    offset: int
    time_ms: int
    stop: LastStop
    lost_dirs: frozenset[str]
    dirs: frozenset[str]
    elr_on: bool = False


def broker_restarts(history: MetadataHistory, broker: int) -> tuple[BrokerRestart, ...]:
    """The registrations in the log, the oldest first. A registration in a snapshot is no restart."""
    found = []
    before: RegisterBrokerRecord | None = None
    dirs: frozenset[str] = frozenset()
    shutting_down = False
    fenced: HistoryRow | None = None
    levels = tuple(history.of(FeatureSubject(ELR_FEATURE)))
    for row in history.of(BrokerSubject(broker)):
        change = row.change
        if isinstance(change, BrokerRegistrationChangeRecord):
            shutting_down = shutting_down or change.in_controlled_shutdown is True
            if change.fenced is not None:
                # The controller may fence a fenced broker again, with another one (seen on 4.3.1).
                fenced = (fenced or row) if change.fenced else None
        if not isinstance(change, RegisterBrokerRecord):
            continue
        mine = frozenset(change.directories)
        # A request that is repeated because its response was lost comes from the same process.
        again = before is not None and before.incarnation == change.incarnation
        if row.batch != IN_SNAPSHOT and not again:
            stop = LastStop.SHUT_DOWN
            if not shutting_down:
                stop = _stop_without_record(history, broker, before, fenced)
            on = _is_on(levels, row.offset)
            found.append(BrokerRestart(row.offset, row.time_ms, stop, dirs - mine, mine, elr_on=on))
        before, dirs, shutting_down = change, mine, change.in_controlled_shutdown
        fenced = row if change.fenced else None
    return tuple(found)


def _is_on(levels: Sequence[HistoryRow], offset: int) -> bool:
    """Whether the last of the ``levels`` of a feature before ``offset`` is above 0."""
    for row in reversed(levels):
        # The offsets of a snapshot say nothing of those of the log.
        if (row.batch == IN_SNAPSHOT or row.offset < offset) and isinstance(row.change, FeatureLevelRecord):
            return row.change.level > 0
    return False


def _stop_without_record(
    history: MetadataHistory, broker: int, before: RegisterBrokerRecord | None, fenced: HistoryRow | None
) -> LastStop:
    """What the absence of a controlled shutdown means."""
    if before is None or (fenced is not None and fenced.batch == IN_SNAPSHOT):
        return LastStop.UNTOLD
    if fenced is None:
        return LastStop.UNCLEAN
    led = any(
        _led_before(history, row) in (broker, None)
        for row in history.same_batch(fenced)
        if isinstance(row.change, PartitionChange) and row.change.leader is not None
    )
    return LastStop.UNCLEAN if led else LastStop.UNTOLD


def _led_before(history: MetadataHistory, change: HistoryRow) -> int | None:
    """Who led the partition before that change of its leader; None: not known."""
    assert isinstance(change.subject, PartitionSubject)
    earlier = [one for one in history.intervals(change.subject) if one.offset < change.offset]
    return earlier[-1].registration.leader if earlier else None


def lost_dirs(history: MetadataHistory, broker: int) -> frozenset[str]:
    """The ids of log dirs that the broker had once, and that are not online by the newest record: they failed, or
    were replaced.
    """
    every: set[str] = set()
    online: tuple[str, ...] = ()
    for online in history.online_dirs(broker):
        every.update(online)
    return frozenset(every.difference(online))


def shut_down(history: MetadataHistory, broker: int) -> bool:
    """Whether the newest process of the broker began a controlled shutdown. Without a record nothing is known."""
    began = False
    for row in history.of(BrokerSubject(broker)):
        if isinstance(row.change, RegisterBrokerRecord):
            began = row.change.in_controlled_shutdown
        elif isinstance(row.change, BrokerRegistrationChangeRecord):
            began = began or row.change.in_controlled_shutdown is True
    return began


def restart_after_copy(history: MetadataHistory) -> BrokerRestart:
    """A copied log cannot show later restarts: any broker may have started again after its end."""
    return BrokerRestart(history.end_offset, history.end_ms or 0, LastStop.UNTOLD, frozenset(), frozenset())
