"""Record batches (KIP-98, magic 2) as they lie in segments, snapshots and Fetch answers of the metadata log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from struct import Struct
from typing import Any, NamedTuple

from backends.log_segments.batch_header import CHECKED_FROM, HEADER, LENGTH_BEFORE, MAGIC
from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentBytes
from recovery.metadata_log.control_records import ControlRecord, decode_control
from recovery.metadata_log.field_reader import MalformedRecordError
from recovery.metadata_log.log_changes import IN_SNAPSHOT, MetadataLogRecord
from recovery.metadata_log.rebuilt_log import RebuiltLogFinder
from recovery.metadata_log.record_codec import NO_OP

_made: Any = tuple.__new__
_RECORDS_AT_ONCE = 1_000
_IDLE_AT_ONCE = 10_000
"""So many batches without a change are passed over in one go: some milliseconds."""
_IDLE_RECORD = bytes((20, 0, 0, 0, 1, 2 * len(NO_OP))) + NO_OP + bytes(1)
"""A record without key and headers whose value is a NoOpRecord."""
_IDLE = Struct(f"{HEADER.format}{len(_IDLE_RECORD)}s")
_IDLE_LENGTH = _IDLE.size - LENGTH_BEFORE


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
    ``rebuilt`` is handed each batch, those of an idle controller left out.
    """

    def __init__(
        self,
        data: bytes,
        first_offset: int | None = None,
        *,
        picked: bool = False,
        rebuilt: RebuiltLogFinder | None = None,
    ) -> None:
        self._data = data
        self._rebuilt = rebuilt
        self._expected = first_offset
        self._picked = picked
        self.next_offset = 0
        self.epoch = 0
        self.problem: str | None = None

    def data_records(self, *, in_snapshot: bool = False) -> Iterator[MetadataLogRecord]:
        """Every data record that changes something, up to the first batch that is cut, damaged, compressed or
        behind missing ones: that is the problem.

        An idle controller writes a NoOpRecord twice a second (``metadata.max.idle.interval.ms``), each in a batch
        of its own: most of the log of a quiet cluster. Those batches are checked, and left out.
        """
        return chain.from_iterable(self.pieces(_RECORDS_AT_ONCE, in_snapshot=in_snapshot))

    def pieces(self, size: int, *, in_snapshot: bool = False) -> Iterator[list[MetadataLogRecord]]:
        """The same, at most ``size`` records at once. A piece takes some milliseconds, and may be empty."""
        piece: list[MetadataLogRecord] = []
        for batch in self._batches(idle=False):
            number = IN_SNAPSHOT if in_snapshot else batch.base
            rows = [(offset, time_ms, number, value) for offset, time_ms, value in batch.records]
            # As MetadataLogRecord(...) does, without a call of Python's for each of a million records.
            piece += map(_made, repeat(MetadataLogRecord), rows)
            while len(piece) >= size:
                yield piece[:size]
                del piece[:size]
            if not batch.records:
                yield piece
                piece = []
        if piece:
            yield piece

    def data_batches(self) -> Iterator[DataBatch]:
        """Every data batch; control batches are left out."""
        return self._batches(idle=True)

    def _batches(self, *, idle: bool) -> Iterator[DataBatch]:
        """The data batches; without the ``idle`` ones, one that is empty stands for each stretch of them."""
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
                if self._rebuilt is not None:
                    controls = _controls(batch) if found.header.is_control else []
                    self._rebuilt.batch(base, self.next_offset, self.epoch, controls)
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
            while not idle and (end := self._end_of_idle(batches.end_position)) > batches.end_position:
                batches.skip_to(end)
                yield DataBatch(self.next_offset, self.epoch, [])
        if batches.defect is not None:
            self.problem = batches.defect.text

    def _end_of_idle(self, position: int) -> int:
        """Where the batches end that begin at that byte, follow the last one in its epoch, and hold a NoOpRecord
        alone. Whatever is not exactly like them is left to the reader.
        """
        from aiokafka.record.util import calc_crc32c  # noqa: PLC0415  # slow to import, and not for the first screen

        data, unpack, size, in_epoch = self._data, _IDLE.unpack_from, _IDLE.size, self.epoch
        expected, last = self.next_offset, min(position + size * _IDLE_AT_ONCE, len(data)) - size
        while position <= last:
            base, length, epoch, magic, crc, attributes, delta, _, _, _, _, _, count, record = unpack(
                data, position
            )
            if (
                record != _IDLE_RECORD
                or length != _IDLE_LENGTH
                or (base, epoch, magic, attributes, delta, count) != (expected, in_epoch, MAGIC, 0, 0, 1)
                or calc_crc32c(data[position + CHECKED_FROM : position + size]) != crc
            ):
                break
            expected += 1
            position += size
        self.next_offset = self._expected = expected
        return position


def control_records(records: Iterable[Any]) -> Iterator[tuple[int, ControlRecord]]:
    """What the records of a control batch say of the quorum, each with its offset. Raises MalformedRecordError."""
    for record in records:
        decoded = decode_control(bytes(record.key or b""), bytes(record.value or b""))
        if decoded is not None:
            yield record.offset, decoded


def _controls(records: Iterable[Any]) -> list[ControlRecord]:
    """None where one cannot be read: the data of the log can, all the same."""
    try:
        return [record for _, record in control_records(records)]
    except MalformedRecordError:
        return []


def missing_offsets(expected: int, found: int) -> str:
    """The problem that the batch at offset ``found`` stands where ``expected`` should."""
    if found < expected:
        return f"a batch at offset {found} stands where offset {expected} should"
    return f"offsets {expected} to {found - 1} are missing before the batch at offset {found}"


def compressed_batch(base: int) -> str:
    """The problem that the batch at offset ``base`` is compressed."""
    return f"the batch at offset {base} is compressed; a metadata log never is"
