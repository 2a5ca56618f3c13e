"""A page of DescribeTopicPartitions v0 as columns, where no topic and no partition of it is in error."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple

from backends.live.codec.column_reader import ColumnReader, Columns, NeedsFullDecoder, RowFormat, joined
from backends.live.codec.ids import kafka_id_of

_FIXED = 14
"""Bytes of a partition before its arrays: error, index, leader, leader epoch."""
_ARRAYS = 5
"""Replicas, ISR, ELR, LastKnownELR, offline replicas."""
_NOT_NULLABLE = (0, 1, 4)
"""Replicas, ISR and offline replicas: null there is no valid answer."""
_LONGEST = 16
"""Members of an array at most; the length of a longer one is not looked for in one byte."""
_NULL, _PRESENT = -1, 1
_FORMS = 1_024


class TopicStates(NamedTuple):
    """A topic's partitions: numbers, leaders, leader epochs, and a column of tuples for each array.

    An ELR that is null is empty.
    """

    name: str
    topic_id: str
    operations: int
    columns: Columns


class Page(NamedTuple):
    """``following`` is where the next page begins, None at the end; ``throttle_ms`` how long to wait for it."""

    throttle_ms: int
    topics: Sequence[TopicStates]
    following: tuple[str, int] | None


def read_page(data: bytes, at: int) -> Page:
    """The whole answer. Raises NeedsFullDecoder."""
    reader = ColumnReader(data, at)
    (throttle,) = reader.fields("i")
    topics = [_topic(reader) for _ in range(reader.length())]
    (more,) = reader.fields("b")
    following = None
    if more not in (_NULL, _PRESENT):
        raise NeedsFullDecoder
    if more == _PRESENT:
        following = reader.string(), reader.fields("i")[0]
        reader.no_tags()
    reader.end()
    return Page(throttle, topics, following)


def _topic(reader: ColumnReader) -> TopicStates:
    (error,) = reader.fields("h")
    if error:
        raise NeedsFullDecoder
    name = reader.string()
    topic_id = kafka_id_of(reader.take(16))
    reader.boolean()  # whether it is an internal one
    columns = _partitions(reader, reader.length())
    (operations,) = reader.fields("i")
    reader.no_tags()
    return TopicStates(name, topic_id, operations, columns)


def _partitions(reader: ColumnReader, rows: int) -> Columns:
    parts = []
    whole = rows
    while rows:
        lengths = reader.lengths(_FIXED, _ARRAYS, _LONGEST)
        if any(lengths[array] < 0 for array in _NOT_NULLABLE):
            raise NeedsFullDecoder
        form = _form(lengths)
        several = rows if rows == whole and reader.fits(form, rows) else 1
        while 2 * several <= rows and reader.fits(form, 2 * several):
            several *= 2
        columns = reader.columns(form, several)
        parts.append((*columns[:3], *_arrays(columns[3:], lengths, several)))
        rows -= several
    return joined(parts) if parts else ((),) * (3 + _ARRAYS)


def _arrays(columns: Columns, lengths: Sequence[int], rows: int) -> list[tuple[Any, ...]]:
    found = []
    for length in lengths:
        members, columns = columns[: max(0, length)], columns[max(0, length) :]
        found.append(tuple(zip(*members, strict=True)) if members else tuple(repeat((), rows)))
    return found


@lru_cache(_FORMS)
def _form(lengths: tuple[int, ...]) -> RowFormat:
    """Of partitions whose arrays have so many members (-1: null)."""
    code, width = "xxiii", 3
    marks = [(0, b"\0"), (1, b"\0")]
    size = _FIXED
    for length in lengths:
        members = max(0, length)
        marks.append((size, bytes((length + 1,))))
        code += "x" + "i" * members
        size += 1 + 4 * members
        width += members
    marks.append((size, b"\0"))
    return RowFormat(code + "x", width, size + 1, tuple(marks))
