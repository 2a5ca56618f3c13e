"""The drill as a Spark job: each task runs many seeds and returns one row per incident; then a table of
means.
"""

from __future__ import annotations

from typing import Any

from pipeline.drills.drill_grid import Grid, incidents, tasks
from pipeline.drills.paired_comparison import compare_paired, read_incidents
from pipeline.results import RunTarget
from pipeline.tables.schemas import DRILL_COMPARED, DRILL_INCIDENT, DRILL_INCIDENTS, MEASURES
from pipeline.tables.spark_tables import rows_of_run, write_rows

Z_95 = 1.96
"""Quantile of the normal distribution for 95 %: cells have hundreds of incidents."""


def run_grid(spark: Any, grid: Grid, target: RunTarget) -> None:
    """Runs every case and writes its rows. A case that fails is a row, never a failed task."""
    from pipeline.spark_tasks import answers, parallelism  # noqa: PLC0415  # needs an extra

    pieces = list(tasks(grid))
    slices = max(1, min(len(pieces), parallelism(spark) * 16))
    found = answers(spark, [pieces[start::slices] for start in range(slices)], incidents, DRILL_INCIDENT)
    write_rows(found, target.root, DRILL_INCIDENTS, target.run_id)


def compare(spark: Any, target: RunTarget, *merged: str) -> list[dict[str, Any]]:
    """Writes and returns means with 95% confidence intervals by scenario, min ISR and recovery method, and
    over all scenarios: one row per cell. ``merged``: earlier runs whose incidents count too.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    # A drill of an earlier version may lack columns: what it lacks counts nowhere.
    rows = rows_of_run(spark, target.root, DRILL_INCIDENTS, *merged, target.run_id)
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
    write_rows(cells.unionByName(overall).coalesce(1), target.root, DRILL_COMPARED, target.run_id)
    table = rows_of_run(spark, target.root, DRILL_COMPARED, target.run_id).drop("run_id")
    return [row.asDict() for row in table.orderBy("scenario", "min_isr", "arm").collect()]


def summarise(spark: Any, target: RunTarget, count: int, *merged: str) -> dict[str, Any]:
    """Means by cell, differences between the methods on the same incidents, the worst incidents, and the first
    ``count`` that could not be run. Raises PipelineError.
    """
    cells = compare(spark, target, *merged)
    overall = [cell for cell in cells if cell["scenario"] == "all"]
    return {
        "incidents": sum(cell["incidents"] for cell in overall),
        "failed": sum(cell["failed"] for cell in overall),
        "failures": failures(spark, target, count, *merged),
        "cells": cells,
        "paired": compare_paired(read_incidents(target.root, {*merged, target.run_id}))._asdict(),
    }


def failures(spark: Any, target: RunTarget, count: int, *merged: str) -> list[dict[str, str]]:
    """The first cases that could not be run, with their replay commands."""
    rows = rows_of_run(spark, target.root, DRILL_INCIDENTS, *merged, target.run_id).where("error <> ''")
    chosen = rows.select("replay", "error").orderBy("replay").limit(count)
    return [row.asDict() for row in chosen.collect()]
