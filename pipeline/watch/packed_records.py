"""The rows that ``watch`` reads from its source: many records of one shard of a cluster's topics in each row.

A row for each record would pass through Java and two Python workers by itself, which takes longer than the fold.
The topics of a cluster are folded in several shards, side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from pipeline.watch.log_columns import MetadataLogColumns
from pipeline.watch.record_columns import may_be_shown, record_types, topics_of

SHARDS = 8
"""Another number, or another rule, needs another version of the states: each shard has its own
(:mod:`pipeline.watch.fold_state`).
"""


def shard_of(topic_id: str) -> int:
    """The shard of a topic, everywhere the same."""
    return crc32(topic_id.encode()) % SHARDS


PACKED = pa.schema([("cluster", pa.string()), ("shard", pa.int32()), ("records", pa.binary())])
"""``records``: RECORDS as an Arrow stream, in the order of the log."""

RECORDS = pa.schema(
    [("offset", pa.int64()), ("time_ms", pa.int64()), ("batch", pa.int64()), ("record", pa.binary())]
)
"""A null record is where the log begins."""

ROWS = 200_000
"""Records of all shards that are packed at once; this bounds the memory."""

_EVERY = -1
"""In place of a shard: records about brokers, configurations and transactions go to each."""


def packed(cluster: str, parts: Iterable[MetadataLogColumns]) -> Iterator[pa.RecordBatch]:
    """Packs the records of each part. Records that no incident needs, or whose content may be a secret, are left
    out, and so is a shard without records: a cluster in which nothing happens costs nothing further on.
    """
    for part in parts:
        numbers = [pa.array(column) for column in (part.offset, part.time_ms, part.batch)]
        records = pa.record_batch([*numbers, part.value], schema=RECORDS)
        types = record_types(part.value)
        needed = may_be_shown(part.value, types) | part.value.is_null().to_numpy(zero_copy_only=False)
        shards = _shards(part.value, types)
        mine = [np.flatnonzero(needed & ((shards == shard) | (shards == _EVERY))) for shard in range(SHARDS)]
        busy = [shard for shard in range(SHARDS) if len(mine[shard])]
        if busy:
            cells = [stream_of(records.take(pa.array(mine[shard]))) for shard in busy]
            yield pa.record_batch([[cluster] * len(busy), busy, cells], schema=PACKED)


def unpacked(streams: Iterable[bytes]) -> pa.Table:
    """The records of those rows, in no order."""
    return pa.concat_tables([RECORDS.empty_table(), *map(read_stream, streams)]).combine_chunks()


def _shards(records: Any, types: Any) -> Any:
    """The shard of each record."""
    topics, places = topics_of(records, types)
    shards = [_EVERY if topic_id is None else shard_of(topic_id) for topic_id in topics]
    return np.array(shards, np.int8)[places]


def stream_of(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Many rows in one value: Arrow's stream format, with the schema in it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def read_stream(content: bytes) -> pa.Table:
    """The rows of those bytes."""
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()
