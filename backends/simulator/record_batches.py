"""What logs do not hold: the record batches (magic 2, KIP-98) of their epoch spans, and when records were written.

Batches of clients are stored by (epoch, offset), which identifies one record in every log. Records of the
scenario's own producers are generated when they are read; of its transactions, it is stored whose they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from io import BytesIO
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from backends.simulator.loop import MILLISECOND
from recovery.model import EpochSpan, TopicPartition

if TYPE_CHECKING:
    from kio.records.schema import Record

_BASE = Struct(">q")
_EPOCH = Struct(">i")
_EPOCH_AT = 12
_HEADER = Struct(">qiibIhiqqqhii")
_MAGIC = 2
_COMPRESSION = 0x07
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
MADE_UP = 500
"""The most records in a generated batch."""


class BadRecords(ValueError):
    """A produced batch is damaged, or not of magic 2."""


class Compressed(BadRecords):
    """The batch is compressed; that is not supported here."""


class ProducedBatch(NamedTuple):
    """A batch as it was produced. Sequence and producer are -1 for a producer that is not idempotent."""

    data: bytes
    records: int
    producer_id: int
    producer_epoch: int
    sequence: int
    transactional: bool = False


def read_produced(data: bytes) -> ProducedBatch:
    """The one batch of a produce request. Raises BadRecords."""
    from kio.records.readers import read_batch  # noqa: PLC0415  # only where records are read or made

    if len(data) < _HEADER.size:
        raise BadRecords("a batch that is cut")
    head = _HEADER.unpack_from(data)
    _, length, _, magic, _, attributes, last_delta, _, _, producer, epoch, sequence, count = head
    if magic != _MAGIC or length + 12 != len(data) or attributes & _CONTROL:
        raise BadRecords("one batch of magic 2 with records is what is taken here")
    if attributes & _COMPRESSION:
        raise Compressed("compressed")
    try:
        read_batch(data, 0)
    except Exception as error:  # kio's readers raise many kinds of errors
        raise BadRecords(str(error)) from None
    if count < 1 or last_delta != count - 1:
        raise BadRecords(f"{count} records that end at {last_delta}")
    return ProducedBatch(data, count, producer, epoch, sequence, bool(attributes & _TRANSACTIONAL))


class GeneratedBatch(NamedTuple):
    """A batch of ``size`` records whose bytes are generated when it is read. ``records`` are keys and values;
    without them the values say offset and epoch.
    """

    size: int
    producer_id: int = -1
    producer_epoch: int = -1
    control: bool = False
    records: tuple[tuple[bytes | None, bytes | None], ...] = ()


class _OfSpans(NamedTuple):
    """Of one partition and epoch, for spans that ascend: starts, ends, and something about each span."""

    starts: list[int]
    ends: list[int]
    values: list[Any]

    def append(self, span: EpochSpan, value: object) -> None:
        self.starts.append(span.start)
        self.ends.append(span.end)
        self.values.append(value)


class RecordContents:
    """The stored batches of clients, for all logs together."""

    def __init__(self) -> None:
        self._stored: dict[tuple[TopicPartition, int], _OfSpans] = {}

    def add(self, tp: TopicPartition, span: EpochSpan, batch: ProducedBatch | GeneratedBatch) -> None:
        """A leader has appended ``batch`` as ``span``."""
        stored = self._stored.setdefault((tp, span.epoch), _OfSpans([], [], []))
        if isinstance(batch, GeneratedBatch):
            stored.append(span, batch)
            return
        data = bytearray(batch.data)
        _BASE.pack_into(data, 0, span.start)
        _EPOCH.pack_into(data, _EPOCH_AT, span.epoch)
        stored.append(span, bytes(data))

    def forget(self, topic: str) -> None:
        """The topic was deleted."""
        for key in [key for key in self._stored if key[0].topic == topic]:
            del self._stored[key]

    def read(self, tp: TopicPartition, span: EpochSpan, time_of: Callable[[int], int]) -> Iterator[bytes]:
        """The batches of exactly ``span``. ``time_of`` returns the timestamp in ms of a generated record."""
        stored = self._stored.get((tp, span.epoch), _OfSpans([], [], []))
        offset = span.start
        at = max(bisect_right(stored.starts, offset) - 1, 0)
        while offset < span.end:
            while at < len(stored.starts) and stored.ends[at] <= offset:
                at += 1
            if at < len(stored.starts) and stored.starts[at] <= offset:
                end = min(stored.ends[at], span.end)
                whole = stored.starts[at] == offset and stored.ends[at] == end
                data, part = stored.values[at], EpochSpan(span.epoch, offset, end)
                if isinstance(data, GeneratedBatch):
                    yield _generated(data, offset - stored.starts[at], part, time_of(offset))
                else:
                    yield data if whole else _part(data, part)
            else:
                until = stored.starts[at] if at < len(stored.starts) else span.end
                end = _same_time(offset, min(until, span.end, offset + MADE_UP), time_of)
                yield _made_up(EpochSpan(span.epoch, offset, end), time_of(offset))
            offset = end


def _part(data: bytes, span: EpochSpan) -> bytes:
    """The part of a batch that a truncation has left."""
    from kio.records.readers import read_batch  # noqa: PLC0415  # only where records are read or made

    batch, _ = read_batch(data, 0)
    records = [record for record in batch.records if span.start <= record.offset < span.end]
    attributes = int(batch.attributes) & _TRANSACTIONAL
    return _written(span, records, (batch.producer_id, batch.producer_epoch), attributes)


def _same_time(start: int, end: int, time_of: Callable[[int], int]) -> int:
    """The end of the records that have the same timestamp as the one at ``start``."""
    time = time_of(start)
    return next((offset for offset in range(start + 1, end) if time_of(offset) != time), end)


def _made_up(span: EpochSpan, time_ms: int) -> bytes:
    return _generated(GeneratedBatch(span.end - span.start), 0, span, time_ms)


def _generated(batch: GeneratedBatch, first: int, span: EpochSpan, time_ms: int) -> bytes:
    """The records of ``batch`` from its record ``first`` on, which have the offsets of ``span``."""
    from kio.records.schema import Record  # noqa: PLC0415  # only where records are read or made
    from kio.static.primitive import TZAwareMicros, i8, i64  # noqa: PLC0415

    # kio truncates a float to milliseconds; a tenth more avoids the next lower one.
    timestamp = TZAwareMicros.parse(datetime.fromtimestamp(time_ms / 1000 + 0.0001, UTC))
    own = batch.records[first : first + span.end - span.start]
    contents = own or [
        (None, f"record {offset} of epoch {span.epoch}".encode()) for offset in range(span.start, span.end)
    ]
    records = [
        Record(attributes=i8(0), timestamp=timestamp, offset=i64(offset), key=key, value=value, headers=())
        for offset, (key, value) in enumerate(contents, span.start)
    ]
    attributes = (_TRANSACTIONAL if batch.producer_id >= 0 else 0) | (_CONTROL if batch.control else 0)
    return _written(span, records, (batch.producer_id, batch.producer_epoch), attributes)


def _written(
    span: EpochSpan, records: Sequence[Record], producer: tuple[int, int], attributes: int = 0
) -> bytes:
    """``producer`` is its id and epoch."""
    from kio.records.schema import NewRecordBatch  # noqa: PLC0415  # only where records are read or made
    from kio.records.writers import write_new_batch  # noqa: PLC0415
    from kio.static.primitive import i16, i32, i64  # noqa: PLC0415

    buffer = BytesIO()
    batch = NewRecordBatch(
        producer_id=i64(producer[0]),
        producer_epoch=i16(producer[1]),
        partition_leader_epoch=i32(span.epoch),
        base_sequence=i32(-1),
        records=tuple(records),
        attributes=i16(attributes),
    )
    write_new_batch(buffer, batch)
    return buffer.getvalue()


class RecordTimes:
    """Leaders add to it as they append. Records from before the run have time 0."""

    def __init__(self) -> None:
        self._batches: dict[tuple[TopicPartition, int], _OfSpans] = {}

    def written(self, tp: TopicPartition, span: EpochSpan, now: int) -> None:
        """A leader appended a batch; ``now`` in virtual µs."""
        self._batches.setdefault((tp, span.epoch), _OfSpans([], [], [])).append(span, now // MILLISECOND)

    def forget(self, topic: str) -> None:
        """The topic was deleted."""
        for key in [key for key in self._batches if key[0].topic == topic]:
            del self._batches[key]

    def of(self, tp: TopicPartition, epoch: int, offset: int) -> tuple[int, int]:
        """(First, newest) timestamp in ms of the batch that holds the record."""
        batches = self._batches.get((tp, epoch))
        if batches is None:
            return 0, 0
        at = bisect_right(batches.starts, offset) - 1
        if at < 0 or batches.ends[at] <= offset:
            return 0, 0
        return batches.values[at], batches.values[at]
