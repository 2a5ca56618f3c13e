"""Rows that Spark's tasks write themselves: as Parquet files, which one commit adds to a Delta table.

So rows that a task has computed with Arrow need not pass through Java. A file of a task that failed is named by no
commit: nobody counts it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
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


ANSWER = pa.schema([("answer", pa.string())])
"""JSON: the files of a task, each a :class:`TaskFile`, and what it tells of each batch."""


def write_rows(
    rows: Any,
    root: StoragePath,
    definition: TableDefinition,
    run_id: str,
    summarised: Callable[[Any], Any] | None = None,
) -> list[Any]:
    """Appends the rows of a run, a DataFrame, in one commit; Spark's tasks write the files. Returns what
    ``summarised`` makes of each batch, as JSON has it. Raises PipelineError.
    """
    create(root, definition)
    written = written_files(root.uri, definition, run_id, summarised)
    rows = rows.select(*without_run(definition).names).mapInArrow(written, ddl(ANSWER))
    return commit_answers(rows, root, definition, run_id)


def written_files(
    root: str, definition: TableDefinition, run_id: str, summarised: Callable[[Any], Any] | None = None
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What a task does with the rows that it has computed: it writes them, and answers by :data:`ANSWER`."""
    schema = without_run(definition)

    def written(batches: Iterable[Any]) -> Iterator[Any]:
        parts: list[Any] = []

        def conforming() -> Iterator[Any]:
            for batch in batches:
                rows = conformed(batch, schema)
                parts.extend([summarised(rows)] if summarised is not None else ())
                yield rows

        files = list(write_files(root, definition, run_id, conforming()))
        yield pa.RecordBatch.from_pydict({"answer": [json.dumps([files, parts])]}, ANSWER)

    return written


def commit_answers(answers: Any, root: StoragePath, definition: TableDefinition, run_id: str) -> list[Any]:
    """Appends the files of those answers, a DataFrame, in one commit; returns what they tell besides. Raises
    PipelineError.
    """
    found = [json.loads(row["answer"]) for row in answers.collect()]
    commit_files(root, definition, run_id, [TaskFile(*file) for files, _ in found for file in files])
    return [part for _, parts in found for part in parts]


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
