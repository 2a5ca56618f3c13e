"""The second stage of ``watch``: the records of a micro-batch, folded into incidents.

The state is kept for each cluster and each of :data:`SHARDS` shards of its topics, not for each partition.
One event of the controller is one record batch with the changes of many partitions and of the broker that
caused them; a deleted topic or an emptied ELR is one record for many partitions; and a controller transaction
may hold any of them. The records of one partition alone do not show this. With shards, a change writes only a
part of a large cluster's state, and several cores fold one large cluster. Records about brokers,
configurations and transactions go to every shard.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.storage import StoragePath
from pipeline.watch.fold_state import read_state, write_state
from pipeline.watch.incident_rows import METADATA_EVENTS, METADATA_INCIDENTS, event_rows, incident_rows
from pipeline.watch.record_columns import BEGINS
from recovery.metadata_log.incident_fold import ClusterMoment, IncidentFold
from recovery.metadata_log.log_changes import IN_SNAPSHOT, MetadataLogRecord

SHARDS = 8
"""Another number needs a new checkpoint."""

READ = ("cluster", "offset", "at", "batch", "kind", "topic_id", "record")
"""The columns of the source that are needed."""

_OUTPUT = "name string, rows binary"
"""Of each group: the name of a table, and its rows as an Arrow stream."""


def folded(records: Any, states: StoragePath, batch_id: int) -> dict[str, pa.Table]:
    """The rows that a micro-batch adds to each table, by the table's name. ``records`` has the columns READ.

    Writes the states after this micro-batch below ``states``; a second call with the same records does the same.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    of_topic = f.pmod(f.xxhash64("topic_id"), f.lit(SHARDS)).cast("int")
    every = f.sequence(f.lit(0), f.lit(SHARDS - 1))
    groups = (
        records.where(f.col("record").isNotNull() | (f.col("kind") == BEGINS))
        .withColumn("shards", f.when(f.col("topic_id").isNull(), every).otherwise(f.array(of_topic)))
        .select(
            "cluster",
            "offset",
            f.unix_millis("at").alias("time_ms"),
            "batch",
            "record",
            f.explode("shards").alias("shard"),
        )
        .groupBy("cluster", "shard")
        .applyInArrow(lambda key, rows: _fold_group(states, batch_id, key, rows), _OUTPUT)
    )
    found: dict[str, list[pa.Table]] = {}
    for name, stream in groups.collect():
        found.setdefault(name, []).append(pa.ipc.open_stream(bytes(stream)).read_all())
    return {name: pa.concat_tables(tables) for name, tables in found.items()}


def _fold_group(states: StoragePath, batch_id: int, key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
    """One shard's records of a micro-batch, in any order."""
    cluster, shard = (part.as_py() for part in key)
    place = states / cluster / str(shard)
    fold = IncidentFold(read_state(place, batch_id))
    fold_records(fold, in_order(rows))
    write_state(place, batch_id, fold.state)
    # What happens to brokers, configurations and the log is the same in every shard.
    first = shard == 0
    moments = [moment for moment in fold.moments if first or not isinstance(moment, ClusterMoment)]
    found = {
        METADATA_EVENTS.name: event_rows(cluster, moments, fold.gaps if first else ()),
        METADATA_INCIDENTS.name: incident_rows(cluster, fold.ended),
    }
    named = [(name, _stream(table)) for name, table in found.items() if table.num_rows]
    names, streams = [name for name, _ in named], [stream for _, stream in named]
    return pa.table({"name": pa.array(names, pa.string()), "rows": pa.array(streams, pa.binary())})


def in_order(rows: pa.Table) -> list[MetadataLogRecord]:
    """The row with which a log begins, which has no record; then its snapshot; then the log."""
    if pc.min(rows["batch"]).as_py() == IN_SNAPSHOT or not _ascending(rows["offset"].to_numpy()):
        rows = rows.append_column("later", pc.not_equal(rows["batch"], IN_SNAPSHOT))
        rows = rows.append_column("has", pc.is_valid(rows["record"]))
        rows = rows.sort_by([("later", "ascending"), ("has", "ascending"), ("offset", "ascending")])
    columns = (rows[name].to_pylist() for name in ("offset", "time_ms", "batch", "record"))
    return list(map(MetadataLogRecord, *columns))


def _ascending(offsets: Any) -> bool:
    return bool((offsets[1:] > offsets[:-1]).all())


def fold_records(fold: IncidentFold, records: list[MetadataLogRecord]) -> None:
    """Folds the records of a micro-batch, which begin the log if the first has no value."""
    if records and records[0].value is None:
        after = next(
            (at for at, record in enumerate(records) if at and record.batch != IN_SNAPSHOT), len(records)
        )
        fold.restart(records[1:after], records[0].offset)
        records = records[after:]
    fold.extend(records)


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
