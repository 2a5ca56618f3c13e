"""Plan files on disk (design: "The plan file"): created new, never overwritten, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import re
import stat
from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from typing import TypeVar

from console.errors import InputError
from recovery.model import TopicPartition
from recovery.plan.read import from_json
from recovery.plan.target_partitions import targets
from recovery.plan.values import BarePlan, Plan, PlanError

T = TypeVar("T")

LIMIT_BYTES = 1 << 30
"""No larger file is read: 200,000 partitions take 0.2 GiB."""
CHUNK_BYTES = 1 << 20
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


def write_new(path: Path, text: str) -> None:
    """Writes ``text`` to a file that does not exist yet, and returns when it is on disk.

    Whatever happens, ``path`` is absent or whole: the text goes to a file beside it, which is then linked
    under its name. Raises InputError: it exists, or cannot be written.
    """
    # Told early, before anything is written; the link below is what holds.
    if os.path.lexists(path):
        raise InputError(f"{path}: it exists, and is never overwritten")
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with _removed(beside):
            _write(beside, text.encode())
            os.link(beside, path)
        sync_directory(path.parent)
    except FileExistsError:
        raise InputError(f"{path}: it exists, and is never overwritten") from None
    except OSError as error:
        why = error.strerror
        if error.errno in _NO_LINKS:
            why = "this file system cannot make a file whole under a new name (no hard links)"
        raise InputError(f"{path}: cannot be written: {why}") from None


@contextlib.contextmanager
def _removed(path: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _write(path: Path, data: bytes) -> None:
    # A file of that name is what an earlier process of the same id left behind.
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
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


def read(path: Path) -> Plan | BarePlan:
    """The plan in a file; a BarePlan where it has leaders and nothing else. Raises InputError."""
    return _parsed(path, _text(path), from_json)


def read_regular(path: Path, given_up: Callable[[], bool]) -> Plan | BarePlan:
    """As :func:`read`, of a regular file only: a mistyped name must not open a device, or a pipe that nobody
    writes to. Ends soon once ``given_up``. Raises InputError.
    """
    return _parsed(path, _text(path, _open_regular, given_up), from_json)


def read_targets(path: Path, *, leaders_refused: bool = False) -> tuple[TopicPartition, ...]:
    """The partitions that an input file of the recovery tool names. Raises InputError.

    ``leaders_refused``: a file that names designated leaders is refused.
    """
    return _parsed(path, _text(path), lambda text: targets(text, leaders_refused=leaders_refused))


def _parsed(path: Path, text: str, parse: Callable[[str], T]) -> T:
    try:
        with without_collection():
            return parse(text)
    except PlanError as error:
        raise InputError(f"{path}: {error}") from None


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _open_regular(path: Path) -> int:
    """Raises InputError and OSError."""
    kind = path.stat().st_mode  # before it is opened, which alone can do something to a device
    if stat.S_ISREG(kind):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISREG(kind):
            return descriptor
        os.close(descriptor)
    what = next((name for holds, name in _KINDS if holds(kind)), "something else")
    raise InputError(f"{path}: {what}, not a plan file")


def _text(
    path: Path, open_it: Callable[[Path], int] = _open, given_up: Callable[[], bool] = lambda: False
) -> str:
    try:
        return _bytes(path, open_it(path), given_up).decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _bytes(path: Path, descriptor: int, given_up: Callable[[], bool]) -> bytearray:
    """All that is in it. Raises InputError where that is more than any plan, or it was given up; and OSError."""
    data = bytearray()
    with open(descriptor, "rb", buffering=0) as file:
        size = os.fstat(descriptor).st_size
        while size <= LIMIT_BYTES and (chunk := file.read(CHUNK_BYTES)):
            if (nul := chunk.find(0)) >= 0:  # a log, a core, a device: told before it fills the memory
                raise InputError(f"{path}: not text (byte {len(data) + nul} is NUL)")
            data += chunk
            size = max(size, len(data))
            if given_up():
                raise InputError(f"{path}: reading was given up")
    if size > LIMIT_BYTES:
        raise InputError(f"{path}: larger than {LIMIT_BYTES >> 20:,} MiB, which no plan is")
    return data


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Without the cyclic collector, which walks millions of frozen values again and again and finds nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def default_name(plan: Plan) -> str:
    """A name for the plan's file: cluster, time of making, and the start of its id."""
    header = plan.header
    made = header.made_at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    parts = ("ktriage-plan", _plain(header.cluster_id), made, _plain(header.plan_id)[:8])
    return f"{'-'.join(part for part in parts if part)}.json"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")[:40]
