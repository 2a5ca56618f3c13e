"""The answers about replica logs as columns: ListOffsets v7, GetReplicaLogInfo v0 and Fetch v12.

Each function reads an answer in which no row has an error and every row has the usual encoding. For any other
answer it raises :class:`~backends.live.codec.column_reader.NeedsFullDecoder`: use kio's decoder, row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from backends.live.codec.column_reader import (
    ColumnReader,
    Columns,
    NeedsFullDecoder,
    RowFormat,
    aligned,
    joined,
)

K = TypeVar("K")
Asked = Sequence[tuple[K, Sequence[int]]]
"""Topics, each once, and the partitions asked for."""

# Partition, leader epoch, log end; error and tags are none.
_LOG_INFO = RowFormat("iiqxxx", 3, 19, ((16, b"\0"), (17, b"\0"), (18, b"\0")))
# Partition, log end, leader epoch; error and tags are none, the timestamp is not used.
_LIST_OFFSETS = RowFormat("i10xqix", 3, 27, ((4, b"\0"), (5, b"\0"), (26, b"\0")))
# Partition, error, high watermark, log start; aborted transactions and records are null or empty.
_EMPTY = b"\0\1"
_FETCH_MARKS = ((30, _EMPTY), (35, _EMPTY))
_AGREES = RowFormat("ihq8xq7x", 4, 37, (*_FETCH_MARKS, (36, b"\0")))
# The same with one tag: the diverging epoch and its end offset.
_DIVERGES = RowFormat(
    "ihq8xq9xiqx", 6, 52, (*_FETCH_MARKS, (36, b"\1"), (37, b"\0"), (38, b"\x0d"), (51, b"\0"))
)
_TAGS = 36
_BY_TAGS = {0: _AGREES, 1: _DIVERGES}
_OUT_OF_RANGE = 1
_NOBODY = -1


class LogColumns(NamedTuple):
    """The columns of each topic, in the order asked for; ``throttle_ms`` is the broker's throttle time."""

    throttle_ms: int
    topics: Sequence[Columns]


def read_log_info(asked: Asked[bytes], data: bytes, at: int) -> LogColumns:
    """Partitions, leader epochs, log ends; topics go by their id. Not for an answer with ``has_more_data``."""
    reader = ColumnReader(data, at)
    throttle, _epoch = reader.fields("iq")
    if reader.boolean():
        raise NeedsFullDecoder
    topics = _topics(reader, lambda: reader.take(16), lambda rows: reader.columns(_LOG_INFO, rows))
    return LogColumns(throttle, _in_order(asked, topics))


def read_list_offsets(asked: Asked[str], data: bytes, at: int) -> LogColumns:
    """Partitions, log ends, leader epochs."""
    reader = ColumnReader(data, at)
    (throttle,) = reader.fields("i")
    topics = _topics(reader, reader.string, lambda rows: reader.columns(_LIST_OFFSETS, rows))
    return LogColumns(throttle, _in_order(asked, topics))


def read_fetch(asked: Asked[str], data: bytes, at: int) -> LogColumns:
    """Partitions, errors (0 or 1), high watermarks, log starts, diverging epochs and their ends (-1: none).

    Error 1 is OFFSET_OUT_OF_RANGE, which is an answer about the log.
    """
    reader = ColumnReader(data, at)
    throttle, error, _session = reader.fields("ihi")
    if error:
        raise NeedsFullDecoder
    topics = _topics(reader, reader.string, lambda rows: _fetched(reader, rows))
    return LogColumns(throttle, _in_order(asked, topics))


def _fetched(reader: ColumnReader, rows: int) -> Columns:
    parts = []
    for form, several in reader.runs(_TAGS, _BY_TAGS, rows):
        columns = reader.columns(form, several)
        if not _OUT_OF_RANGE >= max(columns[1]) >= min(columns[1]) >= 0:
            raise NeedsFullDecoder
        parts.append(columns if form is _DIVERGES else (*columns, *((_NOBODY,) * several,) * 2))
    return joined(parts) if parts else ((),) * _DIVERGES.width


def _topics(
    reader: ColumnReader, key: Callable[[], K], rows: Callable[[int], Columns]
) -> Mapping[K, Sequence[Columns]]:
    """The topics to the end of the answer; one topic may come in several parts."""
    parts: dict[K, list[Columns]] = {}
    for _ in range(reader.length()):
        name = key()
        parts.setdefault(name, []).append(rows(reader.length()))
        reader.no_tags()
    reader.end()
    return parts


def _in_order(asked: Asked[K], topics: Mapping[K, Sequence[Columns]]) -> list[Columns]:
    try:
        return [aligned(numbers, joined(topics[name])) for name, numbers in asked]
    except KeyError:
        raise NeedsFullDecoder from None
