"""The drill as a Spark job: each task runs many seeds and returns one row per incident; then a table of
means.
"""

from __future__ import annotations

from typing import Any

from pipeline.drills.drill_grid import Grid, tasks
from pipeline.drills.paired_comparison import compare_paired, read_incidents
from pipeline.storage import StoragePath

INCIDENTS = "incidents"
COMPARED = "compared"

MEASURES = (
    "lost_acknowledged",
    "lost_other",
    "rescuable",
    "lost_for_good",
    "unavailable_s",
    "offline",
    "decisions",
    "waits",
    "offline_after",
)

SCHEMA = (
    "scenario string, arm string, min_isr int, seed bigint, lost_acknowledged bigint, lost_other bigint,"
    " rescuable bigint, lost_for_good bigint, unavailable_s double, offline int, decisions int, waits int,"
    " offline_after int, broken int, steps bigint, error string, replay string"
)

Z_95 = 1.96
"""Quantile of the normal distribution for 95 %: cells have hundreds of incidents."""


def run_grid(spark: Any, grid: Grid, out: StoragePath) -> None:
    """Runs every case and writes the rows below ``out``. A case that fails is a row, never a failed task."""
    from pipeline.drills.drill_tasks import DrillTasks  # noqa: PLC0415  # needs an extra
    from pipeline.spark_tasks import answers, parallelism  # noqa: PLC0415

    pieces = list(tasks(grid))
    slices = max(1, min(len(pieces), parallelism(spark) * 16))
    found = answers(spark, DrillTasks, [pieces[start::slices] for start in range(slices)])
    found.write.parquet((out / INCIDENTS).hadoop)


def compare(spark: Any, sources: list[StoragePath], out: StoragePath) -> list[dict[str, Any]]:
    """Writes and returns means with 95% confidence intervals by scenario, min ISR and recovery method, and
    over all scenarios: one row per cell.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    # A drill of an earlier version has fewer columns: what it lacks counts nowhere.
    rows = spark.read.option("mergeSchema", "true").parquet(*(source.hadoop for source in sources))
    # An incident that is in two runs counts once.
    rows = rows.dropDuplicates(["scenario", "arm", "min_isr", "seed"])
    fine = f.col("error") == ""
    measures = [
        f.count_if(fine).alias("incidents"),
        f.count_if(~fine).alias("failed"),
        f.sum(f.when(fine, f.col("broken"))).alias("broken"),
        f.count_if(fine & (f.col("lost_acknowledged") > 0)).alias("losing"),
    ]
    for name in MEASURES:
        value = f.when(fine, f.col(name).cast("double"))
        measures.append(f.avg(value).alias(name))
        # A single incident has no deviation: null means unknown.
        half = f.lit(Z_95) * f.stddev_samp(value) / f.sqrt(f.count(value))
        measures.append(f.when(f.count(value) > 1, half).alias(f"{name}_ci"))
    cells = rows.groupBy("scenario", "min_isr", "arm").agg(*measures)
    overall = rows.groupBy("min_isr", "arm").agg(*measures).withColumn("scenario", f.lit("all"))
    table = cells.unionByName(overall).orderBy("scenario", "min_isr", "arm")
    table.coalesce(1).write.parquet((out / COMPARED).hadoop)
    return [row.asDict() for row in spark.read.parquet((out / COMPARED).hadoop).collect()]


def summarise(spark: Any, sources: list[StoragePath], out: StoragePath, count: int) -> dict[str, Any]:
    """Means by cell, differences between the methods on the same incidents, the worst incidents, and the first
    ``count`` that could not be run. Raises PipelineError.
    """
    cells = compare(spark, sources, out)
    overall = [cell for cell in cells if cell["scenario"] == "all"]
    return {
        "incidents": sum(cell["incidents"] for cell in overall),
        "failed": sum(cell["failed"] for cell in overall),
        "failures": failures(spark, sources, count),
        "cells": cells,
        "paired": compare_paired(read_incidents(sources))._asdict(),
    }


def failures(spark: Any, sources: list[StoragePath], count: int) -> list[dict[str, str]]:
    """The first cases that could not be run, with their replay commands."""
    rows = spark.read.parquet(*(source.hadoop for source in sources)).where("error <> ''")
    chosen = rows.select("replay", "error").orderBy("replay").limit(count)
    return [row.asDict() for row in chosen.collect()]
