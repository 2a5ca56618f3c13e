"""Writing the journal: one line before and one after each thing that is sent."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from console.journal.cluster_lock import ClusterLock, LockHolder, holder
from console.journal.errors import JournalError
from console.journal.journal_lines import (
    after_members,
    before_members,
    encode,
    moment,
    partition_list,
)
from console.journal.state_access import PRIVATE, StateAccess, make_directory, make_file, records_access
from console.new_files import sync_directory
from console.paths import cluster_name, records_dir
from console.redaction import redact, redact_arguments
from recovery.model import TopicPartition
from recovery.requests_in_doubt import REORDER


@dataclass(frozen=True, slots=True)
class JournalRun:
    """The operator, command and reason of a run; ``reason`` is empty if none was asked for. ``directories`` are the
    directory ids of the cluster's nodes, empty where they were not told: the cluster id alone may be another
    cluster's too.
    """

    run_id: str
    command: Sequence[str]
    user: str
    host: str
    pid: int
    reason: str
    tool_version: str
    directories: Collection[str] = ()


LOCK = "lock"
"""The lock file, in the directory of the cluster's runs."""
AHEAD = 8
"""The disk must have room for so many lines as long as a reorder's: the reorder, the election and the revert, for
several batches at once.
"""


class Journal:
    """One run's file, and the lock on its cluster; a :class:`backends.base.protocol.Recorder`."""

    def __init__(
        self, run: JournalRun, clock: Callable[[], datetime], file: _LineFile, lock: ClusterLock
    ) -> None:
        self._run = run
        self._clock = clock
        self._file = file
        self._lock = lock
        self._entries = 0
        self._unwritten = b""
        self._status: int | None = None
        self._counts: Mapping[str, int] = {}

    @classmethod
    def open(
        cls,
        cluster_id: str,
        run: JournalRun,
        clock: Callable[[], datetime],
        root: Path | None = None,
        access: StateAccess | None = None,
    ) -> Journal:
        """Takes the cluster's lock and creates the run's file.

        ``root`` is the state directory, by default the one that this process uses (:mod:`console.paths`), and
        ``access`` who may use it. Raises JournalLocked if another run has the lock, JournalError if nothing can be
        recorded.
        """
        directory = cluster_directory(cluster_id, root)
        if access is None:
            access = records_access() if root is None else PRIVATE
        about: dict[str, object] = {
            "run": run.run_id,
            "clusterId": cluster_id,
            "command": redact_arguments(run.command),
            "user": run.user,
            "host": run.host,
            "pid": run.pid,
            "reason": redact(run.reason),
            "toolVersion": run.tool_version,
        }
        try:
            make_directories(directory, access)
        except OSError as error:
            raise JournalError(f"{directory}: cannot be made: {error.strerror}") from None
        lock = ClusterLock.take(directory / LOCK, {"at": moment(clock()), **about}, access)
        try:
            file = _LineFile(_next_file(directory, run.run_id), access)
            journal = cls(run, clock, file, lock)
            directories = {"directories": sorted(run.directories)} if run.directories else {}
            file.append(encode("run", clock(), {**about, **directories}))
        except BaseException:
            lock.release()
            raise
        return journal

    @property
    def path(self) -> Path:
        """The run's own file."""
        return self._file.path

    def now(self) -> datetime:
        """The current time, from the clock that stamps the lines."""
        return self._clock()

    def before(self, action: str, detail: Mapping[str, object]) -> str:
        """Records an intention and returns the entry's id once it is on disk.

        Raises JournalError if it cannot be written; then nothing may be sent.
        """
        entry = f"{self._run.run_id}/{self._entries + 1}"
        line = encode("before", self._clock(), before_members(entry, action, detail))
        if action == REORDER:
            # The election and the revert name the same rows: without room for them the run would stop half-way.
            self._file.require_room(AHEAD * len(line))
        self._file.append(self._unwritten + line)
        self._unwritten = b""
        self._entries += 1
        return entry

    def after(self, entry: str, result: Mapping[str, object]) -> None:
        """Records how an entry ended.

        Does not raise on a full disk: the request was sent, and something may have to be undone. The line is
        written before the next one. Until then the entry counts as unfinished. It also does after a power loss,
        because only the next intention, or the end of the run, waits for the disk.
        """
        self._write_or_keep(encode("after", self._clock(), after_members(entry, result)), sync=False)

    def settle(self, why: str, entries: Iterable[str] = (), rows: Iterable[TopicPartition] = ()) -> None:
        """Records that entries of earlier runs, and their reorders of ``rows``, are finished."""
        members: dict[str, object] = {
            "why": redact(why),
            "entries": list(entries),
            "rows": partition_list(rows),
        }
        self._write_or_keep(encode("settled", self._clock(), members))

    def reason(self, reason: str) -> None:
        """Records the reason of the run, if it was asked for after the start. Raises JournalError."""
        line = encode("reason", self._clock(), {"reason": redact(reason)})
        self._file.append(self._unwritten + line)
        self._unwritten = b""

    def conclude(self, status: int, counts: Mapping[str, int] | None = None) -> None:
        """Sets the content of the last line: the exit status, and the number of rows by outcome, sent or not."""
        self._status = status
        self._counts = {str(name): count for name, count in (counts or {}).items() if count}

    def close(self, status: int | None = None) -> None:
        """Ends the run's file with its exit status (default: that of :meth:`conclude`), and releases the
        lock.

        May be called twice. Raises JournalError if the last lines could not be written.
        """
        if self._file.closed:
            return
        try:
            ended = {"status": self._status if status is None else status, "counts": self._counts}
            self._file.append(self._unwritten + encode("end", self._clock(), ended))
        finally:
            self._file.close()
            self._lock.release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            with contextlib.suppress(JournalError):
                self.close()

    def _write_or_keep(self, line: bytes, *, sync: bool = True) -> None:
        self._unwritten += line
        with contextlib.suppress(JournalError):
            self._file.append(self._unwritten, sync=sync)
            self._unwritten = b""


class _LineFile:
    """A file to which only whole lines are appended. They are on disk when :meth:`append` returns, unless ``sync``
    is False."""

    def __init__(self, path: Path, access: StateAccess = PRIVATE) -> None:
        """Creates the file. Raises JournalError."""
        self.path = path
        self._size = 0
        self._torn = ""
        try:
            flags = os.O_WRONLY | os.O_EXCL | os.O_APPEND
            self._descriptor: int | None = make_file(path, flags, access)
            sync_directory(path.parent)
        except OSError as error:
            raise JournalError(f"{path}: cannot be made: {error.strerror}") from None

    @property
    def closed(self) -> bool:
        return self._descriptor is None

    def require_room(self, size: int) -> None:
        """Raises JournalError if the disk has fewer than ``size`` bytes free."""
        try:
            disk = os.statvfs(self.path)
        except OSError:
            return  # the write itself will fail
        left = disk.f_bavail * disk.f_frsize
        if left < size:
            raise JournalError(
                f"{self.path}: its disk has {left:,} bytes free, and up to {size:,} are needed"
            )

    def append(self, lines: bytes, *, sync: bool = True) -> None:
        """Writes whole lines and waits for the disk. Raises JournalError; then the file is as it was."""
        if self._descriptor is None or self._torn:
            raise JournalError(f"{self.path}: cannot be written: {self._torn or 'it is closed'}")
        try:
            self._write(self._descriptor, lines)
        except OSError as error:
            self._cut(self._descriptor)
            raise JournalError(f"{self.path}: cannot be written: {error.strerror}") from None
        try:
            if sync:
                os.fsync(self._descriptor)
        except OSError as error:
            # After a failed fsync nobody knows what is on disk, and a second one would claim success.
            self._torn = f"the disk failed ({error.strerror})"
            raise JournalError(f"{self.path}: cannot be written: {self._torn}") from None
        self._size += len(lines)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @staticmethod
    def _write(descriptor: int, lines: bytes) -> None:
        left = memoryview(lines)
        while left:
            left = left[os.write(descriptor, left) :]

    def _cut(self, descriptor: int) -> None:
        """Removes a half-written line: only the last line of a file may be broken."""
        try:
            os.ftruncate(descriptor, self._size)
        except OSError as error:
            self._torn = f"a half-written line could not be removed ({error.strerror})"


def cluster_directory(cluster_id: str, root: Path | None = None) -> Path:
    """The directory of a cluster's journal, under ``root`` (default: the state directory that this process
    uses).
    """
    name = cluster_name(cluster_id)
    if not name:
        raise JournalError("the cluster has no id, so nothing that is sent to it can be recorded")
    return (root or records_dir()) / name


def running(cluster_id: str, root: Path | None = None) -> LockHolder | None:
    """The run that may be changing the cluster now, according to the state directory.

    Raises JournalError without an id.
    """
    return holder(cluster_directory(cluster_id, root) / LOCK)


def make_directories(path: Path, access: StateAccess) -> None:
    """Creates the missing directories of ``path``; they are on disk when this returns. Raises OSError."""
    missing = [part for part in (path, *path.parents) if not part.exists()]
    for part in reversed(missing):
        with contextlib.suppress(FileExistsError):
            make_directory(part, access)
        sync_directory(part.parent)


def _next_file(directory: Path, run_id: str) -> Path:
    """Numbered, so that the order of runs does not depend on a clock."""
    numbers = [int(path.name[:6]) for path in directory.glob("[0-9]" * 6 + "-*.jsonl")]
    return directory / f"{max(numbers, default=0) + 1:06d}-{quote(run_id, safe='')}.jsonl"
