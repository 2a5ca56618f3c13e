"""Writes to the directory of a stopped node's metadata log: whole or not at all, and back again.

Whatever is written goes to a new file or directory beside the old one, is put on disk, and is then renamed. A
process that is killed in between leaves files that Kafka does not look at, and that the next run removes.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from backends.log_segments.segment_source import reason_of
from backends.metadata_log.directory import log_files
from backends.metadata_log.quorum_copy import LOCK, PROPERTIES
from recovery.membership.quorum_rebuild import PlannedFile

PARTIAL = ".ktriage-part"
UNDONE = ".ktriage-undone"
_INDEXES = (".index", ".timeindex", ".txnindex")
"""Kafka makes them anew: it recovers the whole metadata log at every start (KafkaMetadataLog)."""
_PIECE = 1 << 20
_SPARE = 64 << 20
"""Bytes that are left free on a disk."""


class RewriteError(Exception):
    """Nothing was changed in the directory, or it is as the message says. One line for a person."""


def planned_files(directory: Path) -> tuple[PlannedFile, ...]:
    """The segments and snapshots with their checksums. Raises MetadataDirError, RewriteError."""
    segments, snapshots = log_files(directory)
    return tuple(planned_file(path) for _, path in (*segments, *snapshots))


def planned_file(path: Path) -> PlannedFile:
    """Raises RewriteError."""
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RewriteError(f"{path}: is no regular file")
            while data := file.read(_PIECE):
                digest.update(data)
                size += len(data)
    except OSError as error:
        raise RewriteError(f"{path}: cannot be read: {reason_of(error)}") from None
    return PlannedFile(path.name, size, digest.hexdigest())


@contextlib.contextmanager
def node_locked(log_dir: Path) -> Iterator[None]:
    """Holds the lock that a Kafka node takes in its log dir: it cannot start meanwhile. Raises RewriteError: a
    node runs, or another run is writing.
    """
    path = log_dir / LOCK
    try:
        owner = (log_dir / PROPERTIES).stat()
        created = not path.exists()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise RewriteError(f"{path}: cannot be opened: {reason_of(error)}") from None
    try:
        if created:
            give(descriptor, owner)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RewriteError(f"{log_dir}: its node runs, or another run is writing to it") from None
        yield
    finally:
        os.close(descriptor)


def give(descriptor: int, owner: os.stat_result) -> None:
    """Makes the node's user the owner of a new file: Kafka must be able to write to it. Raises RewriteError."""
    own = os.geteuid(), os.getegid()
    if (owner.st_uid, owner.st_gid) == own:
        return
    try:
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
    except OSError as error:
        raise RewriteError(
            f"the files belong to user {owner.st_uid} and group {owner.st_gid}, and this runs as user {own[0]} and"
            f" group {own[1]}: run it as that user with that group, or as root ({reason_of(error)})"
        ) from None


def sync(path: Path) -> None:
    """Puts a directory's entries on disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def require_room(directory: Path, count: int) -> None:
    """Raises RewriteError where the disk has no room for so many bytes more."""
    disk = os.statvfs(directory)
    if disk.f_bavail * disk.f_frsize < count + _SPARE:
        raise RewriteError(
            f"{directory}: its disk has no room for {count + _SPARE:,} bytes; nothing was changed"
        )


def copy_file(
    source: Path, target: Path, owner: os.stat_result, limit: int | None = None, behind: bytes = b""
) -> None:
    """Copies ``source``, or its first ``limit`` bytes, and ``behind`` them, to a new file that is on disk
    afterwards.

    Raises OSError, RewriteError.
    """
    status = source.stat()
    descriptor = os.open(
        target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, stat.S_IMODE(status.st_mode)
    )
    left = status.st_size if limit is None else limit
    with os.fdopen(descriptor, "wb") as written, source.open("rb") as read:
        give(written.fileno(), owner)
        while left and (data := read.read(min(_PIECE, left))):
            written.write(data)
            left -= len(data)
        if left:
            raise RewriteError(f"{source}: became shorter while it was read")
        written.write(behind)
        written.flush()
        os.fsync(written.fileno())


def copy_directory(source: Path, target: Path, owner: os.stat_result) -> None:
    """Copies all regular files of ``source`` but its indexes to the new directory ``target``; it is there whole
    or not at all. Raises OSError, RewriteError.
    """
    partial = target.with_name(target.name + PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700)
    for path in sorted(source.iterdir()):
        if path.is_file() and not path.is_symlink() and path.suffix not in _INDEXES:
            copy_file(path, partial / path.name, owner)
    sync(partial)
    partial.rename(target)
    sync(target.parent)


def append_batch(directory: Path, segment: str, whole: int, batch: bytes, owner: os.stat_result) -> None:
    """Puts a segment in the place of ``segment`` that ends at byte ``whole`` and has ``batch`` behind it.
    Raises OSError, RewriteError; then the directory is as it was.
    """
    path, partial = directory / segment, directory / (segment + PARTIAL)
    partial.unlink(missing_ok=True)
    try:
        require_room(directory, whole + len(batch))
        copy_file(path, partial, owner, whole, batch)
        partial.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    sync(directory)


def fill_blank(
    source: Path,
    target: Path,
    files: Sequence[PlannedFile],
    appended: tuple[str, int, bytes],
    owner: os.stat_result,
) -> None:
    """Makes ``target`` a directory with those files of ``source``; ``appended``: a segment, where its whole
    batches end, and the batch behind them. What is in ``target`` is removed. Raises OSError, RewriteError.
    """
    partial = target.with_name(target.name + PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    segment, whole, batch = appended
    try:
        require_room(target.parent, sum(file.size for file in files) + len(batch))
        partial.mkdir(mode=0o755)
        descriptor = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            give(descriptor, owner)
        finally:
            os.close(descriptor)
        for file in files:
            if file.name == segment:
                copy_file(source / file.name, partial / file.name, owner, whole, batch)
            else:
                copy_file(source / file.name, partial / file.name, owner)
        sync(partial)
        if target.exists():
            for path in target.iterdir():
                path.unlink()
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    sync(target.parent)


def undo_is_half_done(target: Path) -> bool:
    """Whether :func:`put_back` was broken off."""
    return any(target.with_name(target.name + ending).exists() for ending in (PARTIAL, UNDONE))


def put_back(backup: Path | None, target: Path, away: Path, owner: os.stat_result) -> None:
    """Puts the files of ``backup`` (None: there was no directory) in the place of ``target``, whose files are
    moved to the new directory ``away``. A second call finishes what the first one did not. Raises OSError,
    RewriteError.
    """
    partial, undone = target.with_name(target.name + PARTIAL), target.with_name(target.name + UNDONE)
    if target.exists() and not undone.exists():
        shutil.rmtree(partial, ignore_errors=True)
        if backup is not None:
            require_room(target.parent, sum(path.stat().st_size for path in backup.iterdir()))
            partial.mkdir(mode=stat.S_IMODE(target.stat().st_mode))
            descriptor = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                give(descriptor, owner)
            finally:
                os.close(descriptor)
            for path in sorted(backup.iterdir()):
                copy_file(path, partial / path.name, owner)
            sync(partial)
        target.rename(undone)
        sync(target.parent)
    if partial.exists() and not target.exists():
        partial.rename(target)
        sync(target.parent)
    if undone.exists():
        shutil.move(undone, away)
