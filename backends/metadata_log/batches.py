"""Record batches (KIP-98, magic 2) as they lie in segments, snapshots and Fetch answers of the metadata log."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from aiokafka.errors import KafkaError
from aiokafka.record.default_records import DefaultRecordBatch

from recovery.metadata_log.history import IN_SNAPSHOT, MetadataLogRecord

_HEADER = Struct(">qiiB")
"""Base offset, length, leader epoch, magic."""
_LENGTH_BEFORE = 12
"""Bytes of a batch that its length does not count."""
_SMALLEST_BATCH = 61
_MAGIC = 2


class BatchReader:
    """The batches of one piece of the log. ``next_offset`` is one beyond the last whole batch, and ``epoch`` its
    leader epoch. ``problem`` is why the reading ended before the end of the data, None where it did not.
    """

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self.next_offset = 0
        self.epoch = 0
        self.problem: str | None = None

    def data_records(self, *, in_snapshot: bool = False) -> Iterator[MetadataLogRecord]:
        """Every data record, up to the first batch that is cut, damaged or compressed: that is the problem."""
        for base, batch in self._batches():
            if batch.compression_type != DefaultRecordBatch.CODEC_NONE:
                self.problem = f"the batch at offset {base} is compressed; a metadata log never is"
                return
            self.next_offset = batch.next_offset
            if batch.is_control_batch:
                continue
            try:
                records = [(record.offset, record.timestamp, record.value) for record in batch]
            except (KafkaError, ValueError, OverflowError) as error:
                self.problem = f"the batch at offset {base} cannot be read: {type(error).__name__}"
                return
            for offset, time_ms, value in records:
                if value is not None:
                    yield MetadataLogRecord(
                        offset, time_ms, IN_SNAPSHOT if in_snapshot else base, bytes(value)
                    )

    def _batches(self) -> Iterator[tuple[int, DefaultRecordBatch]]:
        at = 0
        while at < len(self._data):
            left = len(self._data) - at
            if left < _SMALLEST_BATCH:
                self.problem = f"the last {left} bytes are no whole batch"
                return
            base, length, epoch, magic = _HEADER.unpack_from(self._data, at)
            size = _LENGTH_BEFORE + length
            if magic != _MAGIC or size < _SMALLEST_BATCH or base < 0:
                self.problem = f"byte {at} is not the beginning of a batch"
                return
            if size > left:
                self.problem = f"the batch at offset {base} is cut short ({left} of {size} bytes)"
                return
            batch = DefaultRecordBatch(bytes(self._data[at : at + size]))
            if not batch.validate_crc():
                self.problem = f"the batch at offset {base} is damaged: its checksum is wrong"
                return
            self.epoch = epoch
            yield base, batch
            at += size
