"""Which clusters have a partition more than once in a snapshot.

A cluster's files go to one task, which reads nothing but the keys of the rows. So
nothing is shuffled, the answer is exact, and only clusters that have duplicates are looked at by Spark
(:mod:`pipeline.plan.duplicate_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import naming_input
from pipeline.plan.duplicate_rows import find_duplicates
from pipeline.snapshot.input_splits import ClusterFiles, cost_of_files, pack
from pipeline.snapshot.state_sources import Sources
from pipeline.spark_tasks import answers, parallelism
from pipeline.storage import storage_path
from pipeline.tables.delta_table import unreadable
from recovery.arrays.nested_arrays import Array, numbers, valid

_FOUND = pa.schema([("cluster_id", pa.string())])
_NAMES = ["snapshot", "topic"]
_KEYS = [*_NAMES, "partition"]
_PAIRS = 2**31
"""More pairs of snapshot and topic do not fit beside a partition into 64 bits."""


class WrittenRows(NamedTuple):
    """A cluster's snapshots, and the URIs of the files that may have their rows."""

    cluster_id: str
    snapshots: tuple[str, ...]
    uris: tuple[str, ...]


def duplicates_of(spark: Any, sources: Sources) -> Any | None:
    """As :func:`~pipeline.plan.duplicate_rows.find_duplicates`, which looks only at clusters that have some."""
    cores = parallelism(spark)
    packs = pack(sources.clusters, cores, lambda one: cost_of_files(one.files))
    written = [[_written(one) for one in clusters] for clusters in packs]
    rows = answers(spark, written, _repeating, _FOUND).collect()
    repeating = {row["cluster_id"] for row in rows}
    clusters = tuple(one for one in sources.clusters if one.chain.full.cluster_id in repeating)
    return find_duplicates(spark, Sources(clusters, ())) if clusters else None


def _written(cluster: ClusterFiles) -> WrittenRows:
    names = tuple(observation.snapshot for observation in cluster.chain.observations)
    uris = tuple(file.place.uri for file in cluster.files)
    return WrittenRows(cluster.chain.full.cluster_id, names, uris)


def _repeating(group: Sequence[WrittenRows]) -> Iterator[Any]:
    found = []
    for one in group:
        with naming_input(partial("cluster {}".format, one.cluster_id)):
            if has_duplicates(one):
                found.append(one.cluster_id)
    yield pa.RecordBatch.from_arrays([pa.array(found, pa.string())], schema=_FOUND)


def has_duplicates(written: WrittenRows) -> bool:
    """Whether two rows of one snapshot are of one partition; a row without a key is not a duplicate. Raises
    PipelineError with the file's name if it cannot be read.
    """
    read = [_keys(uri) for uri in written.uris]
    tables = [table for table in read if table is not None]
    if not tables:
        return False
    table = pa.concat_tables(tables).combine_chunks()
    snapshot, topic = (table[name].combine_chunks() for name in _NAMES)
    wanted = np.isin(snapshot.dictionary.to_pylist(), written.snapshots)
    topics, partition = len(topic.dictionary), table["partition"].combine_chunks()
    if len(wanted) * topics >= _PAIRS:
        return True
    named = valid(snapshot) & valid(topic) & valid(partition)
    of_snapshot = numbers(snapshot.indices, 0)
    named &= wanted[of_snapshot] if len(wanted) else False
    key = ((of_snapshot * topics + numbers(topic.indices, 0)) << 32) | (numbers(partition, 0) & 0xFFFFFFFF)
    return _repeats(key[named])


def _repeats(key: Array) -> bool:
    if (key[1:] > key[:-1]).all():
        return False
    ordered = np.sort(key, kind="stable")
    return bool((ordered[1:] == ordered[:-1]).any())


def _keys(uri: str) -> pa.Table | None:
    """The keys of the file's rows; None: it lacks a column of them."""
    file = storage_path(uri)
    with unreadable(file), file.open() as stream:
        try:
            parquet = pq.ParquetFile(stream, read_dictionary=_NAMES)
        except KeyError:
            return None
        # A column that the file lacks is left out. Its schema would take as long as to read a small file.
        table = parquet.read(_KEYS, use_threads=False)
    if len(table.schema) < len(_KEYS):
        return None
    text = pa.dictionary(pa.int32(), pa.string())
    return table.cast(pa.schema([*((name, text) for name in _NAMES), ("partition", pa.int64())]))
