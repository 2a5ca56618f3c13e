"""What a broker's process leaves on its machine: log dirs, the logs in them, and the clean shutdown file."""

from __future__ import annotations

from dataclasses import dataclass

from backends.simulator.broker.replica_log import Log, after_crash, checkpointed, flushed
from recovery.model import TopicPartition


@dataclass(slots=True)
class LogDirState:
    """One entry of ``log.dirs``. ``broken``: every read and write fails from now on, noticed or not."""

    path: str
    id: str
    broken: bool = False


class BrokerDisk:
    """Outlives the process.

    ``dirty`` are the logs with unflushed data, ``unchecked`` those whose high watermark is not in the
    checkpoint file. ``bad`` are partitions whose own files fail in a working log dir. ``clean_shutdown_epoch``
    is the content of the clean shutdown file, None without one.
    """

    def __init__(self, directories: list[LogDirState]) -> None:
        self.directories = directories
        self.logs: dict[TopicPartition, Log] = {}
        self.dirty: dict[TopicPartition, None] = {}
        self.unchecked: dict[TopicPartition, None] = {}
        self.bad: dict[TopicPartition, None] = {}
        self.clean_shutdown_epoch: int | None = None

    def store(self, tp: TopicPartition, log: Log) -> None:
        """Write the log. Records beyond the flushed offset are in the page cache only."""
        self.logs[tp] = log
        if log.flushed < log.end:
            self.dirty[tp] = None
        if log.checkpoint != log.high_watermark:
            self.unchecked[tp] = None

    def delete(self, tp: TopicPartition) -> None:
        self.logs.pop(tp, None)
        for marks in (self.dirty, self.unchecked, self.bad):
            marks.pop(tp, None)

    def flush(self) -> None:
        """Write the page cache to the disks of the log dirs that still work."""
        for tp in list(self.dirty):
            if self.works(tp):
                self.logs[tp] = flushed(self.logs[tp])
                del self.dirty[tp]

    def checkpoint(self) -> None:
        """Write the high watermarks to ``replication-offset-checkpoint``, where the log dir still works."""
        for tp in list(self.unchecked):
            if self.works(tp):
                log = self.logs[tp]
                self.logs[tp] = checkpointed(log)
                del self.unchecked[tp]

    def works(self, tp: TopicPartition) -> bool:
        """Whether the partition's files can be read and written."""
        return tp not in self.bad and not self.directories[self.logs[tp].directory].broken

    def crash(self, *, power_lost: bool) -> list[TopicPartition]:
        """The process ended without a clean shutdown. Returns the partitions that lost records with the page
        cache.
        """
        self.clean_shutdown_epoch = None
        lost = [tp for tp in self.dirty if self.logs[tp].dirty] if power_lost else []
        for tp in {**self.dirty, **self.unchecked} if power_lost else self.unchecked:
            self.logs[tp] = after_crash(self.logs[tp], power_lost=power_lost)
        self.unchecked.clear()
        if power_lost:
            self.dirty.clear()
        return lost

    def shut_down(self, epoch: int) -> None:
        """A clean shutdown: flush everything and write the clean shutdown file."""
        self.flush()
        self.checkpoint()
        self.clean_shutdown_epoch = epoch

    def replace(self, directory: int, new_id: str) -> list[TopicPartition]:
        """Put a new, empty disk in the place of a log dir. Returns the partitions that were on the old one."""
        gone = [tp for tp, log in self.logs.items() if log.directory == directory]
        for tp in gone:
            self.delete(tp)
        self.directories[directory] = LogDirState(self.directories[directory].path, new_id)
        return gone
