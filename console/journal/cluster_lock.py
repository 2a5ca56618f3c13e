"""One run at a time may change a cluster.

On one host, for all users, the lock is flock on a file: the kernel releases it however the run ends. Whether flock
works across hosts depends on the mount (NFS 4: yes; others: no, or unknown). So a state directory that several
hosts may use has a second file, the owner file. The run that has the lock creates it with O_EXCL, which is atomic
on every network file system, and deletes it at its end. An owner file of another host is never deleted: this host
cannot know whether that run has ended.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from console.journal.errors import JournalError, JournalLocked
from console.journal.state_access import PRIVATE, StateAccess, make_file

UNNAMED = "its name is not in the lock file yet"
ATTEMPTS, BETWEEN = 5, 0.01
"""Seconds between two attempts: a reader that asks who has the lock (:func:`holder`) has it for an instant
itself.
"""


class LockHolder(NamedTuple):
    """The run that has the lock of a cluster, as it wrote itself into the lock file."""

    run_id: str
    pid: int
    user: str
    at: str
    command: str
    host: str = ""

    def __str__(self) -> str:
        where = f" on {self.host}" if self.host else ""
        return f"pid {self.pid} of {self.user}{where} since {self.at}: {self.command}"


OWNER = "lock.owner"
"""The owner file: next to the lock, it keeps out runs on other hosts."""


class ClusterLock:
    """A cluster's lock, from :meth:`take` until :meth:`release` or the end of the process."""

    def __init__(self, path: Path, descriptor: int, owner: Path | None) -> None:
        self._path = path
        self._descriptor: int | None = descriptor
        self._owner = owner

    @classmethod
    def take(cls, path: Path, holder: Mapping[str, object], access: StateAccess = PRIVATE) -> ClusterLock:
        """Takes the lock and writes who has it. Raises JournalLocked, JournalError."""
        try:
            descriptor = make_file(path, os.O_RDWR, access)
        except OSError as error:
            raise JournalError(f"{path}: cannot be opened: {error.strerror}") from None
        owner = path.with_name(OWNER) if access.other_hosts else None
        try:
            _lock(descriptor)
            if owner is not None:
                _own(owner, holder, access)
            try:
                os.truncate(descriptor, 0)
                os.write(descriptor, json.dumps(holder).encode())
            except OSError:
                if owner is not None:
                    owner.unlink()
                raise
        except JournalError:
            os.close(descriptor)
            raise
        except OSError as error:
            locked = error.errno in (errno.EWOULDBLOCK, errno.EACCES)
            other_run = str(_holder(descriptor) or UNNAMED) if locked else ""
            os.close(descriptor)
            if locked:
                raise JournalLocked(
                    f"another run on this host may be changing this cluster: {other_run}; nothing was sent"
                ) from None
            raise JournalError(f"{path}: cannot be locked: {error.strerror}") from None
        return cls(path, descriptor, owner)

    def release(self) -> None:
        """Releases the lock; may be called twice."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                if self._owner is not None:
                    self._owner.unlink()
            with contextlib.suppress(OSError):
                os.truncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def _own(path: Path, holder: Mapping[str, object], access: StateAccess) -> None:
    """Creates the owner file; the caller has the lock of this host. Raises JournalLocked, JournalError, OSError."""
    try:
        descriptor = make_file(path, os.O_WRONLY | os.O_EXCL, access)
    except PermissionError as error:
        # EACCES of flock means that another run has the lock; here it is a missing right.
        raise JournalError(f"{path}: cannot be created: {error.strerror}; nothing was sent") from None
    except FileExistsError:
        left = _owner(path)
        if left is None or left.host != holder["host"]:
            raise JournalLocked(
                f"a run on another host may be changing this cluster: {left or UNNAMED}; nothing was sent. Once you"
                f" know that it has ended, remove {path}"
            ) from None
        # A killed run of this host: the kernel released its lock, and this run has it now.
        path.unlink()
        descriptor = make_file(path, os.O_WRONLY | os.O_EXCL, access)
    try:
        os.write(descriptor, json.dumps(holder).encode())
        os.fsync(descriptor)
    except OSError:
        # On a full disk an owner file without a name would keep out every host, this one too.
        path.unlink()
        raise
    finally:
        os.close(descriptor)


def holder(path: Path) -> LockHolder | None:
    """The run that has the lock now, as far as this host can see; None if there is none, or if it has not written
    its name yet.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        found = _holder(descriptor)
        # A killed run is still named in the file, but the kernel has released its lock.
        if found is not None and _is_locked(descriptor):
            return found
    finally:
        os.close(descriptor)
    owner = _owner(path.with_name(OWNER))
    return owner if owner is not None and owner.host != platform.node() else None


def _owner(path: Path) -> LockHolder | None:
    """The run that the owner file names; None if it names nobody or cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        return _holder(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    for _ in range(ATTEMPTS):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(BETWEEN)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EWOULDBLOCK, errno.EACCES)
    return False


def _holder(descriptor: int) -> LockHolder | None:
    try:
        content = json.loads(os.pread(descriptor, 1 << 16, 0))
        return LockHolder(
            str(content.get("run", "")),
            content["pid"],
            content["user"],
            content["at"],
            " ".join(content["command"]),
            str(content.get("host", "")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
