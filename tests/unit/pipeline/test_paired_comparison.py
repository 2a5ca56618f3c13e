"""Recovery methods are compared on the same incidents, and a difference is only claimed where there is one."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline.drills.drill_job import cell_means
from pipeline.drills.paired_comparison import bootstrap_interval, compare_paired, read_incidents
from pipeline.storage import storage_path
from pipeline.tables.delta_table import append
from pipeline.tables.schemas import DRILL_INCIDENTS


def incident(arm: str, seed: int, lost: int, *, scenario: str = "kills", error: str = "") -> dict[str, Any]:
    replay = f"ktriage pipeline drill --scenario {scenario} --arm {arm} --seed {seed}"
    row = {"scenario": scenario, "min_isr": 1, "arm": arm, "seed": seed, "error": error, "replay": replay}
    return row | {"lost_acknowledged": lost, "unavailable_s": lost / 2}


def test_a_small_difference_that_is_always_there_is_seen_between_incidents_that_differ_much() -> None:
    sizes = [int(size) for size in np.random.default_rng(3).integers(10, 10_000, 200)]
    rows = [incident("random-unclean", seed, size) for seed, size in enumerate(sizes)]
    rows += [incident("last-record", seed, size - 1 - seed % 2) for seed, size in enumerate(sizes)]
    found = compare_paired(rows)
    assert found.baseline == "random-unclean"
    overall, kills = found.rows
    assert (overall["scenario"], kills["scenario"], overall["arm"]) == ("all", "kills", "last-record")
    assert (overall["pairs"], overall["lost_acknowledged"]) == (200, -1.5)
    assert -1.6 < overall["lost_acknowledged_low"] < -1.5 < overall["lost_acknowledged_high"] < -1.4
    assert (overall["lost_acknowledged_less"], overall["lost_acknowledged_more"]) == (200, 0)
    assert overall["unavailable_s"] == -0.75


def test_what_could_not_be_run_or_has_no_partner_is_no_pair(tmp_path: Any) -> None:
    rows = [incident("nobody", seed, 5) for seed in range(4)]
    rows += [
        incident("balanced", 1, 7),
        incident("balanced", 9, 0),
        incident("balanced", 2, 0, error="it failed"),
    ]
    # The same incidents in two drills count once.
    root = storage_path(str(tmp_path))
    for run_id in ("one", "two", "another"):
        written = [row | {"run_id": run_id} for row in (rows if run_id != "another" else rows[:1] * 3)]
        table = pa.Table.from_pylist(written, DRILL_INCIDENTS.schema)
        append(root, DRILL_INCIDENTS, partial(pa.table, table))
    read = read_incidents(root, {"one", "two"})
    assert read["error"].to_pylist() == ["", "it failed", *[""] * 5]
    found = compare_paired([row for row in read.to_pylist() if not row["error"]])
    (cell, _) = found.rows
    assert (found.baseline, cell["arm"], cell["pairs"], cell["lost_acknowledged"]) == (
        "balanced",
        "nobody",
        1,
        -2.0,
    )
    assert cell["lost_acknowledged_low"] is None


def test_an_incident_that_failed_in_one_drill_and_ran_in_another_counts_as_run(tmp_path: Any) -> None:
    root = storage_path(str(tmp_path))
    for run_id, error in (("one", "it failed"), ("two", ""), ("three", "it failed")):
        row = incident("balanced", 1, 7, error=error) | {"run_id": run_id}
        append(root, DRILL_INCIDENTS, partial(pa.Table.from_pylist, [row], DRILL_INCIDENTS.schema))
    assert read_incidents(root, {"one", "two", "three"})["error"].to_pylist() == [""]


def test_a_cell_has_the_mean_and_its_interval_of_what_could_be_run() -> None:
    rows = [incident("balanced", seed, 2 * seed) for seed in range(3)]
    rows += [incident("nobody", 1, 5), incident("nobody", 2, 9, error="it failed")]
    told = cell_means(pa.Table.from_pylist(rows, DRILL_INCIDENTS.schema))
    assert [(cell["scenario"], cell["arm"]) for cell in told] == [
        (scenario, arm) for scenario in ("all", "kills") for arm in ("balanced", "nobody")
    ]
    for balanced, nobody in (told[:2], told[2:]):
        assert (balanced["incidents"], balanced["failed"], balanced["losing"]) == (3, 0, 2)
        assert balanced["lost_acknowledged"] == 2.0
        # The deviation of 0, 2 and 4 is 2.
        assert balanced["lost_acknowledged_ci"] == pytest.approx(1.96 * 2 / 3**0.5)
        assert (nobody["incidents"], nobody["failed"], nobody["lost_acknowledged"]) == (1, 1, 5.0)
        # One alone has no deviation, and these rows have no such column.
        assert nobody["lost_acknowledged_ci"] is None
        assert balanced["rescuable"] is None and balanced["rescuable_ci"] is None


def test_the_worst_incidents_of_each_method_come_with_their_replay() -> None:
    rows = [incident("last-record", seed, seed % 7) for seed in range(20)]
    worst = compare_paired([*rows, incident("nobody", 1, 0)]).worst
    assert [(row["seed"], row["lost_acknowledged"]) for row in worst] == [(6, 6), (13, 6), (5, 5)]
    assert worst[0]["replay"].endswith("--seed 6")


@pytest.mark.long
@pytest.mark.parametrize("shape", ["many alike", "all different"])
def test_the_interval_covers_the_true_mean_as_often_as_it_says(shape: str) -> None:
    random = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        values = random.poisson(0.3, 150) if shape == "many alike" else random.normal(0.3, 2, 150)
        low, high = bootstrap_interval(values.astype(float), random)
        assert low is not None and high is not None
        covered += low <= 0.3 <= high
    assert 180 <= covered <= 199
