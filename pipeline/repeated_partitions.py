"""Partitions that are in a snapshot more than once.

A cluster's files go to one task, which reads nothing but the keys of the rows: nothing is shuffled. The first pass
finds the clusters that have duplicates, nearly always none. Only their keys are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.errors import naming_input
from pipeline.plan.row_checks import COPIES
from pipeline.snapshot.input_splits import ClusterFiles, cost_of_files, pack
from pipeline.snapshot.state_sources import Sources
from pipeline.spark_tasks import answers, parallelism
from pipeline.storage import storage_path
from pipeline.tables.delta_table import unreadable
from recovery.arrays.nested_arrays import Array, numbers, valid

DUPLICATES = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("copies", pa.int64()),
        ("reason", pa.string()),
    ]
)
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
    """The partitions that occur more than once, as a DataFrame of :data:`DUPLICATES`; None: there are none. It is
    not known which of their rows is right.
    """
    cores = parallelism(spark)
    packs = pack(sources.clusters, cores, lambda one: cost_of_files(one.files))
    written = [[_written(one) for one in clusters] for clusters in packs]
    rows = answers(spark, written, _repeating, _FOUND).collect()
    repeating = {row["cluster_id"] for row in rows}
    again = [[one] for clusters in written for one in clusters if one.cluster_id in repeating]
    return answers(spark, again, _counted, DUPLICATES).persist() if again else None


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


def _counted(group: Sequence[WrittenRows]) -> Iterator[Any]:
    for one in group:
        with naming_input(partial("cluster {}".format, one.cluster_id)):
            yield duplicates(one)


def duplicates(written: WrittenRows) -> pa.RecordBatch:
    """The partitions that occur more than once in a snapshot: a row each, with its copies in the snapshot that has
    the most. Raises PipelineError as :func:`has_duplicates`.
    """
    table = _keys_of(written)
    rows: list[dict[str, Any]] = []
    if table is not None:
        named = table.filter(pc.is_in(table["snapshot"].cast(pa.string()), pa.array(written.snapshots)))
        counted = named.drop_null().group_by(_KEYS).aggregate([([], "count_all")])
        repeated = counted.filter(pc.greater(counted["count_all"], 1))
        rows = repeated.group_by(["topic", "partition"]).aggregate([("count_all", "max")]).to_pylist()
    made = [
        {
            "cluster_id": written.cluster_id,
            "topic": row["topic"],
            "partition": row["partition"],
            "copies": row["count_all_max"],
            "reason": COPIES.format(row["count_all_max"]),
        }
        for row in rows
    ]
    return pa.RecordBatch.from_pylist(made, DUPLICATES)


def has_duplicates(written: WrittenRows) -> bool:
    """Whether two rows of one snapshot are of one partition; a row without a key is not a duplicate. Raises
    PipelineError with the file's name if it cannot be read.
    """
    table = _keys_of(written)
    if table is None:
        return False
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


def _keys_of(written: WrittenRows) -> pa.Table | None:
    tables = [table for table in map(_keys, written.uris) if table is not None]
    return pa.concat_tables(tables).combine_chunks() if tables else None


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
