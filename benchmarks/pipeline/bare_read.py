"""The barest job of Spark: it reads what the plan reads, and does nothing with it."""

from __future__ import annotations

from pathlib import Path

from pipeline.plan.decide_rows import READ, UNREAD
from pipeline.snapshot.current_states import Reading
from pipeline.spark_session import SparkSettings, session
from pipeline.tables.schema_conversion import ddl

SETTINGS = SparkSettings("local[2]", "2g", brief=True)


def bare_read(lake: str) -> int:
    """The files are named, and so is the schema: Spark neither reads Delta's log nor looks for snapshots, and no
    column or nested field is read that the plan does not read.
    """
    schema = Reading(READ, UNREAD, leaderless=False).schema
    files = sorted(str(path) for path in Path(lake, "partition_states").glob("*/*/*.parquet"))
    with session("benchmark bare", SETTINGS) as spark:
        spark.read.schema(ddl(schema)).parquet(*files).write.format("noop").mode("overwrite").save()
    return len(files)


def started() -> int:
    with session("benchmark start", SETTINGS) as spark:
        return int(spark.range(1000).count())
