"""Files on disk: new ones are never overwritten, and written completely or not at all; segments are appended to; a
directory is written by one process at a time.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from console.errors import InputError

_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


def refuse_existing(*paths: Path) -> None:
    """Raises InputError for a file or directory that is there."""
    for path in paths:
        if os.path.lexists(path):
            raise _exists(path)


def _exists(path: Path) -> InputError:
    return InputError(f"{path}: it exists, and is never overwritten")


def write_new(path: Path, text: str, mode: int = 0o644) -> None:
    """Writes ``text`` to a file that does not exist yet, with these permissions, and returns when it is on disk.

    Whatever happens, ``path`` is absent or whole. Raises InputError: it exists, or cannot be written.
    """
    with whole_new_file(path) as beside:
        _write(beside, text.encode(), mode)


@contextlib.contextmanager
def whole_new_file(path: Path) -> Iterator[Path]:
    """The name of a file beside ``path``, which the block writes and brings to the disk; at the end it is linked as
    ``path``, which so is absent or whole. Raises InputError: it exists, or cannot be written.
    """
    # An early check; the link below is what guarantees it.
    refuse_existing(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with _removed(beside):
            yield beside
            os.link(beside, path)
        sync_directory(path.parent)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        why = error.strerror
        if error.errno in _NO_LINKS:
            why = "this file system cannot make a file whole under a new name (no hard links)"
        raise InputError(f"{path}: cannot be written: {why}") from None


def replace_own(path: Path, text: str, mode: int) -> None:
    """Writes ``text`` in place of a file of this program's own; whatever happens, the old or the new one is there.

    Raises InputError.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with _removed(beside):
            _write(beside, text.encode(), mode)
            beside.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


@contextlib.contextmanager
def _removed(path: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _write(path: Path, data: bytes, mode: int) -> None:
    # A file of that name is what an earlier process of the same id left behind.
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Puts a directory's entries on disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def locked(path: Path) -> int:
    """A descriptor that holds the directory's lock until it is closed. Raises InputError: another run has it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"{path}: cannot be used: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise InputError(f"{path}: another run is writing to it") from None
    return descriptor


SEGMENT_BYTES = 1 << 30
"""A segment ends before it becomes larger, as Kafka's own do by default."""
MOST_OFFSETS = (1 << 31) - 1
"""Offsets in a segment: its index holds them in 31 bits."""
SPARE_BYTES = 64 << 20
"""Bytes that are left free on the disk, for the journal and the plan."""


def has_room(fd: int, count: int) -> bool:
    """Whether SPARE_BYTES are left on the file's disk after ``count`` more bytes. Raises OSError."""
    disk = os.fstatvfs(fd)
    return disk.f_bavail * disk.f_frsize >= count + SPARE_BYTES


def append_whole(fd: int, data: memoryview, size: int) -> None:
    """Appends ``data`` to a file that has ``size`` bytes. Raises OSError; then it has ``size`` bytes again."""
    written = 0
    try:
        while written < len(data):
            written += os.write(fd, data[written:])
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(fd, size)
        raise
