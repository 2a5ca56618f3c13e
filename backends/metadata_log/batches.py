"""Record batches (KIP-98, magic 2) as they lie in segments, snapshots and Fetch answers of the metadata log."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any, NamedTuple

from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentBytes
from recovery.metadata_log.log_changes import IN_SNAPSHOT, MetadataLogRecord

_made: Any = tuple.__new__


class DataBatch(NamedTuple):
    """The data records of a batch: offset, time in milliseconds, and value. ``base``: its first offset."""

    base: int
    epoch: int
    records: list[tuple[int, int, bytes]]


class BatchReader:
    """The batches of one piece of the log. ``next_offset`` is one beyond the last whole batch, and ``epoch`` its
    leader epoch. ``problem`` is why the reading ended before the end of the data, None where it did not.

    No offset of a metadata log is ever left out: the first batch must begin at ``first_offset`` (None: anywhere)
    and each other one where the one before it ended, unless the batches were ``picked`` from such a piece.
    """

    def __init__(self, data: bytes, first_offset: int | None = None, *, picked: bool = False) -> None:
        self._data = data
        self._expected = first_offset
        self._picked = picked
        self.next_offset = 0
        self.epoch = 0
        self.problem: str | None = None

    def data_records(self, *, in_snapshot: bool = False) -> Iterator[MetadataLogRecord]:
        """Every data record, up to the first batch that is cut, damaged, compressed or behind missing ones: that is
        the problem.
        """
        for batch in self.data_batches():
            number = IN_SNAPSHOT if in_snapshot else batch.base
            rows = [(offset, time_ms, number, value) for offset, time_ms, value in batch.records]
            # As MetadataLogRecord(...) does, without a call of Python's for each of a million records.
            yield from map(_made, repeat(MetadataLogRecord), rows)

    def data_batches(self) -> Iterator[DataBatch]:
        """The same, batch by batch; control batches are left out."""
        from aiokafka.errors import KafkaError  # noqa: PLC0415  # slow to import, and not for the first screen
        from aiokafka.record.default_records import DefaultRecordBatch  # noqa: PLC0415

        # aiokafka checks the checksums: to import the package crc32c takes longer than to read a small log.
        batches = SegmentReader(SegmentBytes(self._data), check_from=None)
        for found in batches:
            base = found.header.base_offset
            if not self._picked and self._expected is not None and base != self._expected:
                self.problem = missing_offsets(self._expected, base)
                return
            self._expected = found.header.next_offset
            self.epoch = found.header.leader_epoch
            try:
                batch = DefaultRecordBatch(batches.raw(found))
                if not batch.validate_crc():
                    self.problem = f"the batch at offset {base} is damaged: its checksum is wrong"
                    return
                if found.header.compression != "none":
                    self.problem = compressed_batch(base)
                    return
                self.next_offset = found.header.next_offset
                if found.header.is_control:
                    continue
                records = [
                    (record.offset, record.timestamp, record.value)
                    for record in batch
                    if record.value is not None
                ]
            except (KafkaError, ValueError, OverflowError) as error:
                self.problem = f"the batch at offset {base} cannot be read: {type(error).__name__}"
                return
            yield DataBatch(base, self.epoch, records)
        if batches.defect is not None:
            self.problem = batches.defect.text


def missing_offsets(expected: int, found: int) -> str:
    """The problem that the batch at offset ``found`` stands where ``expected`` should."""
    if found < expected:
        return f"a batch at offset {found} stands where offset {expected} should"
    return f"offsets {expected} to {found - 1} are missing before the batch at offset {found}"


def compressed_batch(base: int) -> str:
    """The problem that the batch at offset ``base`` is compressed."""
    return f"the batch at offset {base} is compressed; a metadata log never is"
