"""One run at a time may change a cluster from this host: a lock on a file, let go by the kernel at the end."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path

from console.journal.errors import JournalError, JournalLocked


class Lock:
    """Held from :meth:`take` until :meth:`release`, or until the process ends however it ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, path: Path, holder: Mapping[str, object]) -> Lock:
        """Takes the lock, and writes who holds it. Raises JournalLocked, JournalError."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise JournalError(f"{path}: cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.truncate(descriptor, 0)
            os.write(descriptor, json.dumps(holder).encode())
        except OSError as error:
            locked = error.errno in (errno.EWOULDBLOCK, errno.EACCES)
            seen = _held_by(descriptor) if locked else ""
            os.close(descriptor)
            if locked:
                raise JournalLocked(
                    f"another run on this host may be changing this cluster: {seen}; nothing was sent"
                ) from None
            raise JournalError(f"{path}: cannot be locked: {error.strerror}") from None
        return cls(path, descriptor)

    def release(self) -> None:
        """Lets go; may be called twice."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.truncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def _held_by(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 1 << 16, 0))
        command = " ".join(holder["command"])
        return f"pid {holder['pid']} of {holder['user']} since {holder['at']}: {command}"
    except (OSError, ValueError, KeyError, TypeError):
        return "it has not said who it is"
