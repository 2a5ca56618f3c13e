"""One run at a time may change a cluster from this host: a lock on a file, let go by the kernel at the end."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from console.journal.errors import JournalError, JournalLocked

ATTEMPTS, BETWEEN = 5, 0.01
"""A reader that asks who holds the lock (:func:`holder`) has it for an instant itself; seconds between."""


class Holder(NamedTuple):
    """The run that holds the lock of a cluster, as it wrote itself down."""

    run_id: str
    pid: int
    user: str
    at: str
    command: str

    def __str__(self) -> str:
        return f"pid {self.pid} of {self.user} since {self.at}: {self.command}"


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
            _lock(descriptor)
            os.truncate(descriptor, 0)
            os.write(descriptor, json.dumps(holder).encode())
        except OSError as error:
            locked = error.errno in (errno.EWOULDBLOCK, errno.EACCES)
            seen = str(_holder(descriptor) or "it has not said who it is") if locked else ""
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


def holder(path: Path) -> Holder | None:
    """The run that holds the lock at this moment. None: none does, or it has not said yet who it is."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = _holder(descriptor)
        # A run that was killed stays written down there, and the kernel has let go of its lock.
        return found if found is not None and _is_held(descriptor) else None
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    for _ in range(ATTEMPTS):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(BETWEEN)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_held(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EWOULDBLOCK, errno.EACCES)
    return False


def _holder(descriptor: int) -> Holder | None:
    try:
        told = json.loads(os.pread(descriptor, 1 << 16, 0))
        return Holder(
            str(told.get("run", "")), told["pid"], told["user"], told["at"], " ".join(told["command"])
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
