"""Which brokers' disks failed under a partition, and which brokers' disks are not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from backends.base.answers import LogDir
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
    that list none now, with what was on them.
    """

    def __init__(self, log_dirs: LogDirs, failed_before: Sequence[LogDir] = ()) -> None:
        self._now = {
            broker
            for broker, dirs in log_dirs.items()
            if not isinstance(dirs, Unknown) and any(one.error for one in dirs)
        }
        self._before = {(one.broker, replica.tp) for one in failed_before for replica in one.replicas}

    def under(self, survey: Survey) -> frozenset[int]:
        """The brokers that did not report this log, and that have a log dir that failed, or had when they stopped
        and the log was on it.
        """
        if not self._now and not self._before:
            return frozenset()
        tp = survey.tp
        return frozenset(
            replica.broker
            for replica in survey.replicas
            if isinstance(replica.log, Unknown)
            and (replica.broker in self._now or (replica.broker, tp) in self._before)
        )
