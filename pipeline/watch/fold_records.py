"""The second stage of ``watch``: the records of a micro-batch, folded into incidents.

The state is kept for each cluster and each of eight shards of its topics, not for each partition.
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

from backends.garbage_collection import without_collection
from pipeline.storage import StoragePath
from pipeline.watch.fold_state import read_state, write_state
from pipeline.watch.incident_rows import METADATA_EVENTS, METADATA_INCIDENTS, event_rows, incident_rows
from pipeline.watch.packed_records import RECORDS, SHARDS, read_stream, stream_of, unpacked
from pipeline.watch.quiet_changes import as_records, fold_columns
from recovery.metadata_log.incident_fold import ClusterMoment, IncidentFold
from recovery.metadata_log.log_changes import IN_SNAPSHOT

_OUTPUT = "name string, rows binary"
"""Of each group: the name of a table, and its rows as an Arrow stream."""

TASKS = 2 * SHARDS
"""Tasks of a micro-batch. Spark would choose their number by the bytes, of which there are few."""


def folded(records: Any, states: StoragePath, batch_id: int) -> dict[str, pa.Table]:
    """The rows that a micro-batch adds to each table, by the table's name. ``records`` has the columns of
    :data:`pipeline.watch.packed_records.PACKED`.

    Writes the states after this micro-batch below ``states``; a second call with the same records does the same.
    """
    groups = (
        records.repartition(TASKS, "cluster", "shard")
        .groupBy("cluster", "shard")
        .applyInArrow(lambda key, rows: _fold_group(states, batch_id, key, rows), _OUTPUT)
    )
    found: dict[str, list[pa.Table]] = {}
    for name, stream in groups.collect():
        found.setdefault(name, []).append(read_stream(bytes(stream)))
    return {name: pa.concat_tables(tables) for name, tables in found.items()}


def _fold_group(states: StoragePath, batch_id: int, key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
    """One shard's records of a micro-batch, in any order."""
    # Nearly all objects of a fold live until its end: to look at them again and again took a quarter of its time.
    with without_collection():
        return _folded_group(states, batch_id, key, rows)


def _folded_group(states: StoragePath, batch_id: int, key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
    cluster, shard = (part.as_py() for part in key)
    place = states / cluster / str(shard)
    fold = IncidentFold(read_state(place, batch_id))
    fold_records(fold, in_order(unpacked(rows["records"].to_pylist())))
    write_state(place, batch_id, fold.state)
    # What happens to brokers, configurations and the log is the same in every shard.
    first = shard == 0
    moments = [moment for moment in fold.moments if first or not isinstance(moment, ClusterMoment)]
    found = {
        METADATA_EVENTS.name: event_rows(cluster, moments, fold.gaps if first else ()),
        METADATA_INCIDENTS.name: incident_rows(cluster, fold.ended),
    }
    named = [(name, stream_of(table)) for name, table in found.items() if table.num_rows]
    names, streams = [name for name, _ in named], [stream for _, stream in named]
    return pa.table({"name": pa.array(names, pa.string()), "rows": pa.array(streams, pa.binary())})


def in_order(records: pa.Table) -> pa.Table:
    """The row with which a log begins, which has no record; then its snapshot; then the log."""
    if pc.min(records["batch"]).as_py() == IN_SNAPSHOT or not _ascending(records["offset"].to_numpy()):
        records = records.append_column("later", pc.not_equal(records["batch"], IN_SNAPSHOT))
        records = records.append_column("has", pc.is_valid(records["record"]))
        records = records.sort_by([("later", "ascending"), ("has", "ascending"), ("offset", "ascending")])
    return records.select(RECORDS.names)


def _ascending(offsets: Any) -> bool:
    return bool((offsets[1:] > offsets[:-1]).all())


def fold_records(fold: IncidentFold, records: pa.Table) -> None:
    """Folds the records of a micro-batch, which begin the log if the first has no value."""
    if records.num_rows and not records["record"][0].is_valid:
        in_snapshot = pc.sum(pc.equal(records["batch"], IN_SNAPSHOT)).as_py()
        fold.restart(as_records(records.slice(1, in_snapshot - 1)), records["offset"][0].as_py())
        records = records.slice(in_snapshot)
    fold_columns(fold, records)
