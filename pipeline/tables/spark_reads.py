"""Delta tables as DataFrames: by Delta's connector where the session has it, else from the files of the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pipeline.errors import FilesGone
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import DataFile, data_files, each_once, opened, table_place
from pipeline.tables.schema_conversion import ddl
from pipeline.tables.schemas import TableDefinition

DELTA = "delta"
"""The connector's name as a format."""


def has_connector(spark: Any) -> bool:
    """Whether the session has Delta's connector, as its documentation sets it up."""
    return "DeltaSparkSessionExtension" in spark.conf.get("spark.sql.extensions", "")


def read_files(spark: Any, place: StoragePath, files: Sequence[DataFile], schema: pa.Schema) -> Any:
    """Those columns of files of the table in that directory, each file once; a column that a file lacks is null.
    The connector reads the whole table: the caller chooses the rows in any case. Raises FilesGone.
    """
    if has_connector(spark):
        return with_columns(spark.read.format(DELTA).load(place.hadoop), schema)
    if not files:
        return spark.createDataFrame([], ddl(schema))
    files = each_once(files)
    reader = spark.read.schema(ddl(schema)).option("basePath", place.hadoop)
    rows = reader.parquet(*(file.place.hadoop for file in files))
    if len(rows.inputFiles()) < len(files):
        # Spark takes a directory in the place of a file for one without rows.
        raise FilesGone(f"{place.uri}: files of the table are not there")
    return rows.select(*schema.names)


def with_columns(rows: Any, schema: pa.Schema) -> Any:
    """The rows with those columns; null where they lack one."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    there = set(rows.columns)
    lacking = [pa.schema([field]) for field in schema if field.name not in there]
    for one in lacking:
        kind = ddl(one).partition(" ")[2]
        rows = rows.withColumn(one.names[0], f.lit(None).cast(kind))
    return rows.select(*schema.names)


def table_frame(spark: Any, root: StoragePath, definition: TableDefinition) -> Any | None:
    """The table as a DataFrame, as this version of ktriage defines it: a column that its files lack is null. None:
    there is no such table. Raises PipelineError.
    """
    table = opened(root, definition)
    if table is None:
        return None
    files = [] if has_connector(spark) else data_files(root, definition, table)
    return read_files(spark, table_place(root, definition), files, definition.schema)
