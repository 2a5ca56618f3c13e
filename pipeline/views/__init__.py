"""Views over the tables, one file of SQL each: the same text for Spark, DuckDB and the engine in ``deltalake``.

A text names the tables by their names, so that any catalog that has them will do. A view that needs another view
says so in its first lines.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pyarrow as pa
from deltalake import QueryBuilder

from pipeline.storage import StoragePath
from pipeline.tables.delta_table import create, explained, table_place
from pipeline.tables.schema_conversion import plain_text
from pipeline.tables.schemas import (
    EXPOSURES,
    FLEET,
    OBSERVATIONS,
    PARTITION_STATES,
    RUNS,
    TableDefinition,
)
from pipeline.tables.spark_reads import table_frame
from pipeline.watch.incident_rows import METADATA_EVENTS, METADATA_INCIDENTS

TABLES_OF_VIEWS: dict[str, tuple[TableDefinition, ...]] = {
    "current_partitions": (OBSERVATIONS, PARTITION_STATES),
    "fleet_now": (OBSERVATIONS, PARTITION_STATES),
    "open_incidents": (METADATA_EVENTS, METADATA_INCIDENTS),
    "incident_minutes_by_topic": (METADATA_INCIDENTS,),
    "exposure_by_failure": (RUNS, EXPOSURES, FLEET),
}
"""Every view with the tables that it reads; a view comes after those that it needs."""


def view_text(name: str) -> str:
    """The query of the view, which begins with a comment that says what it is."""
    return files(__name__).joinpath(f"{name}.sql").read_text(encoding="utf-8")


def create_views(spark: Any, root: StoragePath) -> list[str]:
    """Makes temporary views of the tables below ``root``, and of every view whose tables are all there; returns the
    names of the latter. Spark reads the files that the tables' logs name now. Raises PipelineError.
    """
    made: list[str] = []
    there: dict[str, bool] = {}
    for name, tables in TABLES_OF_VIEWS.items():
        for definition in tables:
            if definition.name not in there:
                rows = table_frame(spark, root, definition)
                there[definition.name] = rows is not None
                if rows is not None:
                    rows.createOrReplaceTempView(definition.name)
        if all(there[definition.name] for definition in tables):
            spark.sql(view_text(name)).createOrReplaceTempView(name)
            made.append(name)
    return made


def view_rows(root: StoragePath, name: str) -> pa.Table:
    """The rows of a view that needs no other view, by the engine in ``deltalake``: without Java. Raises
    PipelineError.
    """
    engine = QueryBuilder()
    for definition in TABLES_OF_VIEWS[name]:
        table = create(root, definition)
        with explained(table_place(root, definition)):
            engine.register(definition.name, table)
    with explained(root):
        return plain_text(pa.table(engine.execute(view_text(name))))
