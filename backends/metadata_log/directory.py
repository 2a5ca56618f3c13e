"""The metadata log as it lies in a directory ``__cluster_metadata-0`` of a controller or a broker.

Segments (``.log``) and snapshots (``.checkpoint``) are files of record batches (KIP-98, KIP-630). The node
may be running: a batch that is not whole yet, or is damaged, ends the reading, and is reported. Nothing is
written.

The high watermark is in no file: the newest records of a node's log may not be committed yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from backends.metadata_log.batches import BatchReader
from backends.metadata_log.topic_scan import TopicScan
from recovery.metadata_log.log_changes import MetadataLogRecord
from recovery.metadata_log.rebuilt_log import RebuiltLogFinder

DIRECTORY = "__cluster_metadata-0"
FIRST_DATA_OFFSET = 1
"""Record 0 is the first leader's own, and a controller that has a snapshot sends it to nobody. So a log from here
on is complete, too.
"""
_SEGMENT = re.compile(r"(\d{20})\.log")
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class MetadataDirError(Exception):
    """The directory holds no metadata log that can be read. The message is one line for a person."""


@dataclass(slots=True)
class DirectoryReading:
    """What was read from a directory. Filled while :func:`read_directory` is iterated.

    ``start_offset`` is the first offset of the log that was read, after the ``snapshot`` if there was one, and
    ``end_offset`` one beyond the last. ``problem`` is why the reading ended before the end of the files, or None.
    ``rebuilt`` follows what the log says of the quorum; nothing where only some batches are read.
    """

    path: Path
    snapshot: Path | None = None
    start_offset: int = 0
    end_offset: int = 0
    bytes_read: int = 0
    problem: str | None = None
    segments: list[Path] = field(default_factory=list)
    rebuilt: RebuiltLogFinder = field(default_factory=RebuiltLogFinder)


def read_directory(reading: DirectoryReading, scan: TopicScan | None = None) -> Iterator[MetadataLogRecord]:
    """Data records of the newest log that goes back the furthest: from the oldest snapshot that the log continues.
    With ``scan``, only the batches that it picks.

    Raises MetadataDirError where there is no log, or a part of it is missing.
    """
    segments, snapshots = log_files(reading.path)
    first = segments[0][0] if segments else None
    if first is None and not snapshots:
        raise MetadataDirError(f"{reading.path}: holds no metadata log (no .log and no .checkpoint file)")
    if first is None or first > FIRST_DATA_OFFSET:
        reading.snapshot, after = snapshot_before(reading.path, snapshots, first)
        # A snapshot counts its own records from 0.
        yield from _data_records(reading.snapshot, reading, scan, 0, is_snapshot=True)
        if reading.problem is not None:
            raise MetadataDirError(f"{reading.snapshot}: {reading.problem}")
        reading.start_offset = after
        reading.rebuilt = RebuiltLogFinder(reading.rebuilt.voters, _epoch_of(reading.snapshot))
    else:
        after = first
    reading.end_offset = after
    for number, (base, path) in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1][0] <= after:
            continue  # all of it is in the snapshot
        if base > reading.end_offset:
            reading.problem = f"offsets {reading.end_offset} to {base - 1} are missing before {path.name}"
        if reading.problem is not None:
            return
        reading.segments.append(path)
        for record in _data_records(path, reading, scan, base, is_snapshot=False):
            if record.offset >= after:
                yield record
    newest = max((end for end, _ in snapshots), default=0)
    if reading.problem is None and newest > reading.end_offset:
        reading.problem = f"offsets {reading.end_offset} to {newest - 1}, which a snapshot holds, are missing"


def log_files(path: Path) -> tuple[list[tuple[int, Path]], list[tuple[int, Path]]]:
    """Segments by first offset, and snapshots by the offset at which the log continues. Raises MetadataDirError."""
    try:
        names = sorted(path.iterdir())
    except OSError as error:
        raise MetadataDirError(f"{path}: cannot be read: {error.strerror}") from None
    segments = [(int(m[1]), name) for name in names if (m := _SEGMENT.fullmatch(name.name))]
    snapshots = [(int(m[1]), name) for name in names if (m := _SNAPSHOT.fullmatch(name.name))]
    return segments, snapshots


def snapshot_before(path: Path, snapshots: list[tuple[int, Path]], first: int | None) -> tuple[Path, int]:
    fitting = [(end, name) for end, name in snapshots if first is None or end >= first]
    if not fitting:
        raise MetadataDirError(f"{path}: the log begins at offset {first} and no snapshot leads up to it")
    # Without a log the newest snapshot tells most; with one, the oldest leaves most of the log to be read.
    end, name = fitting[-1] if first is None else fitting[0]
    return name, end


def _epoch_of(snapshot: Path) -> int:
    named = _SNAPSHOT.fullmatch(snapshot.name)
    assert named is not None
    return int(named[2])


def _data_records(
    path: Path, reading: DirectoryReading, scan: TopicScan | None, first_offset: int, *, is_snapshot: bool
) -> Iterator[MetadataLogRecord]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MetadataDirError(f"{path}: cannot be read: {error.strerror}") from None
    reading.bytes_read += len(data)
    if scan is None:
        batches = BatchReader(data, first_offset, rebuilt=reading.rebuilt)
    else:
        batches = BatchReader(scan.pick(data, first_offset), picked=True)
    yield from batches.data_records(in_snapshot=is_snapshot)
    problem = batches.problem or (None if scan is None else scan.problem)
    if problem is not None:
        reading.problem = f"{path.name}: {problem}"
    if not is_snapshot:
        end = batches.next_offset if scan is None else scan.next_offset
        reading.end_offset = max(reading.end_offset, end)
