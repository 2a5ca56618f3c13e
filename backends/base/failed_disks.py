"""Which brokers' disks failed under a partition, and which brokers' disks are not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from backends.base.answers import LogDir
from recovery.acknowledged.broker_restarts import lost_dirs
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import PartitionSubject
from recovery.model import PartitionState, Survey, Unknown

LogDirs = Mapping[int, Sequence[LogDir] | Unknown]
"""Each broker's log dirs, or why they are not known."""


def brokers_not_listed(log_dirs: LogDirs, states: Iterable[PartitionState]) -> tuple[int, ...]:
    """The brokers whose log dirs are not known: they did not tell, or were not there to be asked and have replicas.
    None where nobody was asked.
    """
    if not log_dirs:
        return ()
    hosts = {broker for state in states for broker in state.replicas}
    silent = {broker for broker, dirs in log_dirs.items() if isinstance(dirs, Unknown)}
    return tuple(sorted(silent | hosts.difference(log_dirs)))


class FailedDisks:
    """Which brokers' disks failed under a partition. ``failed_before`` are log dirs that had failed, of brokers
    that list none now, with what was on them. Of such brokers the metadata log tells too on which log dir each
    replica was, and whether that is online (KIP-858): ``history`` is the log, or why it was not read.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        failed_before: Sequence[LogDir] = (),
        history: MetadataHistory | Unknown | None = None,
    ) -> None:
        self._now = {
            broker
            for broker, dirs in log_dirs.items()
            if not isinstance(dirs, Unknown) and any(one.error for one in dirs)
        }
        self._listing = {broker for broker, dirs in log_dirs.items() if not isinstance(dirs, Unknown)}
        self._history = history if isinstance(history, MetadataHistory) else None
        self._lost: dict[int, frozenset[str]] = {}
        self._before = {(one.broker, replica.tp) for one in failed_before for replica in one.replicas}

    def under(self, survey: Survey) -> frozenset[int]:
        """The brokers that did not report this log, and that have a log dir that failed, or had when they stopped
        and the log was on it.
        """
        return frozenset(
            replica.broker
            for replica in survey.replicas
            if isinstance(replica.log, Unknown) and self._failed(survey.state, replica.broker)
        )

    def _failed(self, state: PartitionState, broker: int) -> bool:
        if broker in self._now or (broker, state.tp) in self._before:
            return True
        if self._history is None or broker in self._listing:
            return False
        if broker not in self._lost:
            self._lost[broker] = lost_dirs(self._history, broker)
        if not self._lost[broker]:
            return False
        changes = self._history.intervals(PartitionSubject(state.topic_id, state.partition))
        return bool(changes) and changes[-1].registration.directory(broker) in self._lost[broker]
