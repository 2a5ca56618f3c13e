"""Record batches of replicas, read from the log dirs of a broker that is not asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from backends.base.answers import LogPosition, RawBatches
from backends.log_segments.segment_reader import OldMessages, SegmentReader
from backends.log_segments.segment_source import SegmentError, SegmentFile, reason_of
from console.rescue_files.rescued_segment import LARGEST_BATCH
from recovery.model import TopicPartition, Unknown, Why


class _DiskBatch(NamedTuple):
    next_offset: int
    data: bytes


@dataclass(slots=True)
class _Cursor:
    """``batches`` go on at ``offset``. ``problem`` is why there are no more, once they ended in one."""

    offset: int
    batches: Iterator[_DiskBatch]
    problem: str | None = None


class DiskBatches:
    """Reads as a broker's ``read_batches`` does. ``folders`` are the partitions' folders.

    Files are opened for reading only. Checksums are the reader's to check.
    """

    def __init__(self, folders: Mapping[TopicPartition, Path]) -> None:
        self._folders = folders
        self._cursors: dict[TopicPartition, _Cursor] = {}

    async def read(
        self, positions: Sequence[LogPosition], max_bytes: int
    ) -> Mapping[TopicPartition, RawBatches | Unknown]:
        """Whole batches from each position on, about ``max_bytes`` in all, in the order given."""
        return await asyncio.to_thread(self._read, positions, max_bytes)

    def _read(
        self, positions: Sequence[LogPosition], max_bytes: int
    ) -> Mapping[TopicPartition, RawBatches | Unknown]:
        found: dict[TopicPartition, RawBatches | Unknown] = {}
        left = max_bytes
        for tp, offset in positions:
            data = self._from(tp, offset, left)
            found[tp] = data if isinstance(data, Unknown) else RawBatches(data)
            left -= 0 if isinstance(data, Unknown) else len(data)
        return found

    def _from(self, tp: TopicPartition, offset: int, room: int) -> bytes | Unknown:
        """At least one batch if there is room at all. Unknown where the log cannot be read at ``offset``."""
        cursor = self._cursors.get(tp)
        if cursor is None or cursor.offset != offset:
            cursor = self._cursors[tp] = _Cursor(offset, _batches(self._folders[tp], offset))
        data = bytearray()
        while len(data) < room and cursor.problem is None:
            try:
                batch = next(cursor.batches, None)
            except SegmentError as error:
                cursor.problem = str(error)
                break
            if batch is None:
                break
            data += batch.data
            cursor.offset = batch.next_offset
        if not data and cursor.problem is not None:
            return Unknown(Why.FAILED, cursor.problem)
        return bytes(data)


def _batches(folder: Path, offset: int) -> Iterator[_DiskBatch]:
    """The batches of a partition's folder that end behind ``offset``. Raises SegmentError."""
    for path in _segments(folder, offset):
        with SegmentFile(path) as source:
            reader = SegmentReader(source, check_from=None, passes_old=True)
            for batch in reader:
                _refuse_old(path, reader.old, offset)
                header = batch.header
                if header.next_offset <= offset:
                    continue
                if header.size > LARGEST_BATCH:
                    raise SegmentError(f"{path}: a batch of {header.size:,} bytes is not read")
                yield _DiskBatch(header.next_offset, reader.raw(batch))
            _refuse_old(path, reader.old, offset)
            if reader.defect is not None:
                raise SegmentError(f"{path}: {reader.defect.text}")


def _refuse_old(path: Path, old: OldMessages, offset: int) -> None:
    """Raises SegmentError where messages of formats 0 and 1 at ``offset`` or later were passed over."""
    if old.messages and old.end > offset:
        raise SegmentError(
            f"{path}: {old.messages:,} messages of formats 0 and 1 ({old.size:,} bytes, before offset {old.end})"
            " are not read; a broker serves them"
        )


def _segments(folder: Path, offset: int) -> list[Path]:
    """The segments that reach beyond ``offset``, ascending. Raises SegmentError."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".log" and path.stem.isdecimal())
    except OSError as error:
        raise SegmentError(f"{folder}: cannot be listed: {reason_of(error)}") from None
    firsts = [int(path.stem) for path in paths[1:]]
    return [path for number, path in enumerate(paths) if number == len(firsts) or firsts[number] > offset]
