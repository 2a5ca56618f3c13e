"""The log dirs of a broker's machine, which outlive its process, and the process's reads and writes on them.

The first read or write that fails takes a log dir offline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from backends.simulator.broker.replica_log import Log, after_crash, checkpointed, flushed
from backends.simulator.events import Emit, LogChanged
from recovery.controller.registration import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
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
    checkpoint file. ``generations`` tell which topic of its name a log belongs to (partition.metadata); 0 where
    there is no entry. ``bad`` are partitions whose own files fail in a working log dir. ``clean_shutdown_epoch``
    is the content of the clean shutdown file, None without one. ``metadata_read``: the newest offset of the
    quorum's own log up to which it has the metadata log, -1 for none of it; at time 0 it has what was there.
    """

    def __init__(self, directories: list[LogDirState]) -> None:
        self.directories = directories
        self.logs: dict[TopicPartition, Log] = {}
        self.dirty: dict[TopicPartition, None] = {}
        self.unchecked: dict[TopicPartition, None] = {}
        self.bad: dict[TopicPartition, None] = {}
        self.generations: dict[TopicPartition, int] = {}
        self.clean_shutdown_epoch: int | None = None
        self.metadata_read = 0

    def store(self, tp: TopicPartition, log: Log) -> None:
        """Write the log. Records beyond the flushed offset are in the page cache only."""
        self.logs[tp] = log
        if log.flushed < log.end:
            self.dirty[tp] = None
        if log.checkpoint != log.high_watermark:
            self.unchecked[tp] = None

    def delete(self, tp: TopicPartition) -> None:
        self.logs.pop(tp, None)
        self.generations.pop(tp, None)
        for marks in (self.dirty, self.unchecked, self.bad):
            marks.pop(tp, None)

    def log_of(self, tp: TopicPartition, generation: int) -> Log | None:
        """The log, if it belongs to that topic of the name."""
        log = self.logs.get(tp)
        return log if log is not None and self.generations.get(tp, 0) == generation else None

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
        if directory == 0:
            self.metadata_read = -1
        self.directories[directory] = LogDirState(self.directories[directory].path, new_id)
        return gone


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

    def create(self, tp: TopicPartition, directory: str | None, generation: int = 0) -> bool:
        """Create an empty log of that ``generation`` of the topic, in the log dir that the metadata names or in the
        one with the fewest logs.

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
        if generation:
            self.disk.generations[tp] = generation
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
