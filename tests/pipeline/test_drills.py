"""Drills over Spark: the same incidents whoever runs them, and a failed one is a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pipeline.drills import drill_job
from pipeline.drills.drill_grid import Grid, run_task, tasks
from pipeline.drills.recovery_arms import Arm
from pipeline.results import RunTarget, rows_of_runs
from pipeline.storage import storage_path
from pipeline.tables.delta_table import table_place
from pipeline.tables.schemas import DRILL_INCIDENT, DRILL_INCIDENTS

GRID = Grid(("long-tail", "power"), (Arm.RANDOM_UNCLEAN.value, Arm.LAST_RECORD.value), (1,), 0, 12)


def rows_of(target: RunTarget) -> pa.Table:
    tables = rows_of_runs(target.root, DRILL_INCIDENTS, {target.run_id}, DRILL_INCIDENT.names)
    return pa.concat_tables(tables)


def test_the_grid_runs_as_rows_that_are_what_one_process_gives(spark: Any, tmp_path: Path) -> None:
    target = RunTarget(storage_path(str(tmp_path)), "run")
    drill_job.run_grid(spark, GRID, target)
    rows = rows_of(target)
    found = sorted(tuple(row.values()) for row in rows.to_pylist())
    assert found == sorted(tuple(row) for task in tasks(GRID, 5) for row in run_task(task))
    assert len(found) == GRID.incidents
    summary = drill_job.summarise(target, 5)
    assert (summary["incidents"], summary["failed"], summary["failures"]) == (GRID.incidents, 0, [])
    paired = summary["paired"]
    assert paired["baseline"] == "random-unclean"
    assert [(row["scenario"], row["arm"], row["pairs"]) for row in paired["rows"]] == [
        ("all", "last-record", 24),
        ("long-tail", "last-record", 12),
        ("power", "last-record", 12),
    ]
    cells = summary["cells"]
    assert {cell["scenario"] for cell in cells} == {"long-tail", "power", "all"}
    assert all(cell["incidents"] and cell["lost_acknowledged_ci"] is not None for cell in cells)


def test_an_incident_that_cannot_be_run_is_a_row_with_its_replay_command(spark: Any, tmp_path: Path) -> None:
    target = RunTarget(storage_path(str(tmp_path)), "run")
    drill_job.run_grid(spark, Grid(("no-such-scenario",), (Arm.NONE.value,), (2,), 7, 1), target)
    (failed,) = drill_job.summarise(target, 5)["failures"]
    assert "no-such-scenario" in failed["error"]
    assert failed["replay"].endswith(
        "--scenario no-such-scenario --arm kafka-none --min-isr 2 --seed 7 --seeds 1 --out replay"
    )


def test_an_incident_that_two_runs_hold_counts_once(spark: Any, tmp_path: Path) -> None:
    out = storage_path(str(tmp_path))
    grid = Grid(("kills",), (Arm.NONE.value,), (1,), 0, 3)
    for name in ("a", "b"):
        drill_job.run_grid(spark, grid, RunTarget(out, name))
    cells = drill_job.summarise(RunTarget(out, "b"), 5, "a")["cells"]
    assert [cell["incidents"] for cell in cells] == [3, 3]


@pytest.mark.parametrize("size", [1, 5, 50])
def test_tasks_cover_the_grid_once(size: int) -> None:
    cases = [
        (task.scenario, arm, task.min_isr, seed)
        for task in tasks(GRID, size)
        for arm in task.arms
        for seed in range(task.first, task.first + task.seeds)
    ]
    assert len(cases) == len(set(cases)) == GRID.incidents


def test_a_drill_of_an_earlier_version_is_merged_without_the_columns_that_it_lacks(
    spark: Any, tmp_path: Path
) -> None:
    out = storage_path(str(tmp_path))
    old = Grid(("kills",), (Arm.LAST_RECORD.value,), (1,), 1, 2)
    drill_job.run_grid(spark, old, RunTarget(out / "today", "old"))
    rows = rows_of(RunTarget(out / "today", "old")).drop_columns(["rescuable", "lost_for_good"])
    rows = rows.append_column("run_id", pa.repeat("old", len(rows)))
    write_deltalake(table_place(out, DRILL_INCIDENTS).path, rows, partition_by=["run_id"])
    assert rows_of(RunTarget(out, "old"))["rescuable"].to_pylist() == [None, None]
    grid = Grid(("kills",), (Arm.LAST_RECORD.value,), (1,), 3, 2)
    drill_job.run_grid(spark, grid, RunTarget(out, "new"))
    cells = drill_job.summarise(RunTarget(out, "new"), 5, "old")["cells"]
    (cell,) = [cell for cell in cells if cell["scenario"] == "kills"]
    assert cell["incidents"] == 4 and cell["rescuable"] is not None
