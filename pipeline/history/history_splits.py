"""What the tasks of a history read: pieces of files, with the snapshots that count, as rows packed by shard."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.errors import naming_input
from pipeline.history.events import OBSERVED, facts_of, known_facts
from pipeline.history.history_sources import HistorySources
from pipeline.history.moment_columns import MomentColumns
from pipeline.history.packed_rows import (
    A_SHARD,
    FACTS,
    STATES,
    Packer,
    cluster_hash,
    partition_hashes,
)
from pipeline.history.state_rows import READ, encoded, narrowed
from pipeline.snapshot.input_splits import begins_at, cut, may_have, paths_of, size_of_splits
from pipeline.storage import storage_path
from pipeline.tables.delta_table import unreadable
from pipeline.tables.history_schemas import EVENTS, HISTORY_MARKS, HISTORY_STATES, INCIDENTS
from pipeline.tables.schema_conversion import conformed
from pipeline.tables.schemas import OBSERVATIONS, PARTITION_STATES, QUARANTINED_ROWS, without_run
from recovery.arrays.nested_arrays import Array

BATCH = 100_000
"""Rows of a file that are read at once."""


class HistorySplit(NamedTuple):
    """Of a file of ``table`` the row groups that begin at or after byte ``start`` and before ``end``.
    ``moments``: of each snapshot that counts its number, and the names ascend; a table of results has none.
    """

    table: str
    uri: str
    start: int
    end: int
    cluster_id: str = ""
    moments: Mapping[str, int] = {}


def splits_of(sources: HistorySources, moments: MomentColumns, cores: int) -> list[HistorySplit]:
    """Everything that is read, split for this number of cores."""
    reads = sources.reads
    size = size_of_splits(sum(one.file.size for one in reads), cores)
    # Two clusters may have snapshots of the same name.
    numbers = {
        (moment.cluster_id, moment.snapshot): int(first) + moment.number
        for first, one in zip(moments.first, sources.clusters.values(), strict=False)
        for moment in one.timeline.moments
    }
    found = [
        HistorySplit(
            *(one.definition.name, one.file.place.uri, start, end, one.cluster_id),
            {name: numbers[one.cluster_id, name] for name in one.snapshots},
        )
        for one in reads
        for start, end in cut(one.file, size)
    ]
    if sources.earlier is None or not sources.continued:
        return found
    return found + [
        HistorySplit(definition.name, file.place.uri, 0, file.size)
        for definition, file in sources.earlier.files_by_table
        if file.rows
    ]


def shards_of(sources: HistorySources) -> int:
    """In how many shards the partitions are."""
    rows = sum(one.changed for cluster in sources.clusters.values() for one in cluster.unread)
    if sources.earlier is not None and sources.continued:
        rows += sum(file.rows for file in sources.earlier.files)
    return max(1, math.ceil(rows / A_SHARD))


class SplitReader:
    """Reads splits for so many ``shards``. ``continued``: the clusters whose rows of an earlier run count."""

    def __init__(self, shards: int, continued: Sequence[str], moments: MomentColumns) -> None:
        self._packer = Packer(shards)
        self._moments = moments
        numbers = {name: number for number, name in enumerate(moments.clusters)}
        self._continued = {name: numbers[name] for name in continued}

    def read(self, splits: Sequence[HistorySplit]) -> Iterator[pa.RecordBatch]:
        """The packed rows of those splits. Raises PipelineError with the file's name if one cannot be read."""
        for split in splits:
            with naming_input(partial(_place, split)):
                yield from _READERS[split.table](self, split)
        yield from self._packer.rest()

    def states(self, split: HistorySplit) -> Iterator[pa.RecordBatch]:
        """What snapshots say of partitions."""
        for batch in _batches(split, READ):
            yield from self._packer.add(STATES, *narrowed(batch, split.cluster_id, split.moments))

    def facts(self, split: HistorySplit) -> Iterator[pa.RecordBatch]:
        """What snapshots say of quorum, brokers and log dirs."""
        for batch in _batches(split, OBSERVED):
            facts = facts_of(batch, split.moments)
            yield from self._packer.add(FACTS, facts, np.full(len(facts), cluster_hash(split.cluster_id)))

    def known_facts(self, split: HistorySplit) -> Iterator[pa.RecordBatch]:
        """What the earlier run knew last of them."""
        for batch in _batches(split, _MARKED):
            facts = known_facts(pa.table(batch), self._continued, self._moments)
            cluster = self._moments.cluster_of(facts["moment"].to_numpy())
            yield from self._packer.add(FACTS, facts, self._cluster_hashes(cluster))

    def of_partitions(self, split: HistorySplit) -> Iterator[pa.RecordBatch]:
        """Rows of the earlier run that are about partitions."""
        for rows in self._rows_of_run(split):
            clusters, topics = encoded(rows["cluster_id"]), encoded(rows["topic"])
            partitions = rows["partition"].combine_chunks()
            yield from self._packer.add(split.table, rows, partition_hashes(clusters, topics, partitions))

    def of_clusters(self, split: HistorySplit) -> Iterator[pa.RecordBatch]:
        """Rows of the earlier run that are about clusters."""
        for rows in self._rows_of_run(split):
            cluster = np.array([self._continued[name] for name in rows["cluster_id"].to_pylist()], np.int64)
            yield from self._packer.add(split.table, rows, self._cluster_hashes(cluster))

    def _rows_of_run(self, split: HistorySplit) -> Iterator[pa.Table]:
        schema = without_run(_OF_RUN[split.table])
        continued = pa.array(list(self._continued), pa.string())
        for batch in _batches(split, schema):
            rows = pa.Table.from_batches([batch])
            yield rows.filter(pc.is_in(rows["cluster_id"], continued))

    def _cluster_hashes(self, cluster: Array) -> Array:
        hashes = np.array([cluster_hash(name) for name in self._moments.clusters], np.int64)
        found: Array = hashes[cluster]
        return found


_MARKED = pa.schema([HISTORY_MARKS.schema.field(name) for name in ("cluster_id", "facts")])

_OF_RUN = {one.name: one for one in (INCIDENTS, HISTORY_STATES, EVENTS, QUARANTINED_ROWS)}

_READERS: Mapping[str, Callable[[SplitReader, HistorySplit], Iterator[pa.RecordBatch]]] = {
    PARTITION_STATES.name: SplitReader.states,
    OBSERVATIONS.name: SplitReader.facts,
    HISTORY_MARKS.name: SplitReader.known_facts,
    INCIDENTS.name: SplitReader.of_partitions,
    HISTORY_STATES.name: SplitReader.of_partitions,
    EVENTS.name: SplitReader.of_clusters,
    QUARANTINED_ROWS.name: SplitReader.of_clusters,
}


def _place(split: HistorySplit) -> str:
    return f"cluster {split.cluster_id}: {split.uri}" if split.cluster_id else split.uri


def _batches(split: HistorySplit, schema: pa.Schema) -> Iterator[Any]:
    """The rows of the split with those columns; one that the file lacks is null."""
    file = storage_path(split.uri)
    names = list(split.moments)
    with unreadable(file), file.open() as stream:
        coded = [field.name for field in schema if pa.types.is_dictionary(field.type)]
        parquet = pq.ParquetFile(stream, read_dictionary=coded)
        paths = paths_of(parquet)
        groups = [
            group
            for group in range(parquet.num_row_groups)
            if split.start <= begins_at(parquet, group) < split.end
            and (not names or may_have(parquet, group, paths, names))
        ]
        known = {path.partition(".")[0] for path in paths}
        read = [name for name in schema.names if name in known]
        for batch in parquet.iter_batches(BATCH, groups, columns=read, use_threads=False) if groups else ():
            yield conformed(batch, schema)
