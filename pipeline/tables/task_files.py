"""Rows that Spark's tasks write themselves: as Parquet files, which one commit adds to a Delta table.

So rows that a task has computed with Arrow need not pass through Java. A file of a task that failed is named by no
commit: nobody counts it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from pipeline.storage import StoragePath, storage_path
from pipeline.tables.delta_table import ROW_GROUP, add_columns, commit_change, create, explained
from pipeline.tables.schema_conversion import conformed, ddl
from pipeline.tables.schemas import TableDefinition, without_run

FILE_ROWS = 250_000
"""Rows of a file, about; this bounds a task's memory."""


class TaskFile(NamedTuple):
    """A file below the table's directory; ``modified``: in milliseconds since 1970."""

    path: str
    size: int
    rows: int
    modified: int


_FILES = pa.schema(
    [("path", pa.string()), ("size", pa.int64()), ("rows", pa.int64()), ("modified", pa.int64())]
)
"""Each a :class:`TaskFile`."""


def write_rows(rows: Any, root: StoragePath, definition: TableDefinition, run_id: str) -> None:
    """Appends the rows of a run, a DataFrame, in one commit; Spark's tasks write the files. Raises
    PipelineError.
    """
    create(root, definition)
    schema, uri = without_run(definition), root.uri

    def written(batches: Iterable[Any]) -> Iterator[Any]:
        conforming = (conformed(batch, schema) for batch in batches)
        files = [file._asdict() for file in write_files(uri, definition, run_id, conforming)]
        yield pa.RecordBatch.from_pylist(files, _FILES)

    files = rows.select(*schema.names).mapInArrow(written, ddl(_FILES)).collect()
    commit_files(root, definition, run_id, [TaskFile(*file) for file in files])


def write_files(
    root: str, definition: TableDefinition, run_id: str, batches: Iterable[Any]
) -> Iterator[TaskFile]:
    """Writes the rows of those batches as :func:`write_file`, into as many files as they need."""
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= FILE_ROWS:
            yield write_file(root, definition, run_id, pa.Table.from_batches(waiting))
            waiting = []
    if any(one.num_rows for one in waiting):
        yield write_file(root, definition, run_id, pa.Table.from_batches(waiting))


def write_file(root: str, definition: TableDefinition, run_id: str, rows: pa.Table) -> TaskFile:
    """Writes the rows of a run, which have no column for it, into a new file. Raises PipelineError."""
    # Delta's readers take the run from the directory's name.
    path = f"run_id={run_id}/{uuid4()}.zstd.parquet"
    place = storage_path(root) / definition.name / path
    with explained(place), place.create() as stream:
        pq.write_table(rows, stream, ROW_GROUP, compression="zstd", store_schema=False)
    info = place.files.get_file_info(place.path)
    return TaskFile(path, info.size, len(rows), (info.mtime_ns or 0) // 1_000_000)


def commit_files(
    root: StoragePath, definition: TableDefinition, run_id: str, files: Sequence[TaskFile]
) -> None:
    """Appends the rows of those files in one commit: all of them or none. Raises PipelineError."""
    if not files:
        return
    add_columns(root, definition)
    actions: list[AddAction | RemoveAction] = [
        AddAction(
            one.path, one.size, {"run_id": run_id}, one.modified, True, json.dumps({"numRecords": one.rows})
        )
        for one in files
    ]

    def append(table: DeltaTable) -> None:
        table.create_write_transaction(
            actions, "append", table.schema(), partition_by=list(definition.partition_by)
        )

    commit_change(root, definition, append)
