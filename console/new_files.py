"""Writing new files: never overwritten, and written completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from console.errors import InputError

_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


def write_new(path: Path, text: str, mode: int = 0o644) -> None:
    """Writes ``text`` to a file that does not exist yet, with these permissions, and returns when it is on disk.

    Whatever happens, ``path`` is absent or whole: the text goes to a file beside it, which is then linked
    under its name. Raises InputError: it exists, or cannot be written.
    """
    # An early check; the link below is what guarantees it.
    if os.path.lexists(path):
        raise InputError(f"{path}: it exists, and is never overwritten")
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with _removed(beside):
            _write(beside, text.encode(), mode)
            os.link(beside, path)
        sync_directory(path.parent)
    except FileExistsError:
        raise InputError(f"{path}: it exists, and is never overwritten") from None
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
