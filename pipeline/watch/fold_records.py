"""The second stage of ``watch``: the records of a micro-batch, folded into incidents, cluster by cluster.

The state is kept for each cluster, not for each partition. One event of the controller is one record batch with the
changes of many partitions and of the broker that caused them; a deleted topic or an emptied ELR is one record for
many partitions; and a controller transaction may hold any of them. The records of one partition alone do not show
this. The task that folds a cluster reads its log: between Spark's processes records would cost more than the fold.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from backends.garbage_collection import without_collection
from pipeline.storage import StoragePath
from pipeline.watch.fold_state import read_state, write_state
from pipeline.watch.incident_rows import METADATA_EVENTS, METADATA_INCIDENTS, event_rows, incident_rows
from pipeline.watch.log_part import ShippedPart, incident_records
from pipeline.watch.quiet_changes import as_records, fold_columns
from recovery.metadata_log.incident_fold import IncidentFold
from recovery.metadata_log.log_changes import IN_SNAPSHOT

_OUTPUT = "name string, rows binary"
"""Of each cluster: the name of a table, and its rows as an Arrow stream."""


def folded(parts: Any, states: StoragePath, batch_id: int) -> dict[str, pa.Table]:
    """The rows that a micro-batch adds to each table, by the table's name. ``parts`` has the column of
    :data:`pipeline.watch.log_part.PARTS`.

    Writes the states after this micro-batch below ``states``; a second call with the same parts does the same.
    """

    def fold(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch["part"].to_pylist():
                yield _fold_part(states, batch_id, pickle.loads(part))  # noqa: S301  # our own task made it

    found: dict[str, list[pa.Table]] = {}
    for name, stream in parts.mapInArrow(fold, _OUTPUT).collect():
        with pa.ipc.open_stream(bytes(stream)) as reader:
            found.setdefault(name, []).append(reader.read_all())
    return {name: pa.concat_tables(tables) for name, tables in found.items()}


def _fold_part(states: StoragePath, batch_id: int, part: ShippedPart) -> pa.RecordBatch:
    """A cluster's records of a micro-batch. If no incident needs any, its state is neither read nor written."""
    found: dict[str, pa.Table] = {}
    records = incident_records(part)
    if records.num_rows:
        place = states / part.cluster
        # Nearly all objects of a fold live until its end: to look at them again took a quarter of its time.
        with without_collection():
            fold = IncidentFold(read_state(place, batch_id))
            fold_records(fold, records)
            write_state(place, batch_id, fold.state)
        found = {
            METADATA_EVENTS.name: event_rows(part.cluster, fold.moments, fold.gaps),
            METADATA_INCIDENTS.name: incident_rows(part.cluster, fold.ended),
        }
    streams = {name: _stream_of(table) for name, table in found.items() if table.num_rows}
    names, rows = pa.array(streams, pa.string()), pa.array(streams.values(), pa.binary())
    return pa.record_batch([names, rows], names=["name", "rows"])


def _stream_of(rows: pa.Table) -> bytes:
    """Many rows in one value: Arrow's stream format, with the schema in it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def fold_records(fold: IncidentFold, records: pa.Table) -> None:
    """Folds the records of a micro-batch, which begin the log if the first has no value."""
    if records.num_rows and not records["record"][0].is_valid:
        in_snapshot = pc.sum(pc.equal(records["batch"], IN_SNAPSHOT)).as_py()
        fold.restart(as_records(records.slice(1, in_snapshot - 1)), records["offset"][0].as_py())
        records = records.slice(in_snapshot)
    fold_columns(fold, records)
