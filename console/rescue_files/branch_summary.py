"""What a rescued branch holds, by its batches' headers; every checksum is checked on the way."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from backends.log_segments.segment_source import SegmentError, SegmentFile
from console.errors import InputError
from console.rescue_files.record_batches import (
    CannotUnpack,
    MalformedRecord,
    Record,
    keys_and_headers,
    records_of,
)
from console.rescue_files.rescued_branch import Ending, RescuedBranch, TransactionEndings, note_producer
from recovery.transactions.producer_sequences import CutOffProducer

_CHUNK = 1 << 20


class BranchSummary(NamedTuple):
    """Records of clients by how their transaction ended, and by compression. ``control`` are markers. ``first_ms``
    and ``last_ms`` are the batches' timestamps (ms since the epoch), None if no batch has one. ``keys`` are records
    with a key, ``headers`` those of all records; None where they were not counted. ``last_batches`` are those
    of its idempotent producers.
    """

    batches: int
    endings: Mapping[Ending, int]
    codecs: Mapping[str, int]
    control: int
    producers: int
    first_ms: int | None
    last_ms: int | None
    keys: int | None = None
    headers: int | None = None
    last_batches: tuple[CutOffProducer, ...] = ()

    @property
    def records(self) -> int:
        return sum(self.endings.values())


def summarise_branch(rescued: RescuedBranch, *, fields: bool = False) -> BranchSummary:
    """Reads the whole branch; with ``fields`` it unpacks its records too. Raises InputError where it is damaged."""
    transactions = TransactionEndings.of(rescued)
    endings: Counter[Ending] = Counter()
    codecs: Counter[str] = Counter()
    producers: set[int] = set()
    last_batches: dict[int, CutOffProducer] = {}
    times: list[int] = []
    batches = control = 0
    counted = _FieldCounts() if fields else None
    for header, data in rescued.batches():
        batches += 1
        note_producer(last_batches, rescued.branch.tp, header)
        if header.is_control:
            control += header.record_count
            continue
        endings[transactions.ending(header)] += header.record_count
        codecs[header.compression] += header.record_count
        if counted is not None:
            counted = counted.with_batch(data)
        if header.producer_id >= 0:
            producers.add(header.producer_id)
        # The base of a batch whose tombstones wait for their deletion is the time of that (KIP-534).
        begins = min(header.base_timestamp, header.max_timestamp)
        first = header.max_timestamp if header.is_log_append_time else begins
        if first >= 0:
            times = [min([first, *times[:1]]), max([header.max_timestamp, *times[1:]])]
    first_ms, last_ms = times or (None, None)
    keys, headers = counted or (None, None)
    return BranchSummary(
        batches,
        endings,
        codecs,
        control,
        len(producers),
        first_ms,
        last_ms,
        keys=keys,
        headers=headers,
        last_batches=tuple(last_batches.values()),
    )


class _FieldCounts(NamedTuple):
    keys: int = 0
    headers: int = 0

    def with_batch(self, data: bytes) -> _FieldCounts | None:
        """None where the batch's records cannot be read: then no count is true."""
        try:
            keys, headers = keys_and_headers(data)
        except (CannotUnpack, MalformedRecord):
            return None
        return _FieldCounts(self.keys + keys, self.headers + headers)


def bytes_there(rescued: RescuedBranch) -> int:
    """The bytes of the branch's segments as they are now; a file that is missing has none."""
    size = 0
    for segment in rescued.segments:
        with suppress(OSError):
            size += (rescued.directory / segment.name).stat().st_size
    return size


def check_segments(rescued: RescuedBranch) -> None:
    """Compares every file with the manifest's SHA-256. Raises InputError where one is another."""
    for segment in rescued.segments:
        path = rescued.directory / segment.name
        sha = hashlib.sha256()
        try:
            with SegmentFile(path) as file:
                for at in range(0, file.size, _CHUNK):
                    sha.update(file.read(at, _CHUNK))
        except SegmentError as error:
            raise InputError(str(error)) from None
        if sha.hexdigest() != segment.sha256:
            raise InputError(f"{path}: its SHA-256 is not that of the manifest: it was changed")


def first_records(rescued: RescuedBranch, most: int) -> Iterator[Record | str]:
    """The first ``most`` records of clients; a line in their place where a batch cannot be unpacked here."""
    left = most
    for header, data in rescued.batches():
        if left <= 0:
            return
        if header.is_control:
            continue
        try:
            for record in records_of(data):
                if left > 0:
                    yield record
                left -= 1
        except (CannotUnpack, MalformedRecord) as error:
            left -= header.record_count
            yield f"{header.record_count:,} records from offset {header.base_offset:,} on: {error}"
