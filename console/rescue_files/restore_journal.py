"""What of a rescue was written back to one target: a file beside the rescue, one JSON line for each batch.

A batch that has no line may have been appended: it is sent again with the same producer id and sequence, and a
broker that has it already does not append it twice.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from backends.base.record_writer import ProducerIdentity
from console.errors import InputError
from console.new_files import sync_directory
from console.rescue_files.manifest import read_regular
from recovery.model import TopicPartition

SCHEMA = "ktriage.restore-journal/1"
SYNC_EVERY = 64
"""A power loss takes at most this many lines, a kill none. Sent again, a broker recognises a partition's last 5."""


class BranchPosition(NamedTuple):
    """How far a branch was written back: all batches before ``next_offset``."""

    next_offset: int
    records: int


class AppendedRange(NamedTuple):
    """A partition's records that were appended: the first offset of the first batch and of the last one."""

    first: int
    last: int
    records: int


class RestoreJournal:
    """``identity`` is the producer's. ``sequence`` counts the records sent to each partition.

    ``selection`` names the choice of records (RestoreSelection.name): each has a journal of its own.
    """

    def __init__(self, directory: Path, cluster_id: str, target: str, selection: str = "") -> None:
        """Reads what is there. Raises InputError: it is damaged, or of another cluster."""
        # A topic's name has no "~".
        chosen = f"~{selection}" if selection else ""
        self.path = directory / f"restore-{quote(target, safe='')}{chosen}.jsonl"
        self.identity: ProducerIdentity | None = None
        self._about = {"schema": SCHEMA, "clusterId": cluster_id, "target": target}
        if selection:
            self._about["selection"] = selection
        self._positions: dict[str, BranchPosition] = {}
        self._appended: dict[TopicPartition, AppendedRange] = {}
        self._fd = -1
        self._unsynced = 0
        self._whole = 0
        """Bytes of the file up to the end of its last whole line."""
        self.modified = 0.0
        """When an earlier run wrote to it last, in seconds since 1970."""
        if self.path.exists():
            self._read()
            self.modified = self.path.stat().st_mtime

    def position(self, branch: str) -> BranchPosition | None:
        """How far that branch was written back, None if nothing of it was."""
        return self._positions.get(branch)

    def appended(self) -> Mapping[TopicPartition, AppendedRange]:
        """Where the records are, by partition of the target."""
        return self._appended

    def sequence(self, tp: TopicPartition) -> int:
        """The sequence of the next record for that partition."""
        appended = self._appended.get(tp)
        return 0 if appended is None else appended.records & 0x7FFFFFFF

    def begin(self, identity: ProducerIdentity) -> None:
        """Starts the file of a first run. Raises InputError."""
        self.identity = identity
        self._open()
        self._line(
            {**self._about, "producerId": identity.producer_id, "producerEpoch": identity.epoch}, sync=True
        )
        sync_directory(self.path.parent)

    def resume(self) -> None:
        """Goes on with the file of an earlier run, behind its last whole line. Raises InputError."""
        self._open()
        os.ftruncate(self._fd, self._whole)

    def note(self, branch: str, tp: TopicPartition, next_offset: int, records: int, base_offset: int) -> None:
        """A batch was appended at ``base_offset`` of the target's partition. Raises InputError."""
        fields = {
            "branch": branch,
            "topic": tp.topic,
            "partition": tp.partition,
            "next": next_offset,
            "records": records,
            "baseOffset": base_offset,
        }
        self._line(fields)
        self._take(fields)

    def close(self) -> None:
        """May be called twice."""
        if self._fd >= 0:
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            self._fd = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written: {error.strerror}") from None

    def _line(self, fields: Mapping[str, object], *, sync: bool = False) -> None:
        try:
            self._append(json.dumps(fields).encode() + b"\n")
            self._unsynced += 1
            if sync or self._unsynced >= SYNC_EVERY:
                os.fsync(self._fd)
                self._unsynced = 0
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written: {error.strerror}") from None

    def _append(self, line: bytes) -> None:
        """Raises OSError. A line behind half of one could not be read: of a line that has no room nothing stays."""
        written = os.write(self._fd, line)
        if written < len(line):
            os.ftruncate(self._fd, self._whole)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._whole += written

    def _read(self) -> None:
        try:
            data = read_regular(self.path)
            lines = data.splitlines(keepends=True)
            whole = [
                line for line in lines if line.endswith(b"\n")
            ]  # a killed run may leave a torn last line
            self._whole = sum(map(len, whole))
            if not whole:
                return
            head = json.loads(whole[0])
            if {key: head[key] for key in self._about} != self._about:
                raise InputError(f"{self.path}: it is of another cluster or target")
            self.identity = ProducerIdentity(int(head["producerId"]), int(head["producerEpoch"]))
            for line in whole[1:]:
                self._take(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{self.path}: damaged ({error})") from None

    def _take(self, fields: Mapping[str, Any]) -> None:
        branch, records, at = (fields[key] for key in ("branch", "records", "baseOffset"))
        tp = TopicPartition(fields["topic"], fields["partition"])
        before = self._positions.get(branch, BranchPosition(0, 0))
        self._positions[branch] = BranchPosition(fields["next"], before.records + records)
        if records:
            appended = self._appended.get(tp)
            first = at if appended is None else min(appended.first, at)
            self._appended[tp] = AppendedRange(
                first, at, (0 if appended is None else appended.records) + records
            )


def restored_records(directory: Path) -> Iterator[tuple[Path, str, int]]:
    """(journal, target, records) of every run that restored something of the rescue. Raises InputError."""
    for path in sorted(directory.glob("restore-*.jsonl")):
        try:
            head = json.loads(read_regular(path).partition(b"\n")[0])
            identity = str(head["clusterId"]), str(head["target"]), str(head.get("selection", ""))
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{path}: damaged") from None
        journal = RestoreJournal(directory, *identity)
        yield path, identity[1], sum(appended.records for appended in journal.appended().values())
