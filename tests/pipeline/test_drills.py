"""Drills on Spark: the same incidents whoever runs them, a failed one is a row, and methods are compared on
the same incidents.
"""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.drill.drill_run import DrillCase, DrillRow, case_key, run_arms
from benchmarks.drill.method_comparison import (
    SCHEMA,
    Grid,
    baseline_of,
    differences,
    incident_rows,
    means,
    worst,
)
from benchmarks.drill.recovery_arms import Arm

ARMS = (Arm.RANDOM_UNCLEAN.value, Arm.LAST_RECORD.value)


def rows_of(spark: Any, *rows: tuple[str, int, int, str]) -> Any:
    """``rows``: method, seed, acknowledged records lost, error."""
    made = [
        DrillRow(*case_key(case), lost, 0, 0, lost, lost / 2, 0, 0, 0, 0, 0, 1, error, case.replay)
        for arm, seed, lost, error in rows
        for case in (DrillCase("kills", arm, 1, seed),)
    ]
    return spark.createDataFrame(made, SCHEMA)


def test_the_grid_runs_as_rows_that_are_what_one_process_gives(spark: Any) -> None:
    grid = Grid(("long-tail", "power"), ARMS, (1,), 0, 4)
    rows = [tuple(row) for row in incident_rows(spark, grid).collect()]
    alone = [
        tuple(row) for name in grid.scenarios for seed in range(4) for row in run_arms(name, ARMS, 1, seed)
    ]
    assert sorted(rows) == sorted(alone) and len(rows) == grid.incidents


def test_an_incident_that_cannot_be_run_is_a_row_with_its_replay_command(spark: Any) -> None:
    (row,) = incident_rows(spark, Grid(("no-such-scenario",), (Arm.NONE.value,), (None,), 7, 1)).collect()
    assert "no-such-scenario" in row.error and row.min_isr == -1
    assert row.replay == (
        "python -m benchmarks.drill --scenario no-such-scenario --arm kafka-none --seed 7 --seeds 1"
    )


def test_a_cell_has_the_mean_and_its_interval_of_what_could_be_run(spark: Any) -> None:
    balanced = [("balanced", seed, 2 * seed, "") for seed in range(3)]
    cells = means(rows_of(spark, *balanced, ("nobody", 1, 5, ""), ("nobody", 2, 0, "it failed")))
    assert [(cell["scenario"], cell["arm"]) for cell in cells] == [
        (scenario, arm) for scenario in ("all", "kills") for arm in ("balanced", "nobody")
    ]
    for one, other in (cells[:2], cells[2:]):
        assert (one["incidents"], one["failed"], one["losing"]) == (3, 0, 2)
        assert one["lost_acknowledged"] == 2.0
        # The deviation of 0, 2 and 4 is 2.
        assert one["lost_acknowledged_ci"] == pytest.approx(1.96 * 2 / 3**0.5)
        assert (other["incidents"], other["failed"], other["lost_acknowledged"]) == (1, 1, 5.0)
        # One alone has no deviation.
        assert other["lost_acknowledged_ci"] is None


def test_methods_are_compared_on_the_same_incidents_and_not_where_one_could_not_be_run(spark: Any) -> None:
    unclean, last = ARMS
    pairs = [
        (arm, seed, lost, "")
        for seed in range(4)
        for arm, lost in ((unclean, 9 ** (seed + 1)), (last, 9**seed))
    ]
    alone = [(last, 7, 1, ""), (unclean, 8, 1, ""), (last, 8, 0, "it failed")]
    found = differences(rows_of(spark, *pairs, *alone), baseline_of((last, unclean)))
    assert [(cell["scenario"], cell["arm"], cell["pairs"]) for cell in found] == [
        ("all", last, 4),
        ("kills", last, 4),
    ]
    for cell in found:
        assert cell["lost_acknowledged"] == -8 * (1 + 9 + 81 + 729) / 4
        assert (cell["lost_acknowledged_less"], cell["lost_acknowledged_more"]) == (4, 0)
        assert cell["unavailable_s"] == cell["lost_acknowledged"] / 2


def test_the_worst_incidents_of_each_method_come_with_their_replay(spark: Any) -> None:
    rows = rows_of(spark, *(("last-record", seed, seed % 7, "") for seed in range(20)), ("nobody", 1, 0, ""))
    found = worst(rows, 3)
    assert [row["lost_acknowledged"] for row in found] == [6, 6, 5]
    assert found[0]["replay"].endswith("--seed 13 --seeds 1") and found[2]["replay"].endswith(
        "--seed 5 --seeds 1"
    )
