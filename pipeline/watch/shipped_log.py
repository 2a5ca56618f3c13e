"""A cluster's metadata log in a directory that is filled while it is read: which whole batches are there now.

A batch that is not whole yet, or whose checksum is wrong, is left for the next look: the file may still be copied.
Nothing is written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from backends.disk_scan.checkpoint_files import CheckpointError, read_properties
from backends.log_segments.batch_header import HEADER_SIZE, parse_header
from backends.log_segments.segment_reader import Batch, DefectKind, SegmentDefect, SegmentReader
from backends.log_segments.segment_source import SegmentError, SegmentFile
from backends.metadata_log.batches import compressed_batch, missing_offsets
from backends.metadata_log.directory import (
    DIRECTORY,
    FIRST_DATA_OFFSET,
    MetadataDirError,
    log_files,
    snapshot_before,
)
from backends.metadata_log.quorum_copy import PROPERTIES
from pipeline.watch.watch_progress import NO_SEGMENT, ShippedPosition

LogFiles = list[tuple[int, Path]]
"""Segments by their first offset, or snapshots by their end."""

MARK = 1 << 18
"""Bytes between two places where a part of the log may end."""


def cluster_directories(root: Path) -> dict[str, Path]:
    """The directories of ``root``, one for each cluster, by name: each is a ``__cluster_metadata-0``, or has one in
    it. Raises MetadataDirError if the root cannot be read.
    """
    try:
        found = sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError as error:
        raise MetadataDirError(f"{root}: cannot be read: {error.strerror}") from None
    return {path.name: log_directory(path) for path in found}


def cluster_ids(root: Path) -> dict[str, str]:
    """The cluster id of each directory of ``root`` that says it, in the meta.properties beside the log. Raises
    MetadataDirError if two directories are of one cluster: each of its incidents would be in the tables twice.
    """
    found: dict[str, str] = {}
    for name in cluster_directories(root):
        with suppress(CheckpointError):
            identity = (read_properties(root / name / PROPERTIES) or {}).get("cluster.id", "")
            twin = next((other for other, known in found.items() if identity and known == identity), None)
            if twin is not None:
                raise MetadataDirError(
                    f"{root}: {twin} and {name} are both of cluster {identity}: ship one of them"
                )
            if identity:
                found[name] = identity
    return found


def log_directory(cluster: Path) -> Path:
    inside = cluster / DIRECTORY
    return inside if inside.is_dir() else cluster


class ShippedLog:
    """Follows one cluster's log. Each batch is read once, however often :meth:`latest` is called."""

    def __init__(self, path: Path, mark_bytes: int = MARK) -> None:
        self._path = path
        self._mark_bytes = mark_bytes
        self._newest: ShippedPosition | None = None
        """The end of what is there."""
        self._marks: list[ShippedPosition] = []
        """Places between what was handed out and the end of what is there, in order."""

    def latest(self, start: ShippedPosition | None, most_bytes: int) -> ShippedPosition:
        """How far to read from ``start`` (None: the cluster is new): some ``most_bytes`` on, and no further
        than the last whole batch.
        """
        try:
            segments, snapshots = log_files(self._path)
            if start is None or not _goes_on(start, segments):
                start = begun(self._path, 0 if start is None else start.generation, segments, snapshots)
                self._newest, self._marks = start, []
            elif self._newest is not None and not _goes_on(self._newest, segments):
                self._newest, self._marks = None, []
            fresh: list[ShippedPosition] = []
            self._newest = self._walk((self._newest or start)._replace(problem=None), segments, fresh)
        except (MetadataDirError, SegmentError) as error:
            return (start or ShippedPosition())._replace(problem=str(error))
        except OSError as error:
            # A file was removed between two looks, or it cannot be read.
            text = f"{error.filename or self._path}: cannot be read: {error.strerror}"
            return (start or ShippedPosition())._replace(problem=text)
        self._marks = [mark for mark in (*self._marks, *fresh) if mark.offset > start.offset]
        return self._within(start, self._newest, most_bytes, dict(segments))

    def _walk(self, at: ShippedPosition, segments: LogFiles, fresh: list[ShippedPosition]) -> ShippedPosition:
        """From ``at`` to the end of the last whole batch; adds the places on the way to ``fresh``."""
        bases = [base for base, _ in segments]
        while True:
            if at.segment == NO_SEGMENT:
                place = bisect_right(bases, at.offset) - 1
                if place < 0:
                    return at
                at = at._replace(segment=bases[place], position=0)
            place = bases.index(at.segment)
            path, is_last = segments[place][1], place + 1 == len(bases)
            at, defect = self._walk_segment(at, path, fresh)
            if is_last and (defect is None or defect.kind in _STILL_COPIED):
                return at
            if defect is not None:
                return at._replace(problem=f"{path.name}: {defect.text}")
            following = bases[place + 1]
            if following > at.offset:
                missing = (
                    f"offsets {at.offset} to {following - 1} are missing before {segments[place + 1][1].name}"
                )
                return at._replace(problem=missing)
            at = at._replace(segment=following, position=0)

    def _walk_segment(
        self, at: ShippedPosition, path: Path, fresh: list[ShippedPosition]
    ) -> tuple[ShippedPosition, SegmentDefect | None]:
        marked, newest = at.position, None
        with SegmentFile(path) as file:
            batches = SegmentReader(_SegmentTail(file, at.position))
            for batch in batches:
                header, behind = batch
                if header.next_offset <= at.offset:
                    continue  # in the snapshot
                expected = at.offset if newest is None else newest.header.next_offset
                if header.base_offset > expected:
                    text = missing_offsets(expected, header.base_offset)
                    defect = SegmentDefect(DefectKind.OUT_OF_ORDER, at.position + behind, text)
                    return at if newest is None else _after(at, newest), defect
                if header.compression != "none":
                    text = compressed_batch(header.base_offset)
                    defect = SegmentDefect(DefectKind.UNREADABLE, at.position + behind, text)
                    return at if newest is None else _after(at, newest), defect
                newest = batch
                end = at.position + behind + header.size
                if end - marked >= self._mark_bytes:
                    marked = end
                    fresh.append(_after(at, batch))
        return at if newest is None else _after(at, newest), batches.defect

    def _within(
        self, start: ShippedPosition, newest: ShippedPosition, most_bytes: int, segments: dict[int, Path]
    ) -> ShippedPosition:
        before = _bytes_before(segments)
        end_bytes = before(newest)
        most = before(start) + most_bytes
        end = next((mark for mark in self._marks if before(mark) >= most), newest)
        return end._replace(
            newest_ms=newest.newest_ms, unread=end_bytes - before(end), problem=newest.problem
        )


def _after(at: ShippedPosition, batch: Batch) -> ShippedPosition:
    """Behind a batch of the segment of ``at`` that was read from ``at`` on."""
    header, behind = batch
    place = at.position + behind
    return at._replace(
        position=place + header.size,
        offset=header.next_offset,
        last=(at.segment, place, header.crc),
        time_ms=header.max_timestamp,
        newest_ms=header.max_timestamp,
    )


def begun(path: Path, generation: int, segments: LogFiles, snapshots: LogFiles) -> ShippedPosition:
    """Where reading begins: at the log's first record, or with the oldest snapshot that the log continues.

    ``generation`` is the one before. Raises MetadataDirError and SegmentError.
    """
    first = segments[0][0] if segments else None
    if first is None and not snapshots:
        raise MetadataDirError(f"{path}: holds no metadata log (no .log and no .checkpoint file)")
    if first is not None and first <= FIRST_DATA_OFFSET:
        return ShippedPosition(generation + 1, began=first, offset=first)
    snapshot, end = snapshot_before(path, snapshots, first)
    newest = _time_of_snapshot(snapshot)
    return ShippedPosition(generation + 1, snapshot.name, end, offset=end, time_ms=newest, newest_ms=newest)


def _time_of_snapshot(path: Path) -> int:
    """The time of its newest record. Raises MetadataDirError if the snapshot is not whole: its last batch is
    a control batch (KIP-630).
    """
    newest, ends = -1, False
    with SegmentFile(path) as file:
        batches = SegmentReader(file)
        for header, _ in batches:
            newest, ends = max(newest, header.max_timestamp), header.is_control
    if batches.defect is not None or not ends:
        raise MetadataDirError(f"{path}: the snapshot is not whole yet")
    return newest


def _goes_on(start: ShippedPosition, segments: LogFiles) -> bool:
    """Whether the log still holds what comes after ``start``, and was not rewritten before it."""
    paths = dict(segments)
    if start.generation == 0:
        return False
    if start.segment == NO_SEGMENT:
        return not segments or segments[0][0] <= start.offset
    if start.segment not in paths or paths[start.segment].stat().st_size < start.position:
        return False
    segment, position, crc = start.last
    if segment not in paths:
        return True
    with SegmentFile(paths[segment]) as file:
        header = file.read(position, HEADER_SIZE)
    return len(header) == HEADER_SIZE and parse_header(header).crc == crc


def _bytes_before(segments: dict[int, Path]) -> Callable[[ShippedPosition], int]:
    """Counts the bytes of the log up to a position."""
    before, total = {NO_SEGMENT: 0}, 0
    for base, path in segments.items():
        before[base] = total
        total += path.stat().st_size
    return lambda at: before[at.segment] + at.position


class _SegmentTail:
    """A segment from byte ``start`` on."""

    def __init__(self, file: SegmentFile, start: int) -> None:
        self._file = file
        self._start = start
        self.size = max(0, file.size - start)

    def read(self, at: int, count: int) -> bytes:
        return self._file.read(self._start + at, count)


_STILL_COPIED = frozenset((DefectKind.CUT_SHORT, DefectKind.ZEROS, DefectKind.WRONG_CHECKSUM))
