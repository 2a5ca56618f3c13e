"""The rows that ``watch`` reads from its source: many records of one shard of a cluster's topics in each row.

A row for each record would pass through Java and two Python workers by itself, which takes longer than the fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.watch.record_columns import shown_records, topic_ids_of
from pipeline.watch.topic_shards import SHARDS, shard_of

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

Records = Sequence[tuple[int, int, bytes | None]]


def packed(cluster: str, batches: Iterable[tuple[int, Records]]) -> Iterator[pa.RecordBatch]:
    """Packs record batches, each its number and its records. Records that no incident needs, or whose content may
    be a secret, are left out.
    """
    numbers: list[int] = []
    counts: list[int] = []
    waiting: list[tuple[int, int, bytes | None]] = []
    for number, records in batches:
        numbers.append(number)
        counts.append(len(records))
        waiting += records
        if len(waiting) >= ROWS:
            yield _packed(cluster, np.repeat(numbers, counts), waiting)
            numbers, counts, waiting = [], [], []
    if waiting:
        yield _packed(cluster, np.repeat(numbers, counts), waiting)


def unpacked(streams: Iterable[bytes]) -> pa.Table:
    """The records of those rows, in no order."""
    return pa.concat_tables(
        [RECORDS.empty_table(), *(pa.ipc.open_stream(stream).read_all() for stream in streams)]
    ).combine_chunks()


def _packed(cluster: str, batches: Any, waiting: Records) -> pa.RecordBatch:
    offsets, times, values = ([record[place] for record in waiting] for place in range(3))
    records = pa.array(values, pa.binary())
    allowed = shown_records(records)
    needed = pc.or_(pc.is_valid(allowed), pc.is_null(records))
    table = pa.table([pa.array(offsets), pa.array(times), pa.array(batches), allowed], schema=RECORDS)
    shards = _shards(records)
    cells = []
    for shard in range(SHARDS):
        mine = pa.array((shards == shard) | (shards == _EVERY))
        cells.append(_stream(table.filter(pc.and_(mine, needed))))
    return pa.RecordBatch.from_arrays(
        [pa.array([cluster] * SHARDS), pa.array(range(SHARDS), pa.int32()), pa.array(cells, pa.binary())],
        schema=PACKED,
    )


def _shards(records: Any) -> Any:
    """The shard of each record."""
    coded = topic_ids_of(records).dictionary_encode()
    shards = [shard_of(topic_id) for topic_id in coded.dictionary.to_pylist()]
    # A null has the index -1, which reads the last place.
    return np.array([*shards, _EVERY])[pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)]


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
