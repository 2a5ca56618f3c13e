"""Directories for clusters' files; also removes those of processes that were killed.

They are in /dev/shm if it has room and TMPDIR is not set, because that is three times as fast. Measured on two busy
cores: 1,000 partitions with 3 replicas each are created in 6 s instead of 18.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

_PREFIX = "ktriage-kafka-"
_LOCK = "owner.lock"
_MEMORY = Path("/dev/shm")  # noqa: S108 - made by mkdtemp, for its owner only
_ROOM_BYTES = 4 << 30
_TAKEN = "taken\n"


class WorkDirectory:
    """A new temporary directory (or the given one, which stays), locked while this process lives."""

    def __init__(self, given: Path | None = None) -> None:
        _remove_orphans()
        self._temporary = given is None
        self.path = given or Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_parent()))
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = (self.path / _LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # An empty lock file belongs to a directory that is still being created, so mark it only now.
        self._lock.write(_TAKEN)
        self._lock.flush()

    def release(self) -> None:
        """Remove a temporary directory; harmless twice."""
        if self._temporary:
            shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _parent() -> Path:
    if "TMPDIR" not in os.environ and _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK):
        room = os.statvfs(_MEMORY)
        if room.f_bavail * room.f_frsize >= _ROOM_BYTES:
            return _MEMORY
    return Path(tempfile.gettempdir())


def _remove_orphans() -> None:
    for lock_file in _parent().glob(f"{_PREFIX}*/{_LOCK}"):
        try:
            with lock_file.open() as lock:
                if _is_free(lock) and lock.read() == _TAKEN:
                    shutil.rmtree(lock_file.parent, ignore_errors=True)
        except OSError:
            # It belongs to another user, or is already gone.
            continue


def _is_free(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
