"""A part of a cluster's metadata log as record batches of Arrow: one row for each record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from backends.log_segments.segment_source import SegmentError, SegmentFile
from backends.metadata_log.directory import MetadataDirError, log_files
from pipeline.watch.log_columns import MetadataLogColumns, columns_of, gathered, log_columns
from pipeline.watch.record_columns import may_be_shown, record_batch, record_types
from pipeline.watch.shipped_log import LogFiles, begun, log_directory
from pipeline.watch.watch_progress import NO_SEGMENT, ShippedPosition
from recovery.metadata_log.log_changes import IN_SNAPSHOT

ROWS = 50_000
"""Rows of a record batch with a row for each record."""

PARTS = pa.schema([("part", pa.binary())])
"""A row for each :class:`ShippedPart` of a micro-batch, pickled."""

RECORDS = pa.schema(
    [("offset", pa.int64()), ("time_ms", pa.int64()), ("batch", pa.int64()), ("record", pa.binary())]
)
"""The records of a part that incidents are folded from, in the order of the log. ``batch`` is IN_SNAPSHOT in a
snapshot. A null record is where the log begins.
"""


class ShippedPart(NamedTuple):
    """The records from ``start`` to ``end``; a start of None, or of an earlier generation, means that the log
    is begun: a row without a record comes first, then the snapshot.
    """

    cluster: str
    path: Path
    start: ShippedPosition | None
    end: ShippedPosition


def read_part(part: ShippedPart, names: list[str]) -> Iterator[Any]:
    """Record batches with the columns ``names``.

    If the files of the part were removed meanwhile, the log is begun again with what is there.
    """
    for columns in part_columns(part, ROWS):
        yield record_batch(part.cluster, columns, names)


def incident_records(part: ShippedPart) -> pa.Table:
    """Its :data:`RECORDS`, without those that no incident needs, or whose content may be a secret: the state of a
    fold has the records of a transaction that is not over.
    """
    found = [RECORDS.empty_table()]
    for columns in part_columns(part, ROWS):
        values = columns.value
        needed = may_be_shown(values, record_types(values)) | values.is_null().to_numpy(zero_copy_only=False)
        arrays = [*map(pa.array, (columns.offset, columns.time_ms, columns.batch)), values]
        found.append(pa.table(arrays, schema=RECORDS).filter(pa.array(needed)))
    return pa.concat_tables(found).combine_chunks()


def part_columns(part: ShippedPart, rows: int) -> Iterator[MetadataLogColumns]:
    """The records of the part, at least ``rows`` at once, and the rest. The number of a record batch is
    IN_SNAPSHOT in a snapshot. A null value is the row with which the log begins.
    """
    return gathered(_columns_of_files(part, rows), rows)


def _columns_of_files(part: ShippedPart, rows: int) -> Iterator[MetadataLogColumns]:
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
        yield from _beginning(directory, start, rows)
    for (base, path), following in zip(segments, [*(b for b, _ in segments[1:]), None], strict=True):
        if (
            base > end.segment
            or base < start.segment
            or (following is not None and following <= start.offset)
        ):
            continue
        at = start.position if base == start.segment else 0
        to = end.position if base == end.segment else None
        for columns in log_columns(_read(path, at, to), rows):
            found = columns.between(start.offset, end.offset)
            if len(found.offset):
                yield found


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


def _beginning(directory: Path, start: ShippedPosition, rows: int) -> Iterator[MetadataLogColumns]:
    yield columns_of([(start.began, start.time_ms, IN_SNAPSHOT, 0, None)])
    if start.snapshot:
        for columns in log_columns(_read(directory / start.snapshot, 0, None), rows):
            yield columns._replace(batch=np.full(len(columns.batch), IN_SNAPSHOT))


def _read(path: Path, start: int, end: int | None) -> bytes:
    with SegmentFile(path) as file:
        return file.read(start, (file.size if end is None else end) - start)
