"""Rows on their way from the tasks that read to those that find incidents: packed, many in each row of Spark.

Rows of Spark for each partition and snapshot would be converted twice and sorted in Java, which takes longer
than all the rest. So a task sends one row for each shard: every row of a partition, and all facts about a
cluster, are in the same shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from pipeline.arrow_streams import read_stream, streams_by_part
from pipeline.tables.history_schemas import EVENTS, HISTORY_STATES, INCIDENTS
from pipeline.tables.schemas import QUARANTINED_ROWS, without_run
from recovery.arrays.nested_arrays import Array, numbers
from recovery.arrays.survey_batch import BROKERS

PACKED = pa.schema([("shard", pa.int32()), ("what", pa.string()), ("rows", pa.binary())])
"""``rows``: an Arrow stream with the schema of ``what``, one of :data:`SCHEMAS`."""

NAME = pa.dictionary(pa.int32(), pa.string())
"""The type of a column of few values."""

STATES, FACTS = "states", "facts"

SCHEMAS: Mapping[str, pa.Schema] = {
    # What a snapshot, given as a moment, says of a partition: the bits of :mod:`pipeline.history.state_rows`.
    # ISR and ELR only of a partition in a bad state.
    STATES: pa.schema(
        [
            ("topic", NAME),
            ("topic_id", NAME),
            ("partition", pa.int32()),
            ("moment", pa.int32()),
            ("bits", pa.uint8()),
            ("leader", pa.int32()),
            ("isr", BROKERS),
            ("elr", BROKERS),
        ]
    ),
    # What a snapshot says of the quorum, a broker or a log dir.
    FACTS: pa.schema([("moment", pa.int32()), ("subject", NAME), ("value", NAME)]),
    # Of the run that is continued.
    **{
        definition.name: without_run(definition)
        for definition in (INCIDENTS, HISTORY_STATES, EVENTS, QUARANTINED_ROWS)
    },
}

ROWS = 400_000
"""Rows that wait in a task until they are packed; this bounds its memory."""

A_SHARD = 600_000
"""Rows of partition states in a shard; this bounds the memory of the task that finds its incidents."""


class Packer:
    """Collects rows and packs them by shard."""

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._waiting: dict[str, list[tuple[pa.Table, Array]]] = {}
        self._rows = 0

    def add(self, what: str, rows: pa.Table, hashes: Array) -> Iterator[pa.RecordBatch]:
        """Adds rows with their hashes; packs if many are waiting."""
        if rows.num_rows:
            self._waiting.setdefault(what, []).append((rows, hashes))
        self._rows += rows.num_rows
        if self._rows >= ROWS:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Packs what is waiting."""
        for what, tables in self._waiting.items():
            rows = pa.concat_tables([table for table, _ in tables]).unify_dictionaries().combine_chunks()
            shards = shard_of(np.concatenate([hashes for _, hashes in tables]), self._shards)
            for shard, content in streams_by_part(rows, shards):
                yield packed_row(shard, what, content)
        self._waiting, self._rows = {}, 0


def packed_row(shard: int, what: str, content: bytes) -> pa.RecordBatch:
    """One row of Spark."""
    row = {"shard": shard, "what": what, "rows": content}
    return pa.RecordBatch.from_pylist([row], PACKED)


def unpacked(packed: pa.Table) -> dict[str, pa.Table]:
    """The rows of one shard by what they are, in no order; a column of names has one dictionary."""
    tables: dict[str, list[pa.Table]] = {what: [schema.empty_table()] for what, schema in SCHEMAS.items()}
    for what, content in zip(packed["what"].to_pylist(), packed["rows"], strict=True):
        if what in tables:
            tables[what].append(read_stream(content.as_buffer()))
    return {
        what: pa.concat_tables(found).unify_dictionaries().combine_chunks() for what, found in tables.items()
    }


def shard_of(hashes: Array, shards: int) -> Array:
    """The shard of each hash."""
    found: Array = (hashes >> 8) % shards
    return found


def cluster_hash(cluster: str) -> int:
    """The hash of a cluster's facts."""
    return crc32(cluster.encode())


def partition_hashes(clusters: Any, topics: Any, partitions: Any) -> Array:
    """The hash of each partition; clusters and topics are columns of names."""
    topic_codes, cluster_codes = numbers(topics.indices, -1), numbers(clusters.indices, -1)
    names = [(name or "").encode() for name in topics.dictionary.to_pylist()] + [b""]
    found = np.zeros(len(topic_codes), np.int64)
    for code, cluster in enumerate(clusters.dictionary.to_pylist()):
        begin = cluster_hash(cluster)
        hashes = np.array([crc32(name, begin) for name in names], np.int64)
        mine = cluster_codes == code
        found[mine] = hashes[topic_codes[mine]]
    # The partitions of a topic go to all shards.
    hashed: Array = (found + numbers(partitions, 0) * 2_654_435_761) & 0xFFFF_FFFF
    return hashed


def names_of(values: Iterable[str], column: Any) -> Any:
    """A column of names from the numbers in ``column``."""
    return pa.DictionaryArray.from_arrays(pa.array(column, pa.int32()), pa.array(list(values), pa.string()))
