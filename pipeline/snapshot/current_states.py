"""The state of every cluster as a DataFrame: of each partition its newest row in the chain of its cluster.

Spark plans it: it splits and packs the files that the tables' logs name, reads only the columns that are asked for,
spills and retries. Changes since a full snapshot are few; their keys are broadcast, so that the rows of the full
snapshots, nested and wide, are never shuffled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import naming_input
from pipeline.plan.row_checks import COPIES
from pipeline.snapshot.state_sources import ClusterFiles, Sources
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import DataFile, table_place
from pipeline.tables.schema_conversion import ddl
from pipeline.tables.schemas import PARTITION_STATES, PARTITIONS
from pipeline.tables.spark_reads import read_files
from recovery.wording.quantity_text import some_of

KEY = ("cluster_id", "topic", "partition")

FEW = 2_000_000
"""Rows of changes whose keys are broadcast; of more Spark decides by what it sees."""

NAMED = 3
"""How many clusters a message names."""


class Reading(NamedTuple):
    """What is read of a state: its ``columns``, of a replica everything except ``unread``; ``leaderless``: only
    partitions without a leader. A row with a missing or impossible leader is not left out: it is quarantined.
    """

    columns: frozenset[str]
    unread: frozenset[str]
    leaderless: bool

    @property
    def schema(self) -> pa.Schema:
        """The columns of :data:`~pipeline.tables.schemas.PARTITIONS` that are read."""
        return _schema(self)


@lru_cache
def _schema(reading: Reading) -> pa.Schema:
    replica = [
        field for field in PARTITIONS.field("replicas").type.value_type if field.name not in reading.unread
    ]
    replicas = pa.field("replicas", pa.list_(pa.struct(replica)))
    return pa.schema(
        [
            replicas if field.name == "replicas" else field
            for field in PARTITIONS
            if field.name in reading.columns
        ]
    )


def current_states(spark: Any, sources: Sources, reading: Reading) -> Any:
    """The columns of ``reading`` with ``cluster_id`` and ``snapshot``, a row for each partition. If a writer has
    written a partition twice into one snapshot, both rows. Raises PipelineError if a file is gone.
    """
    from pyspark.sql import Window  # noqa: PLC0415  # an extra
    from pyspark.sql import functions as f  # noqa: PLC0415

    names = ["cluster_id", "snapshot", *reading.schema.names]
    full = _rows(spark, sources, reading.schema, lambda one: (one.full, (one.chain.full.snapshot,)))
    found = full.select(*names)
    written = sum(change.changed for chain in sources.chains for change in chain.changes)
    if written:
        schema = pa.schema([*reading.schema, PARTITIONS.field("deleted")])
        changes = _rows(
            spark,
            sources,
            schema,
            lambda one: (one.changes, tuple(changes.snapshot for changes in one.chain.changes)),
        )
        newest = Window.partitionBy(*KEY).orderBy(f.desc("snapshot"))
        # A row without a key is of no partition: each stays, to be quarantined.
        nameless = f.col("topic").isNull() | f.col("partition").isNull()
        changes = changes.withColumn("place", f.rank().over(newest)).where((f.col("place") == 1) | nameless)
        keys = changes.select(*KEY)
        found = found.join(f.broadcast(keys) if written <= FEW else keys, list(KEY), "left_anti")
        found = found.select(*names).unionByName(
            changes.where(~f.coalesce("deleted", f.lit(False))).select(*names)
        )
    return found.where(f.coalesce("leader", f.lit(-1)) < 0) if reading.leaderless else found


def _rows(
    spark: Any,
    sources: Sources,
    schema: pa.Schema,
    part: Callable[[ClusterFiles], tuple[Sequence[DataFile], Sequence[str]]],
) -> Any:
    """The rows of those snapshots: ``part`` has of each cluster the files, and the names."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    files: dict[str, list[DataFile]] = {}
    places: dict[str, StoragePath] = {}
    wanted: list[tuple[str, str]] = []
    for one in sources.clusters:
        mine, names = part(one)
        places[one.chain.root.uri] = table_place(one.chain.root, PARTITION_STATES)
        files.setdefault(one.chain.root.uri, []).extend(mine)
        wanted += [(one.chain.full.cluster_id, name) for name in names]
    whole = pa.schema([*schema, *KEYS_OF_SNAPSHOT])
    frames = [read_files(spark, places[root], mine, whole) for root, mine in files.items() if mine]
    if not frames:
        return spark.createDataFrame([], ddl(whole))
    columns = [pa.array(column, pa.string()) for column in zip(*wanted, strict=True)]
    snapshots = spark.createDataFrame(pa.table(columns, names=["cluster_id", "snapshot"]))
    rows = reduce(lambda one, other: one.unionByName(other), frames)
    return rows.join(f.broadcast(snapshots), ["cluster_id", "snapshot"], "left_semi")


KEYS_OF_SNAPSHOT = [PARTITION_STATES.schema.field(name) for name in ("cluster_id", "snapshot")]


def computed(rows: Any, made: Callable[[Iterable[Any]], Iterator[Any]], schema: Any) -> Any:
    """What ``made`` makes of batches of those rows, as a DataFrame with that schema of Arrow. An error that nobody
    expected names the clusters of the batch.
    """

    def named(batches: Iterable[Any]) -> Iterator[Any]:
        current: list[str] = []

        def noted() -> Iterator[Any]:
            for batch in batches:
                current[:] = [str(name) for name in pc.unique(batch["cluster_id"]).to_pylist()]
                yield batch

        with naming_input(lambda: f"cluster {some_of(current, NAMED)}"):
            yield from made(noted())

    return rows.mapInArrow(named, ddl(schema))


class SingleRows(NamedTuple):
    """``rows``: without the partitions that a writer has written twice into one snapshot: nobody knows which row is
    right. ``twice``: how many rows those are, as (cluster, reason, rows).
    """

    rows: Any
    twice: tuple[tuple[str, str, int], ...]


def with_rows(counted: Any, twice: Sequence[tuple[str, str, int]]) -> Any:
    """The rows of a table of quarantined rows, with those that stand twice."""
    if not twice:
        return counted
    more = counted.sparkSession.createDataFrame(list(twice), counted.schema)
    return counted.unionByName(more)


def single_rows(rows: Any) -> SingleRows:
    """Looks for them: this reads the columns of the key."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    keyed = rows.where("topic IS NOT NULL AND partition IS NOT NULL")
    copies = keyed.groupBy(*KEY).count().where("count > 1")
    counted = copies.groupBy("cluster_id", "count").agg(f.sum("count").alias("rows"))
    twice = [(row["cluster_id"], COPIES.format(row["count"]), row["rows"]) for row in counted.collect()]
    if not twice:
        return SingleRows(rows, ())
    return SingleRows(rows.join(f.broadcast(copies.select(*KEY)), list(KEY), "left_anti"), tuple(twice))
