"""A part of a cluster's metadata log as record batches of Arrow: one row for each record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from backends.log_segments.segment_source import SegmentError, SegmentFile
from backends.metadata_log.batches import BatchReader, DataBatch
from backends.metadata_log.directory import MetadataDirError, log_files
from pipeline.watch.log_position import NO_SEGMENT, ShippedPosition
from pipeline.watch.record_columns import RecordRow, record_batch
from pipeline.watch.shipped_log import LogFiles, begun, log_directory
from recovery.metadata_log.log_changes import IN_SNAPSHOT

ROWS = 50_000
"""Rows of a record batch."""


class ShippedPart(NamedTuple):
    """The records from ``start`` to ``end``; a start of None, or of an earlier generation, means that the log
    is begun: a row without a record comes first, then the snapshot.
    """

    cluster: str
    path: Path
    start: ShippedPosition | None
    end: ShippedPosition


class PartBatch(NamedTuple):
    """As DataBatch; a value of None is the row with which the log begins."""

    base: int
    epoch: int
    records: Sequence[tuple[int, int, bytes | None]]


def read_part(part: ShippedPart, names: list[str]) -> Iterator[Any]:
    """Record batches with the columns ``names``.

    If the files of the part were removed meanwhile, the log is begun again with what is there.
    """
    rows: list[RecordRow] = []
    for number, (_, epoch, records) in part_batches(part):
        for offset, time_ms, value in records:
            rows.append(RecordRow(offset, time_ms, number, value, epoch))
            if len(rows) >= ROWS:
                yield record_batch(part.cluster, rows, names)
                rows = []
    if rows:
        yield record_batch(part.cluster, rows, names)


def part_batches(part: ShippedPart) -> Iterator[tuple[int, PartBatch]]:
    """The batches of the part, each with its number, which is IN_SNAPSHOT in a snapshot. A value of None is the row
    with which the log begins.
    """
    directory = log_directory(part.path)
    start, end = part.start, part.end
    try:
        segments, snapshots = log_files(directory)
    except MetadataDirError:
        segments, snapshots = [], []
    begins = start is None or start.generation != end.generation
    if start is None or begins:
        start = ShippedPosition(end.generation, end.snapshot, end.began, offset=end.began)
    if not _is_there(start, end, segments) or (begins and not (directory / start.snapshot).exists()):
        start, begins = _begun_again(directory, end, segments, snapshots), True
    if begins:
        yield from _beginning(directory, start)
    for (base, path), following in zip(segments, [*(b for b, _ in segments[1:]), None], strict=True):
        if (
            base > end.segment
            or base < start.segment
            or (following is not None and following <= start.offset)
        ):
            continue
        at = start.position if base == start.segment else 0
        to = end.position if base == end.segment else None
        for batch in _batches(path, at, to):
            found = _between(batch, start.offset, end.offset)
            if found.records:
                yield found.base, found


def _between(batch: DataBatch, start: int, end: int) -> PartBatch:
    """The records of the batch from offset ``start`` to before ``end``; most batches lie between them."""
    base, epoch, records = batch
    if records and start <= records[0][0] and records[-1][0] < end:
        return PartBatch(base, epoch, records)
    return PartBatch(base, epoch, [record for record in records if start <= record[0] < end])


def _is_there(start: ShippedPosition, end: ShippedPosition, segments: LogFiles) -> bool:
    return segments[0][0] <= start.offset if segments else end.segment == NO_SEGMENT


def _begun_again(
    directory: Path, end: ShippedPosition, segments: LogFiles, snapshots: LogFiles
) -> ShippedPosition:
    """Where the log begins now; behind ``end``, without a state, if nothing of it is left."""
    try:
        return begun(directory, end.generation, segments, snapshots)
    except (MetadataDirError, SegmentError):
        return ShippedPosition(end.generation, began=end.offset, offset=end.offset)


def _beginning(directory: Path, start: ShippedPosition) -> Iterator[tuple[int, PartBatch]]:
    yield IN_SNAPSHOT, PartBatch(start.began, 0, [(start.began, start.time_ms, None)])
    if start.snapshot:
        for batch in _batches(directory / start.snapshot, 0, None):
            yield IN_SNAPSHOT, PartBatch(*batch)


def _batches(path: Path, start: int, end: int | None) -> Iterator[DataBatch]:
    with SegmentFile(path) as file:
        data = file.read(start, (file.size if end is None else end) - start)
    yield from BatchReader(data).data_batches()
