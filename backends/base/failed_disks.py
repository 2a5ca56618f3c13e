"""Which brokers' disks failed under a partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backends.base.answers import LogDir
from recovery.model import Survey, Unknown

LogDirs = Mapping[int, Sequence[LogDir] | Unknown]
"""Each broker's log dirs, or why they are not known."""


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
