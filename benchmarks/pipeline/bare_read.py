"""The barest jobs of Spark: each reads what a job reads, and does nothing with it."""

from __future__ import annotations

from pathlib import Path

from pipeline.exposure.exposure_job import READING
from pipeline.history.history_frames import READ as READ_OF_HISTORY
from pipeline.plan.decide_rows import READ, UNREAD
from pipeline.snapshot.current_states import Reading
from pipeline.spark_session import SparkSettings, session
from pipeline.tables.schema_conversion import ddl

SETTINGS = SparkSettings("local[2]", "2g", brief=True)


SCHEMAS = {
    "plan": Reading(READ, UNREAD, leaderless=False).schema,
    "exposure": READING.schema,
    "history": READ_OF_HISTORY,
}


def bare_read(lake: str, job: str) -> int:
    """The files are named, and so is the schema: Spark neither reads Delta's log nor looks for snapshots, and no
    column or nested field is read that the job does not read.
    """
    schema = SCHEMAS[job]
    files = sorted(str(path) for path in Path(lake, "partition_states").glob("*/*/*.parquet"))
    with session("benchmark bare", SETTINGS) as spark:
        spark.read.schema(ddl(schema)).parquet(*files).write.format("noop").mode("overwrite").save()
    return len(files)


def started() -> int:
    with session("benchmark start", SETTINGS) as spark:
        return int(spark.range(1000).count())
