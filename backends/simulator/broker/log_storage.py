"""Reads and writes of a broker process on its disks. The first read or write that fails takes a log dir offline."""

from __future__ import annotations

from collections.abc import Callable

from backends.simulator.broker.disk import BrokerDisk
from backends.simulator.broker.replica_log import Log
from backends.simulator.events import Emit, LogChanged
from recovery.controller.registration import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from recovery.model import TopicPartition


class LogStorage:
    """``failed`` are the indexes of the log dirs that this process has taken offline. ``failed_partitions`` are
    failed partitions in working log dirs. A restarted process begins again with what works then.
    """

    def __init__(
        self,
        broker: int,
        disk: BrokerDisk,
        emit: Emit,
        note: Callable[[str], None],
        went_offline: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._emit = emit
        self._note = note
        self.disk = disk
        self._went_offline = went_offline
        self.failed = {index: None for index, directory in enumerate(disk.directories) if directory.broken}
        self.failed_partitions: dict[TopicPartition, None] = {}

    @property
    def failed_ids(self) -> tuple[str, ...]:
        return tuple(self.disk.directories[index].id for index in self.failed)

    @property
    def online_ids(self) -> tuple[str, ...]:
        directories = enumerate(self.disk.directories)
        return tuple(directory.id for index, directory in directories if index not in self.failed)

    @property
    def sound(self) -> bool:
        """Whether nothing has failed here, noticed or not."""
        disk = self.disk
        failed = self.failed or self.failed_partitions or disk.bad
        return not failed and not any(directory.broken for directory in disk.directories)

    def log(self, tp: TopicPartition) -> Log:
        """The log in this process's memory. Raises KeyError if there is none."""
        return self.disk.logs[tp]

    def offline(self, tp: TopicPartition) -> bool:
        """Whether the partition is known to be offline here, or has no log here."""
        log = self.disk.logs.get(tp)
        return log is None or log.directory in self.failed or tp in self.failed_partitions

    def read(self, tp: TopicPartition) -> Log | None:
        """The log; None if reading it fails."""
        # Repeats offline, as write does: a run reads and writes more often than it does anything else.
        log = self.disk.logs.get(tp)
        if log is None or log.directory in self.failed or tp in self.failed_partitions or not self._works(tp):
            return None
        return log

    def write(self, tp: TopicPartition, log: Log) -> bool:
        """Replace the log; False if the write fails, and then nothing is written."""
        before = self.disk.logs.get(tp)
        if before is None or before.directory in self.failed or tp in self.failed_partitions:
            return False
        if not self._works(tp):
            return False
        self.disk.store(tp, log)
        self._emit(LogChanged(self._broker, tp))
        return True

    def _works(self, tp: TopicPartition) -> bool:
        if self.disk.works(tp):
            return True
        directory = self.disk.logs[tp].directory
        if self.disk.directories[directory].broken:
            self._fail(directory)
        else:
            self.failed_partitions[tp] = None
            self._note(f"IO error: {tp} is offline")
            self._went_offline()
        return False

    def _fail(self, directory: int) -> None:
        self.failed[directory] = None
        path = self.disk.directories[directory].path
        self._note(f"IO error: log dir {path} is offline")
        self._went_offline()

    def checkpoint(self) -> None:
        """Write the high watermarks to every online log dir. A broken one is noticed here at the latest."""
        for index, directory in enumerate(self.disk.directories):
            if directory.broken and index not in self.failed:
                self._fail(index)
        self.disk.checkpoint()

    def create(self, tp: TopicPartition, directory: str | None) -> bool:
        """Create an empty log, in the log dir that the metadata names or in the one with the fewest logs.

        Returns False, and creates nothing, if that log dir is offline, or if all are.
        """
        ids = {log_dir.id: index for index, log_dir in enumerate(self.disk.directories)}
        placed = directory not in (None, UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY, LOST_DIRECTORY)
        # The metadata may still name the directory id of a disk that was replaced.
        index = ids[directory] if placed and directory in ids else self._emptiest()
        if index < 0 or index in self.failed:
            return False
        if self.disk.directories[index].broken:
            self._fail(index)
            return False
        self.disk.store(tp, Log(directory=index))
        self._emit(LogChanged(self._broker, tp))
        return True

    def _emptiest(self) -> int:
        counts = {index: 0 for index in range(len(self.disk.directories)) if index not in self.failed}
        if len(counts) < 2:
            return next(iter(counts), -1)
        for log in self.disk.logs.values():
            if log.directory in counts:
                counts[log.directory] += 1
        return min(counts, key=lambda index: counts[index])

    def delete(self, tp: TopicPartition) -> None:
        self.failed_partitions.pop(tp, None)
        if tp in self.disk.logs:
            self.disk.delete(tp)
            self._emit(LogChanged(self._broker, tp))
