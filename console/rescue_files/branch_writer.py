"""Writes one branch as segment files: whole, checked batches, byte for byte as the broker sent them.

While a segment is written its name ends in ``.partial``. A rescue that was killed continues after the last whole
batch in the file. Blocking: to be called from a thread.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from backends.log_segments.batch_header import BatchHeader
from backends.log_segments.segment_reader import DefectKind, SegmentReader
from backends.log_segments.segment_source import SegmentBytes, SegmentError, SegmentFile, reason_of
from console.new_files import MOST_OFFSETS, SEGMENT_BYTES, SPARE_BYTES, append_whole, has_room, sync_directory
from console.rescue_files.manifest import SEGMENT_NAME, SegmentEntry
from recovery.model import NO_EPOCH
from recovery.rescue_branches import RescueBranch

PARTIAL = ".partial"
_CHUNK = 1 << 20
_CUT = (DefectKind.CUT_SHORT, DefectKind.ZEROS)
"""What the end of a broker's answer may look like: it can be cut anywhere, and batches often begin with zeros."""


class BranchError(Exception):
    """A branch cannot be read further: its log is damaged or changed. The message is one line for a person."""


class RescueDiskError(BranchError):
    """Nothing more can be written here."""


class BranchWriter:
    """The segments of ``branch`` in ``directory``, from its first offset or from where an earlier run stopped.

    ``next_offset`` is the offset to read next. ``size`` counts the bytes of all segments.
    """

    def __init__(self, directory: Path, branch: RescueBranch) -> None:
        """Raises RescueDiskError, and BranchError where what an earlier run left is damaged."""
        self.branch = branch
        self.next_offset = branch.start
        self.size = 0
        self._directory = directory
        self._done: list[SegmentEntry] = []
        self._fd = -1
        self._open: SegmentEntry | None = None
        self._sha = hashlib.sha256()
        try:
            # A mode is for the last directory only, not for its parents.
            directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            directory.mkdir(mode=0o700, exist_ok=True)
            self._go_on()
        except OSError as error:
            raise RescueDiskError(f"{directory}: cannot be written: {reason_of(error)}") from None

    @property
    def done(self) -> bool:
        return self.next_offset >= self.branch.end

    def take(self, data: bytes) -> int:
        """Appends the whole batches of ``data`` that are not there yet, and returns how many bytes that were.

        Raises BranchError where the batches are damaged or of another epoch than the survey saw, after what is
        whole before them was written; RescueDiskError.
        """
        reader = SegmentReader(SegmentBytes(data))
        begin, end, batches = 0, 0, 0
        first: BatchHeader | None = None
        problem: str | None = None
        next_offset = self.next_offset
        for batch in reader:
            header = batch.header
            if header.next_offset <= next_offset:
                continue
            if header.base_offset >= self.branch.end:
                next_offset = self.branch.end  # compaction left nothing of the rest
                break
            problem = self._conflict(header, next_offset)
            if problem is not None:
                break
            if first is None:
                first, begin = header, batch.position
            end, next_offset, batches = batch.position + header.size, header.next_offset, batches + 1
            if next_offset >= self.branch.end:
                break
        if first is not None:
            self._append(memoryview(data)[begin:end], first, next_offset, batches)
        self.next_offset = next_offset
        if problem is None and reader.defect is not None and reader.defect.kind not in _CUT:
            problem = reader.defect.text
        if problem is not None and not self.done:
            raise BranchError(problem)
        return end - begin

    def _conflict(self, header: BatchHeader, next_offset: int) -> str | None:
        """Why this batch cannot be what the survey saw at its offset."""
        at = max(header.base_offset, next_offset)
        epoch = self.branch.epoch_at(at)
        if epoch not in (NO_EPOCH, header.leader_epoch):
            return f"the log changed: offset {at} has epoch {header.leader_epoch} now; it had epoch {epoch}"
        if header.base_offset < next_offset and self.size:
            return f"the log changed: a batch begins at {header.base_offset}, before offset {next_offset}"
        return None

    def finish(self) -> tuple[SegmentEntry, ...]:
        """Closes the last segment, and returns all of them once they are on disk. Raises RescueDiskError."""
        try:
            self._roll()
            sync_directory(self._directory)
        except OSError as error:
            raise RescueDiskError(f"{self._directory}: cannot be written: {reason_of(error)}") from None
        return tuple(self._done)

    def close(self) -> None:
        """Closes the file; a later run continues it. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _append(self, data: memoryview, first: BatchHeader, next_offset: int, batches: int) -> None:
        try:
            if self._open is not None and self._is_full(self._open, len(data), next_offset):
                self._roll()
            if self._open is None:
                self._begin(first.base_offset)
            self._write(data)
        except OSError as error:
            raise RescueDiskError(f"{self._directory}: cannot be written: {reason_of(error)}") from None
        assert self._open is not None
        self._sha.update(data)
        self.size += len(data)
        self._open = self._open._replace(
            next_offset=next_offset, batches=self._open.batches + batches, size=self._open.size + len(data)
        )

    @staticmethod
    def _is_full(segment: SegmentEntry, more: int, next_offset: int) -> bool:
        return segment.size + more > SEGMENT_BYTES or next_offset - segment.first_offset > MOST_OFFSETS

    def _begin(self, base_offset: int) -> None:
        name = f"{base_offset:020d}.log"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._fd = os.open(self._directory / f"{name}{PARTIAL}", flags, 0o600)
        self._sha = hashlib.sha256()
        self._open = SegmentEntry(name, base_offset, base_offset, 0, 0, "")

    def _write(self, data: memoryview) -> None:
        assert self._open is not None
        if not has_room(self._fd, len(data)):
            raise RescueDiskError(
                f"{self._directory}: less than {SPARE_BYTES >> 20} MiB would be left on its disk"
            )
        append_whole(self._fd, data, self._open.size)

    def _roll(self) -> None:
        """Ends the open segment, if there is one."""
        if self._open is None:
            return
        os.fsync(self._fd)
        self.close()
        path = self._directory / self._open.name
        Path(f"{path}{PARTIAL}").rename(path)
        self._done.append(self._open._replace(sha256=self._sha.hexdigest()))
        self._open = None

    def _go_on(self) -> None:
        """Takes what an earlier run left: every batch is checked again, and a torn end is cut off."""
        names = sorted(path.name for path in self._directory.iterdir())
        for name in names:
            if SEGMENT_NAME.fullmatch(name):
                self._done.append(self._checked(self._directory / name))
        for name in names:
            if name.endswith(PARTIAL) and SEGMENT_NAME.fullmatch(name.removesuffix(PARTIAL)):
                self._go_on_in(self._directory / name)

    def _go_on_in(self, path: Path) -> None:
        entry = self._checked(path, cut=True)
        if not entry.batches:
            path.unlink()
            return
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        os.ftruncate(self._fd, entry.size)
        self._open = entry._replace(name=path.name.removesuffix(PARTIAL))

    def _checked(self, path: Path, *, cut: bool = False) -> SegmentEntry:
        """The segment at ``path``, up to its last whole batch. Raises BranchError where it is damaged."""
        self._sha = hashlib.sha256()
        try:
            with SegmentFile(path) as source:
                reader = SegmentReader(source)
                batches = sum(1 for _ in reader)
                if reader.defect is not None and not cut:
                    raise BranchError(f"{path}: {reader.defect.text}")
                for at in range(0, reader.end_position, _CHUNK):
                    self._sha.update(source.read(at, min(_CHUNK, reader.end_position - at)))
        except SegmentError as error:
            raise BranchError(str(error)) from None
        first = int(path.name.partition(".")[0])
        self.size += reader.end_position
        self.next_offset = max(self.next_offset, reader.next_offset or 0)
        size = reader.end_position
        return SegmentEntry(path.name, first, self.next_offset, batches, size, self._sha.hexdigest())
