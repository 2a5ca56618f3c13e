"""A copy of a cluster's metadata log in a directory, byte for byte: what a controller's own log dir has.

    DIR/meta.properties                                    the cluster's id
    DIR/__cluster_metadata-0/00000000000000000000.log      record batches; the name is the first offset
    DIR/__cluster_metadata-0/00000000000000004711-0000000003.checkpoint
    DIR/before-00000000000000004711/                       what came before a gap, in the same form

Whoever reads the directory may do so while it grows. A process that is killed leaves at most a torn last batch,
which the next one cuts off. Only the owner can read the files: the log holds SCRAM credentials and configurations.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

from backends.base.metadata_log_reader import LogBytes, LogSnapshot
from backends.disk_scan.checkpoint_files import CheckpointError, read_properties
from backends.log_segments.batch_header import BatchHeader
from backends.log_segments.segment_reader import SegmentReader, is_torn
from backends.log_segments.segment_source import SegmentBytes, SegmentError, SegmentFile, reason_of
from backends.metadata_log.batches import missing_offsets
from backends.metadata_log.directory import DIRECTORY, FIRST_DATA_OFFSET, MetadataDirError, log_files
from console.errors import InputError, NotDone
from console.new_files import (
    MOST_OFFSETS,
    SEGMENT_BYTES,
    SPARE_BYTES,
    append_whole,
    has_room,
    locked,
    sync_directory,
    write_new,
)

PROPERTIES = "meta.properties"
PARTIAL = ".part"
"""As Kafka names a snapshot that is not whole yet."""
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class _Segment(NamedTuple):
    """The segment that grows. ``base`` is its first offset."""

    fd: int
    base: int
    size: int


class MetadataLogFiles:
    """The copy in ``path``, and its lock until :meth:`close`. Blocking.

    ``next_offset`` is where the log goes on, and ``epoch`` the leader epoch of the record before it. ``snapshot``
    is the name of the snapshot with which the log begins; "": it has its beginning. ``cut_bytes``: so many were
    cut off the last segment, because they were no whole batch. ``last`` is the last batch that an earlier run left,
    None: there is none.
    """

    def __init__(self, path: Path, cluster_id: str, segment_bytes: int = SEGMENT_BYTES) -> None:
        """Makes the directory, or goes on with the copy of this cluster's log that is in it.

        Raises InputError: it holds something else, or another cluster's log; another run is writing to it; its
        files are damaged.
        """
        self.path = path
        self.next_offset = 0
        self.epoch = 0
        self.snapshot = ""
        self.cut_bytes = 0
        self.last: BatchHeader | None = None
        self._directory = path / DIRECTORY
        self._cluster_id = cluster_id
        self._segment_bytes = segment_bytes
        self._segment: _Segment | None = None
        self._lock = -1
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = locked(path)
            self._claim()
            self._directory.mkdir(mode=0o700, exist_ok=True)
            self._go_on()
        except (MetadataDirError, SegmentError, CheckpointError) as error:
            self.close()
            raise InputError(str(error)) from None
        except OSError as error:
            self.close()
            raise InputError(f"{path}: cannot be used: {reason_of(error)}") from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes the files and releases the lock. May be called twice."""
        with contextlib.suppress(OSError):
            self._end_segment()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def take(self, found: LogBytes) -> int:
        """Appends the whole committed batches that are not there yet; returns the number of offsets.

        Raises NotDone: a batch is damaged, offsets are missing, or nothing can be written.
        """
        reader = SegmentReader(SegmentBytes(found.data))
        begin, base, next_offset, epoch = 0, -1, self.next_offset, self.epoch
        end = begin
        for header, position in reader:
            if header.next_offset <= next_offset:
                continue
            if header.next_offset > found.high_watermark:
                break
            begins_log = next_offset == 0 and header.base_offset == FIRST_DATA_OFFSET
            if header.base_offset != next_offset and not begins_log:
                raise NotDone(f"the controller's answer: {missing_offsets(next_offset, header.base_offset)}")
            if base < 0:
                base, begin = header.base_offset, position
            end, next_offset, epoch = position + header.size, header.next_offset, header.leader_epoch
        if base < 0:
            if reader.defect is not None:
                raise NotDone(f"the controller's answer cannot be read: {reader.defect.text}")
            return 0
        try:
            self._append(memoryview(found.data)[begin:end], base, next_offset)
        except OSError as error:
            raise self._unwritable(error) from None
        self.next_offset, self.epoch = next_offset, epoch
        return next_offset - base

    def begin_with(self, found: LogSnapshot) -> Path | None:
        """The log goes on behind this snapshot: the cluster no longer has what comes before. Files that are there
        already are moved to a directory of their own, which is returned; None: there were none.

        Raises NotDone: the snapshot is damaged, or cannot be written.
        """
        reader = SegmentReader(SegmentBytes(found.data))
        ends = False
        for header, _ in reader:
            ends = header.is_control
        if reader.defect is not None or not ends:
            why = "its end is missing" if reader.defect is None else reader.defect.text
            raise NotDone(f"the snapshot at offset {found.end_offset:,} cannot be read: {why}")
        if found.end_offset <= self.next_offset:
            raise NotDone(
                f"{self.path}: the copy goes to offset {self.next_offset:,}, and the cluster has only a snapshot at"
                f" {found.end_offset:,} for what follows; give a new directory"
            )
        name = f"{found.end_offset:020}-{found.epoch:010}.checkpoint"
        try:
            self._end_segment()
            self._write_snapshot(name, found.data)
            return self._continue_after(name, found.end_offset, found.epoch)
        except MetadataDirError as error:
            raise NotDone(str(error)) from None
        except OSError as error:
            raise self._unwritable(error) from None

    def sync(self) -> None:
        """Returns when everything is on disk. Raises NotDone."""
        try:
            if self._segment is not None:
                os.fsync(self._segment.fd)
            sync_directory(self._directory)
        except OSError as error:
            raise self._unwritable(error) from None

    # What is there

    def _claim(self) -> None:
        """Writes whose log this is, or compares it. Raises InputError, CheckpointError."""
        known = read_properties(self.path / PROPERTIES)
        if known is None:
            if any(not path.name.startswith(".") for path in self.path.iterdir()):
                raise InputError(
                    f"{self.path}: it is not empty and holds no copy of a metadata log; give a new directory"
                )
            self._write_properties(self.path)
            return
        if "node.id" in known:
            raise InputError(
                f"{self.path}: it is the log dir of node {known['node.id']}, and nothing is written there; give a"
                " new directory"
            )
        found = known.get("cluster.id", "")
        if found != self._cluster_id:
            raise InputError(
                f"{self.path}: holds the metadata log of cluster {found or 'unknown'}; this one is"
                f" {self._cluster_id}. Give a new directory"
            )

    def _write_properties(self, path: Path) -> None:
        whose = "# A copy of this cluster's metadata log, made by ktriage"
        write_new(path / PROPERTIES, f"{whose}\nversion=1\ncluster.id={self._cluster_id}\n", 0o600)

    def _go_on(self) -> None:
        """Finds the end of what an earlier run left. Raises InputError, SegmentError, MetadataDirError, OSError."""
        for path in self._directory.glob(f"*{PARTIAL}"):
            path.unlink()
        segments, snapshots = log_files(self._directory)
        if snapshots:
            end, path = snapshots[-1]
            self.snapshot, self.next_offset = path.name, end
            self.epoch = int(path.stem.partition("-")[2])
        while segments and self._segment is None:
            base, path = segments.pop()
            self._go_on_in(path, base)
        if self.snapshot and self._segment is None:
            # Also where a run was killed between a new snapshot and the moving of what came before it.
            self._continue_after(self.snapshot, self.next_offset, self.epoch)

    def _go_on_in(self, path: Path, base: int) -> None:
        """Checks every batch of the last segment; a torn end is cut off, and a segment without a batch removed."""
        with SegmentFile(path) as source:
            reader = SegmentReader(source)
            expected, epoch, last = base, self.epoch, None
            for header, _ in reader:
                if header.base_offset != expected:
                    problem = missing_offsets(expected, header.base_offset)
                    raise InputError(f"{path}: {problem}; give a new directory")
                expected, epoch, last = header.next_offset, header.leader_epoch, header
            if reader.defect is not None and not is_torn(source, reader.defect):
                raise InputError(f"{path}: {reader.defect.text}; give a new directory")
            size, whole = source.size, reader.end_position
        if expected <= self.next_offset and whole:
            return  # older than the snapshot
        self.cut_bytes += size - whole
        if not whole:
            path.unlink()
            return
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        self._segment = _Segment(fd, base, whole)
        os.ftruncate(fd, whole)
        self.next_offset, self.epoch, self.last = expected, epoch, last

    # Writing

    def _append(self, data: memoryview, base: int, next_offset: int) -> None:
        now = self._segment
        if now is not None and (
            now.size + len(data) > self._segment_bytes or next_offset - now.base > MOST_OFFSETS
        ):
            self._end_segment()
            now = None
        if now is None:
            now = _Segment(os.open(self._directory / f"{base:020}.log", _NEW_FILE, 0o600), base, 0)
            self._segment = now
        self._require_room(now.fd, len(data))
        append_whole(now.fd, data, now.size)
        self._segment = now._replace(size=now.size + len(data))

    def _end_segment(self) -> None:
        segment, self._segment = self._segment, None
        if segment is not None:
            try:
                os.fsync(segment.fd)
            finally:
                os.close(segment.fd)

    def _write_snapshot(self, name: str, data: bytes) -> None:
        partial = self._directory / f"{name}{PARTIAL}"
        partial.unlink(missing_ok=True)
        fd = os.open(partial, _NEW_FILE, 0o600)
        try:
            self._require_room(fd, len(data))
            append_whole(fd, memoryview(data), 0)
            os.fsync(fd)
        finally:
            os.close(fd)
        partial.rename(self._directory / name)
        sync_directory(self._directory)

    def _continue_after(self, name: str, end_offset: int, epoch: int) -> Path | None:
        """Moves everything but the snapshot away; a second call moves what the first one did not."""
        self.snapshot, self.next_offset, self.epoch = name, end_offset, epoch
        segments, snapshots = log_files(self._directory)
        older = [path for _, path in (*segments, *snapshots) if path.name != name]
        if not older:
            return None
        away = self.path / f"before-{end_offset:020}"
        (away / DIRECTORY).mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (away / PROPERTIES).exists():
            self._write_properties(away)
        for path in older:
            path.rename(away / DIRECTORY / path.name)
        sync_directory(away / DIRECTORY)
        sync_directory(self._directory)
        return away

    def _require_room(self, fd: int, count: int) -> None:
        if not has_room(fd, count):
            raise NotDone(f"{self.path}: less than {SPARE_BYTES >> 20} MiB would be left on its disk")

    def _unwritable(self, error: OSError) -> NotDone:
        return NotDone(f"{self.path}: cannot be written: {reason_of(error)}")
