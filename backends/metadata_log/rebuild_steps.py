"""What a rebuild of a lost quorum does on the host that has the directory, step by step: compare, back up, write,
check, and the way back. The command does it, and so does the script for hosts without ktriage (rebuild_script.py).
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from backends.disk_scan.checkpoint_files import CheckpointError, read_properties
from backends.log_segments.segment_source import reason_of
from backends.metadata_log.directory import DIRECTORY, log_files
from backends.metadata_log.quorum_copy import PROPERTIES, stored_election
from backends.metadata_log.rebuilt_directory import (
    RewriteError,
    append_batch,
    copy_directory,
    fill_blank,
    node_locked,
    planned_file,
    planned_files,
    put_back,
    sync,
    undo_is_half_done,
)
from recovery.membership.quorum_rebuild import PlannedFile

ANSWER_SECONDS = 3.0
"""So long a voter that is named as dead may take to accept a connection."""
JOURNAL = "journal.jsonl"
WAY_BACK = "to go back, until the controller is started (once it has led there is no way back)"


UNDONE_BEFORE = "is as it was before the rebuild already; nothing was written"


class RebuildOrder(NamedTuple):
    """What is written where. ``source`` and ``target`` are directories of the metadata log, the same one unless the
    target is that of a blank controller. ``files`` are those of the source as planned; ``appended`` goes behind
    byte ``whole_bytes`` of its last ``segment``.
    """

    plan_id: str
    cluster_id: str
    node: int
    directory_id: str
    source: str
    target: str
    backup: str
    files: Sequence[PlannedFile]
    segment: str
    whole_bytes: int
    appended: bytes

    @property
    def in_place(self) -> bool:
        return self.source == self.target

    @property
    def written_bytes(self) -> int:
        """The size of ``segment`` with what is appended."""
        return self.whole_bytes + len(self.appended)


class WrittenFiles(NamedTuple):
    """``before`` and ``after`` are the target's files; ``already``: an earlier run had done it."""

    before: Sequence[PlannedFile]
    after: Sequence[PlannedFile]
    already: bool = False


def answers(host: str, port: int) -> bool:
    """Whether a connection to that address is accepted."""
    try:
        socket.create_connection((host, port), ANSWER_SECONDS).close()
    except OSError:
        return False
    return True


def unresolved(host: str) -> str:
    """Why the name of the new voter's host cannot be looked up here; "": it can."""
    try:
        socket.getaddrinfo(host, None)
    except OSError as error:
        return (
            f"CHECK: {host}, where the new voter listens, does not resolve on this host ({reason_of(error)})"
        )
    return ""


def write_order(order: RebuildOrder, record: Callable[[str, Sequence[PlannedFile]], None]) -> WrittenFiles:
    """``record`` writes a line to the journal: what is done, and the files with their checksums.

    Raises RewriteError, MetadataDirError: the directory is not as planned, or its node runs; nothing was written
    then, or what the message says stands there.
    """
    source, target = Path(order.source), Path(order.target)
    try:
        require_owner(order)
        with node_locked(target.parent):
            before = planned_files(target) if target.exists() else ()
            if is_written(order):
                return WrittenFiles(before, before, already=True)
            require_same_files(order, source)
            if not order.in_place and not is_blank(target):
                raise RewriteError(f"{target}: holds a metadata log by now; nothing was written")
            owner = (target.parent / PROPERTIES).stat()
            try:
                _back_up(order, target, owner)
                record("applying", before)
            except OSError as error:
                raise RewriteError(
                    f"{order.backup}: the back-up cannot be written ({reason_of(error)}); the log is as it was."
                    " Another place for it is part of a new plan: --backup DIR with --from"
                ) from None
            if order.in_place:
                append_batch(target, order.segment, order.whole_bytes, order.appended, owner)
            else:
                tail = (order.segment, order.whole_bytes, order.appended)
                fill_blank(source, target, order.files, tail, owner)
            if not is_written(order):
                raise RewriteError(f"{target}: does not hold what was written; put it back with --undo")
            after = planned_files(target)
            record("applied", after)
    except OSError as error:
        raise RewriteError(_stopped(order, reason_of(error))) from None
    return WrittenFiles(before, after)


def undo_order(order: RebuildOrder, record: Callable[[str, Sequence[PlannedFile]], None]) -> Path | None:
    """Puts back what was there before; returns where the rebuilt files are. None: an earlier run had done it, and
    nothing was written. Raises RewriteError, MetadataDirError: the rebuilt quorum has led, its node runs, or
    nothing was applied.
    """
    target, backup = Path(order.target), Path(order.backup)
    if not (backup / JOURNAL).exists():
        raise RewriteError(
            f"{backup}: there is no back-up of this plan: nothing was applied, or it was moved"
        )
    try:
        require_owner(order)
        with node_locked(target.parent):
            if target.exists():
                require_never_led(order)
            saved = backup / DIRECTORY
            if _is_undone(order, target, saved):
                return None
            owner = (target.parent / PROPERTIES).stat()
            away = backup / f"undone-{int(time.time() * 1000)}"
            put_back(saved if saved.exists() else None, target, away, owner)
            if order.in_place:
                require_same_files(order, target)
            record("undone", planned_files(target) if target.exists() else ())
    except OSError as error:
        raise RewriteError(
            f"{target}: cannot be put back ({error.filename or backup}: {reason_of(error)}); give the command again"
        ) from None
    return away


def _is_undone(order: RebuildOrder, target: Path, saved: Path) -> bool:
    """Whether a whole run has put the old files back. Raises MetadataDirError, OSError, RewriteError."""
    if undo_is_half_done(target):
        return False
    if order.in_place:
        return saved.exists() and target.exists() and planned_files(target) == planned_files(saved)
    return not target.exists() or is_blank(target)


def require_never_led(order: RebuildOrder) -> None:
    """Raises RewriteError where the target holds anything that the rebuild did not write. A leader begins its
    epoch with a record, and brokers that run follow it without registering again: after a way back its epoch
    would be used twice, or they would stay in an epoch that nobody leads. Raises MetadataDirError, OSError.
    """
    target = Path(order.target)
    led = _epoch_led(order)
    if led is not None:
        raise RewriteError(
            f"{target}: the rebuilt quorum has led in epoch {led}: brokers may have followed it. There is no way"
            " back"
        )
    segments, snapshots = log_files(target)
    planned = {file.name: file for file in order.files}
    present = {path.name: path for _, path in (*segments, *snapshots)}
    segment = present.get(order.segment)
    as_written = segment is not None and segment.stat().st_size == order.written_bytes
    if as_written and set(present) <= set(planned):
        return
    before = order.files if order.in_place else ()
    if {file.name: file for file in planned_files(target)} == {file.name: file for file in before}:
        return
    if order.in_place or not is_blank(target):
        raise RewriteError(
            f"{target}: holds something that neither the back-up has nor the rebuild wrote. There is no way back"
        )


def _epoch_led(order: RebuildOrder) -> int | None:
    """The first quorum epoch behind what is appended that had a leader; None: nothing shows one. Raises
    MetadataDirError, OSError.
    """
    path = Path(order.target, order.segment)
    if is_written(order):
        with path.open("rb") as file:
            file.seek(order.written_bytes)
            behind = file.read(_EPOCH_END)
        if behind:
            return _epoch(behind) if len(behind) == _EPOCH_END else _epoch(order.appended) + 1
    # A leader writes this file before the first record of its epoch.
    election = stored_election(path.parent)
    written = _epoch(order.appended)
    return None if election is None or election.leader < 0 or election.epoch < written else election.epoch


_EPOCH_END = 16
"""Bytes of a batch up to the end of its leader epoch (KIP-98)."""


def _epoch(batch: bytes) -> int:
    (epoch,) = struct.unpack_from(">i", batch, _EPOCH_END - 4)
    return int(epoch)


def _stopped(order: RebuildOrder, why: str) -> str:
    """What stands after a write failed: the last ones follow when the new log is in its place."""
    try:
        written = is_written(order)
    except OSError as error:
        return f"{order.target}: {why}, and which log stands there is not known ({error}): put it back with --undo"
    if written:
        return f"{order.target}: the log is rebuilt, and what follows failed ({why}): give the command again"
    return f"{order.target}: cannot be written ({why}); the log is as it was"


def is_written(order: RebuildOrder) -> bool:
    """Whether the target has what is appended, in its place; the controller may have gone on behind it. Raises
    OSError.
    """
    path = Path(order.target, order.segment)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        file.seek(order.whole_bytes)
        return file.read(len(order.appended)) == order.appended


def is_blank(directory: Path) -> bool:
    """Whether it is as ``kafka-storage format`` leaves it. Raises MetadataDirError."""
    if not directory.exists():
        return True
    segments, snapshots = log_files(directory)
    return not segments and all(end == 0 for end, _ in snapshots)


def require_owner(order: RebuildOrder) -> None:
    """Raises RewriteError: the directory is not that of the planned node."""
    log_dir = Path(order.target).parent
    try:
        properties = read_properties(log_dir / PROPERTIES) or {}
    except CheckpointError as error:
        raise RewriteError(str(error)) from None
    owner = tuple(properties.get(name, "") for name in ("cluster.id", "node.id", "directory.id"))
    if owner != (order.cluster_id, str(order.node), order.directory_id):
        raise RewriteError(
            f"{log_dir}: is not the log dir of node {order.node} with directory id {order.directory_id} of cluster"
            f" {order.cluster_id}: apply the plan on the host that has it"
        )


def require_same_files(order: RebuildOrder, source: Path) -> None:
    """Raises RewriteError: a file is another one than when the plan was made. Raises MetadataDirError."""
    present, planned = {f.name: f for f in planned_files(source)}, {f.name: f for f in order.files}
    changed = sorted(name for name in {*present, *planned} if present.get(name) != planned.get(name))
    if changed:
        raise RewriteError(f"{source}: {', '.join(changed)} changed since the plan was made: make a new plan")


def _back_up(order: RebuildOrder, target: Path, owner: os.stat_result) -> None:
    """All that is there before, in a directory of its own; that of a run that was killed is used again."""
    backup = Path(order.backup)
    backup.mkdir(mode=0o700, exist_ok=True)
    saved = backup / DIRECTORY
    if target.exists() and not saved.exists():
        copy_directory(target, saved, owner)
    if saved.exists():
        segments, snapshots = log_files(target)
        present = {path.name: planned_file(path) for _, path in (*segments, *snapshots)}
        if {f.name: f for f in planned_files(saved)} != present:
            raise RewriteError(
                f"{saved}: holds other files than {target}: make a new plan, which has a back-up of its own"
            )


def journal_line(order: RebuildOrder, entry: dict[str, object], files: Sequence[PlannedFile]) -> None:
    """Appends a line to the journal beside the back-up, and puts it on disk. Raises OSError."""
    members = {
        **entry,
        "planId": order.plan_id,
        "directory": order.target,
        "files": [file._asdict() for file in files],
    }
    path = Path(order.backup) / JOURNAL
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, json.dumps(members).encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync(path.parent)
