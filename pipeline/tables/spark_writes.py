"""Rows of a DataFrame as rows of a Delta table: Spark writes the files, and one commit adds them to the table.

A file of a task that failed, or of a run that was killed, is named by no commit: nobody counts it. Where the
session has Delta's connector, that writes and commits.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from pipeline.storage import StoragePath
from pipeline.tables.delta_table import add_columns, commit_change, create, explained, table_place
from pipeline.tables.schema_conversion import ddl
from pipeline.tables.schemas import TableDefinition, without_run
from pipeline.tables.spark_reads import DELTA, has_connector

_SUFFIX = ".parquet"


class WrittenFile(NamedTuple):
    """A file below the table's directory; ``modified``: in milliseconds since 1970."""

    path: str
    size: int
    rows: int
    modified: int


def write_rows(rows: Any, root: StoragePath, definition: TableDefinition, run_id: str) -> Any:
    """Appends the rows of a run, a DataFrame, in one commit: all of them or none. Returns them as they are written,
    a DataFrame of what Spark need not compute again. Raises PipelineError.
    """
    create(root, definition)
    schema = without_run(definition)
    spark, place = rows.sparkSession, table_place(root, definition)
    if has_connector(spark):
        from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

        mine = rows.select(*schema.names).withColumn("run_id", f.lit(run_id))
        mine.write.format(DELTA).mode("append").option("mergeSchema", "true").save(place.hadoop)
        written = spark.read.format(DELTA).load(place.hadoop)
        return written.where(f.col("run_id") == run_id).select(*schema.names)
    # Delta's readers take the run from the directory's name.
    part = table_place(root, definition) / f"run_id={run_id}"
    writer = rows.select(*schema.names).write.mode("append").option("compression", "zstd")
    writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(part.hadoop)
    files = written_files(part)
    commit_files(root, definition, run_id, files)
    if not files:
        return spark.createDataFrame([], ddl(schema))
    return spark.read.schema(ddl(schema)).parquet(*((place / file.path).hadoop for file in files))


def written_files(part: StoragePath) -> list[WrittenFile]:
    """What Spark has written; files without rows, and checksums beside the files of a local disk, are removed."""
    found = []
    for place in part.walk():
        rows = 0
        if place.name.endswith(_SUFFIX):
            with explained(place), place.open() as stream:
                rows = pq.read_metadata(stream).num_rows
        if not rows:
            place.remove()
            continue
        info = place.files.get_file_info(place.path)
        path = f"{part.name}/{place.name}"
        found.append(WrittenFile(path, info.size, rows, (info.mtime_ns or 0) // 1_000_000))
    return found


def commit_files(
    root: StoragePath, definition: TableDefinition, run_id: str, files: Sequence[WrittenFile]
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
