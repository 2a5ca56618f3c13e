"""Reading what a rescue directory holds: branches, batches, and how their transactions ended."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from backends.log_segments.batch_header import HEADER_SIZE, BatchHeader
from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentError, SegmentFile
from console.errors import InputError
from console.rescue.manifest import (
    INDEX,
    MANIFEST,
    BranchManifest,
    RescueIndex,
    SegmentEntry,
    branch_directory,
    read_index,
    read_manifest,
)
from console.rescue.record_fields import MalformedRecord, RecordFieldReader
from recovery.rescue_branches import RescueBranch

LARGEST_BATCH = 1 << 28
"""Bytes of a batch that is read into memory at all."""
_ABORT, _COMMIT = 0, 1


class RescuedBatch(NamedTuple):
    """A batch as it lies in the file. ``data`` is the whole of it."""

    header: BatchHeader
    data: bytes


@dataclass(frozen=True, slots=True)
class RescuedBranch:
    """One branch on disk; ``manifest`` is None if its reading was never finished."""

    directory: Path
    branch: RescueBranch
    manifest: BranchManifest | None

    @property
    def problem(self) -> str | None:
        """Why the branch is not whole, None if it is."""
        if self.manifest is None:
            return "its reading was not finished"
        return None if self.manifest.whole else self.manifest.problem or "not whole"

    @property
    def segments(self) -> tuple[SegmentEntry, ...]:
        return () if self.manifest is None else self.manifest.segments

    def batches(self) -> Iterator[RescuedBatch]:
        """Every batch, its checksum checked. Raises InputError where a file is not as the manifest says."""
        for segment in self.segments:
            path = self.directory / segment.name
            with ExitStack() as closing:
                try:
                    source = closing.enter_context(SegmentFile(path))
                    if source.size != segment.size:
                        raise InputError(
                            f"{path}: has {source.size:,} bytes, and {segment.size:,} were written"
                        )
                    reader = SegmentReader(source)
                    for batch in reader:
                        if batch.header.size > LARGEST_BATCH:
                            raise InputError(f"{path}: a batch of {batch.header.size:,} bytes is not read")
                        yield RescuedBatch(batch.header, reader.raw(batch))
                except SegmentError as error:
                    raise InputError(str(error)) from None
                if reader.defect is not None:
                    raise InputError(f"{path}: {reader.defect.text}")


@dataclass(frozen=True, slots=True)
class RescueContents:
    """A whole rescue directory."""

    path: Path
    index: RescueIndex
    branches: tuple[RescuedBranch, ...]


def open_rescue(path: Path) -> RescueContents:
    """The branches by partition and offset. Raises InputError."""
    index = read_index(path / INDEX)
    branches = []
    for branch in index.branches:
        directory = path / branch_directory(branch)
        manifest = read_manifest(directory / MANIFEST) if (directory / MANIFEST).exists() else None
        if manifest is not None and manifest.branch.spans != branch.spans:
            raise InputError(f"{directory / MANIFEST}: it is of another branch than {INDEX} says")
        branches.append(RescuedBranch(directory, branch, manifest))
    branches.sort(key=lambda one: (one.branch.tp, one.branch.start, one.branch.broker))
    return RescueContents(path, index, tuple(branches))


class Ending(StrEnum):
    """How the transaction of a batch ended. OPEN: the branch holds no end of it."""

    NONE = "no transaction"
    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"


class _Marker(NamedTuple):
    offset: int
    producer_epoch: int
    ending: Ending


_offset_of = attrgetter("offset")


class TransactionEndings:
    """How the transactions in a branch ended, from its control batches (KIP-98)."""

    def __init__(self) -> None:
        self._markers: dict[int, list[_Marker]] = {}

    @classmethod
    def of(cls, branch: RescuedBranch) -> TransactionEndings:
        """Reads the whole branch. Raises InputError."""
        found = cls()
        for batch in branch.batches():
            found.note(batch)
        return found

    def note(self, batch: RescuedBatch) -> None:
        """Takes a batch into account, in the order of offsets."""
        header = batch.header
        if header.is_control and header.is_transactional:
            ending = marker_ending(batch)
            if ending is not None:
                marker = _Marker(header.base_offset, header.producer_epoch, ending)
                self._markers.setdefault(header.producer_id, []).append(marker)

    def ending(self, header: BatchHeader) -> Ending:
        """How the transaction of that batch ended: by its producer's first marker behind it."""
        if not header.is_transactional:
            return Ending.NONE
        markers = self._markers.get(header.producer_id, [])
        for marker in markers[bisect_right(markers, header.last_offset, key=_offset_of) :]:
            # A producer that was fenced is aborted with a higher epoch than its records have.
            if marker.producer_epoch >= header.producer_epoch:
                return marker.ending
        return Ending.OPEN


def marker_ending(batch: RescuedBatch) -> Ending | None:
    """What a control batch says of a transaction; None for other kinds of control records."""
    try:
        fields = RecordFieldReader(batch.data, HEADER_SIZE)
        fields.varint()  # length of the record
        fields.skip(1)
        fields.varint()
        fields.varint()
        key = fields.sized()
    except MalformedRecord:
        return None
    if key is None or len(key) < 4:
        return None
    kind = int.from_bytes(key[2:4], "big")
    return {_ABORT: Ending.ABORTED, _COMMIT: Ending.COMMITTED}.get(kind)
