"""Record batches (KIP-98, magic 2) as they lie in segments, snapshots and Fetch answers of the metadata log."""

from __future__ import annotations

from collections.abc import Iterator

from aiokafka.errors import KafkaError
from aiokafka.record.default_records import DefaultRecordBatch

from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentBytes
from recovery.metadata_log.log_changes import IN_SNAPSHOT, MetadataLogRecord


class BatchReader:
    """The batches of one piece of the log. ``next_offset`` is one beyond the last whole batch, and ``epoch`` its
    leader epoch. ``problem`` is why the reading ended before the end of the data, None where it did not.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.next_offset = 0
        self.epoch = 0
        self.problem: str | None = None

    def data_records(self, *, in_snapshot: bool = False) -> Iterator[MetadataLogRecord]:
        """Every data record, up to the first batch that is cut, damaged or compressed: that is the problem."""
        # aiokafka checks the checksums: to import the package crc32c takes longer than to read a small log.
        batches = SegmentReader(SegmentBytes(self._data), check_from=None)
        for found in batches:
            base = found.header.base_offset
            self.epoch = found.header.leader_epoch
            try:
                batch = DefaultRecordBatch(batches.raw(found))
                if not batch.validate_crc():
                    self.problem = f"the batch at offset {base} is damaged: its checksum is wrong"
                    return
                if found.header.compression != "none":
                    self.problem = f"the batch at offset {base} is compressed; a metadata log never is"
                    return
                self.next_offset = found.header.next_offset
                if found.header.is_control:
                    continue
                records = [(record.offset, record.timestamp, record.value) for record in batch]
            except (KafkaError, ValueError, OverflowError) as error:
                self.problem = f"the batch at offset {base} cannot be read: {type(error).__name__}"
                return
            for offset, time_ms, value in records:
                if value is not None:
                    yield MetadataLogRecord(
                        offset, time_ms, IN_SNAPSHOT if in_snapshot else base, bytes(value)
                    )
        if batches.defect is not None:
            self.problem = batches.defect.text
