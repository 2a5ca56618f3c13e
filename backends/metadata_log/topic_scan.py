"""Finds the batches of a metadata log that say something of some topics, by their bytes; no others are decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct

from backends.log_segments.batch_header import HEADER_SIZE, LENGTH_BEFORE
from backends.metadata_log.batches import missing_offsets
from recovery.metadata_log.field_writer import FieldWriter
from recovery.metadata_log.record_codec import FRAME_VERSION
from recovery.metadata_log.records import RecordType

_START = Struct(">qi11xi")
"""Of a batch: base offset, length, last offset delta."""
_PARTITION = Struct(">i")
_UUID_BYTES = 16


class TopicScan:
    """Picks whole batches out of pieces of the log, which come in order: a topic is created before it is changed.

    A batch too many does no harm, for its records are decoded; none may be missing. ``next_offset`` is one beyond
    the last batch of the last piece, picked or not. ``problem``: which offsets are missing in the last piece; no
    batch behind them is picked.
    """

    def __init__(self, topics: Iterable[str], partition: int | None = None) -> None:
        self._names = [_string(topic) for topic in topics]
        self._partition = b"" if partition is None else _PARTITION.pack(partition)
        self._ids: dict[bytes, None] = {}
        self.next_offset = 0
        self.problem: str | None = None

    def pick(self, data: bytes, first_offset: int) -> bytes:
        """The batches of this piece, which begins at ``first_offset``, that may say something of the topics."""
        self.problem = None
        for name in self._names:
            created = _head(RecordType.TOPIC) + name
            for at in _positions(data, created):
                identity = data[at + len(created) : at + len(created) + _UUID_BYTES]
                if len(identity) == _UUID_BYTES:
                    self._ids[identity] = None
        hits = [at for pattern in self._patterns() for at in _positions(data, pattern)]
        # Of every topic, and short: only where a value begins.
        hits += [at for pattern in _OF_ALL for at in _positions(data, pattern) if _begins_value(data, at)]
        return b"".join(self._batches(data, sorted(hits), first_offset))

    def _patterns(self) -> Iterator[bytes]:
        yield from self._names  # its creation, its configurations, the emptying of its ELR
        for identity in self._ids:
            yield self._partition + identity
            yield _head(RecordType.REMOVE_TOPIC) + identity

    def _batches(self, data: bytes, hits: list[int], expected: int) -> Iterator[bytes]:
        """By their headers. What is no whole batch ends it, and is left to the reader, which says so."""
        at, hit, size = 0, 0, len(data)
        unpack = _START.unpack_from
        while at + HEADER_SIZE <= size:
            base, length, delta = unpack(data, at)
            end = at + LENGTH_BEFORE + length
            if length < HEADER_SIZE - LENGTH_BEFORE or end > size:
                break
            if base != expected:
                self.problem = missing_offsets(expected, base)
                return
            expected = self.next_offset = base + delta + 1
            if hit < len(hits) and hits[hit] < end:
                yield data[at:end]
                while hit < len(hits) and hits[hit] < end:
                    hit += 1
            at = end
        yield data[at:]


def _positions(data: bytes, pattern: bytes) -> Iterator[int]:
    at = data.find(pattern)
    while at >= 0:
        yield at
        at = data.find(pattern, at + 1)


def _head(kind: RecordType) -> bytes:
    """How a record of that type begins; no release has another version of these."""
    return bytes((FRAME_VERSION, kind, 0))


def _begins_value(data: bytes, at: int) -> bool:
    """Whether a record's value may begin there: behind a null key and the value's length, of one byte or two."""
    return _NULL_KEY in (data[at - 2], data[at - 3])


_NULL_KEY = 1


def _string(text: str) -> bytes:
    writer = FieldWriter()
    writer.string(text)
    return writer.data()


_OF_ALL = (
    _head(RecordType.CLEAR_ELR) + _string(""),
    _head(RecordType.BEGIN_TRANSACTION),
    _head(RecordType.END_TRANSACTION),
    _head(RecordType.ABORT_TRANSACTION),
)
"""How records begin that are about whatever topic."""
