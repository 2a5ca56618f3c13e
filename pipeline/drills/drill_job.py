"""The drill as a Spark job: each task runs many seeds and returns one row per incident. Their summary is made on
the driver.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.drills.drill_grid import Grid, incidents, tasks
from pipeline.drills.paired_comparison import compare_paired, read_incidents
from pipeline.results import RunTarget, append_rows
from pipeline.tables.schemas import DRILL_COMPARED, DRILL_INCIDENT, DRILL_INCIDENTS, MEASURES
from pipeline.tables.spark_writes import write_rows

Z_95 = 1.96
"""Quantile of the normal distribution for 95 %: cells have hundreds of incidents."""


def incident_rows(spark: Any, grid: Grid) -> Any:
    """A row for each case, a DataFrame of :data:`~pipeline.tables.schemas.DRILL_INCIDENT`. A case that fails is a
    row, never a failed task.
    """
    from pipeline.spark_tasks import answers  # noqa: PLC0415  # needs an extra

    return answers(spark, list(tasks(grid)), incidents, DRILL_INCIDENT)


def run_grid(spark: Any, grid: Grid, target: RunTarget) -> None:
    """Runs every case and writes its rows."""
    write_rows(incident_rows(spark, grid), target.root, DRILL_INCIDENTS, target.run_id)


def summarise(target: RunTarget, count: int, *merged: str) -> dict[str, Any]:
    """Means by cell, which are also written, differences between the methods on the same incidents, the worst
    incidents, and the first ``count`` that could not be run. ``merged``: earlier runs whose incidents count too.
    Raises PipelineError.
    """
    rows = read_incidents(target.root, {*merged, target.run_id})
    cells = cell_means(rows)
    append_rows(target, DRILL_COMPARED, cells)
    failed = rows.filter(pc.not_equal(rows["error"], "")).select(["replay", "error"]).to_pylist()
    return {
        "incidents": len(rows),
        "failed": len(failed),
        "failures": heapq.nsmallest(count, failed, key=lambda row: str(row["replay"])),
        "cells": cells,
        "paired": compare_paired(rows.filter(pc.equal(rows["error"], "")).to_pylist())._asdict(),
    }


def cell_means(rows: pa.Table) -> list[dict[str, Any]]:
    """Means with 95% confidence intervals by scenario, min ISR and recovery method, and over all scenarios: one
    row per cell. A measure that a drill of an earlier version lacks is null, and counts nowhere.
    """
    fine = pc.equal(rows["error"], "")
    measured = {name: pc.if_else(fine, rows[name].cast(pa.float64()), None) for name in MEASURES}
    counted = pa.table(
        {name: rows[name] for name in ("scenario", "min_isr", "arm")}
        | {
            "incidents": fine.cast(pa.int64()),
            "failed": pc.invert(fine).cast(pa.int64()),
            "broken": pc.if_else(fine, rows["broken"].cast(pa.int64()), None),
            "losing": pc.fill_null(pc.greater(measured["lost_acknowledged"], 0.0), False).cast(pa.int64()),
        }
        | measured
    )
    overall = counted.set_column(0, "scenario", pa.repeat("all", len(rows)))
    cells = [*_cells(counted), *_cells(overall)]
    return sorted(cells, key=lambda cell: (cell["scenario"], cell["min_isr"], cell["arm"]))


def _cells(rows: pa.Table) -> list[dict[str, Any]]:
    sums = ("incidents", "failed", "broken", "losing")
    found = rows.group_by(["scenario", "min_isr", "arm"]).aggregate(
        [
            *((name, "sum") for name in sums),
            *((name, how) for name in MEASURES for how in ("mean", "count")),
            *((name, "stddev", pc.VarianceOptions(ddof=1)) for name in MEASURES),
        ]
    )
    return [
        {name: row[name] for name in ("scenario", "min_isr", "arm")}
        | {name: row[f"{name}_sum"] for name in sums}
        | {key: value for name in MEASURES for key, value in _interval(row, name)}
        for row in found.to_pylist()
    ]


def _interval(row: dict[str, Any], name: str) -> Sequence[tuple[str, float | None]]:
    """The mean and half of the interval; None: a single incident has no deviation."""
    count = row[f"{name}_count"]
    half = Z_95 * row[f"{name}_stddev"] / count**0.5 if count > 1 else None
    return (name, row[f"{name}_mean"]), (f"{name}_ci", half)
