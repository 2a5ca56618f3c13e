"""Plan files on disk (design: "The plan file"): created new, never overwritten, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from typing import TypeVar

from backends.base.answers import Designation
from console.errors import InputError
from recovery.model import TopicPartition
from recovery.plan.read import from_json
from recovery.plan.targets import targets
from recovery.plan.values import BarePlan, Plan, PlanError, PlanRow

T = TypeVar("T")

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
    return _parsed(path, from_json)


def read_targets(path: Path) -> tuple[TopicPartition, ...]:
    """The partitions that an input file of the recovery tool names. Raises InputError."""
    return _parsed(path, targets)


def _parsed(path: Path, parse: Callable[[str], T]) -> T:
    text = _text(path)
    try:
        with without_collection():
            return parse(text)
    except PlanError as error:
        raise InputError(f"{path}: {error}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


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


def designation(row: PlanRow) -> Designation:
    """The election of a plan's row, with its fences."""
    topic_id, leader_epoch, replicas, logs = row.fence
    return Designation(row.tp, topic_id, leader_epoch, replicas, row.order, logs)


def designations(plan: Plan) -> tuple[Designation, ...]:
    """The elections of a plan, in its order."""
    return tuple(designation(row) for row in plan.rows)
