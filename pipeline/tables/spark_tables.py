"""Delta tables as Spark sees them, through Delta's connector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from pipeline.storage import StoragePath
from pipeline.tables.delta_table import create, opened, table_place
from pipeline.tables.schema_conversion import conformed, ddl
from pipeline.tables.schemas import TableDefinition, without_run
from pipeline.tables.task_files import TaskFile, commit_files, write_files

_FILES = pa.schema(
    [("path", pa.string()), ("size", pa.int64()), ("rows", pa.int64()), ("modified", pa.int64())]
)
"""Each a :class:`~pipeline.tables.task_files.TaskFile`."""


def read_table(spark: Any, root: StoragePath, definition: TableDefinition) -> Any:
    """The rows of the table; a column that it lacks is null. Raises PipelineError if the table cannot be opened."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    if opened(root, definition) is None:
        return spark.createDataFrame([], ddl(definition.schema))
    place = table_place(root, definition)
    rows = spark.read.format("delta").load(place.hadoop)
    there = set(rows.columns)
    typed = spark.createDataFrame([], ddl(definition.schema)).schema
    return rows.select(
        *(
            f.col(field.name) if field.name in there else f.lit(None).cast(field.dataType).alias(field.name)
            for field in typed
        )
    )


def write_rows(rows: Any, root: StoragePath, definition: TableDefinition, run_id: str) -> None:
    """Appends the rows of a run in one commit; Spark's tasks write the files. Raises PipelineError."""
    create(root, definition)
    schema, uri = without_run(definition), root.uri

    def written(batches: Iterable[Any]) -> Iterator[Any]:
        conforming = (conformed(batch, schema) for batch in batches)
        files = [file._asdict() for file in write_files(uri, definition, run_id, conforming)]
        yield pa.RecordBatch.from_pylist(files, _FILES)

    files = rows.select(*schema.names).mapInArrow(written, ddl(_FILES)).collect()
    commit_files(root, definition, run_id, [TaskFile(*file) for file in files])


def rows_of_run(spark: Any, root: StoragePath, definition: TableDefinition, *run_ids: str) -> Any:
    """The rows that those runs wrote. Raises PipelineError as :func:`read_table`."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    return read_table(spark, root, definition).where(f.col("run_id").isin(list(run_ids)))
