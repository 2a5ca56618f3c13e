"""What Spark plans is what the rules say of every row, wherever the rows come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from deltalake import DeltaTable

from pipeline.plan import plan_job
from pipeline.plan.decide_rows import planned
from pipeline.plan.plan_job import PlanOptions
from pipeline.results import RunTarget, rows_of_runs
from pipeline.snapshot.state_sources import find
from pipeline.snapshot.survey_rows import batch_of
from pipeline.storage import storage_path
from pipeline.tables.delta_table import table_place
from pipeline.tables.schemas import PARTITION_STATES, PLANS, without_run
from recovery.ranking import Ranking
from recovery.strategy import Strategy
from tests.pipeline.survey_strategies import NOON, surveys, write

KEY = ("cluster_id", "topic", "partition")


def written(target: RunTarget) -> list[dict[str, Any]]:
    """The rows of the run."""
    tables = rows_of_runs(target.root, PLANS, {target.run_id}, without_run(PLANS).names)
    return [row for table in tables for row in table.to_pylist()]


def test_the_plan_job_writes_what_is_planned_for_each_row(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    told = {name: surveys(seed, 500) for seed, name in enumerate(("one", "two"))}
    for name, rows in told.items():
        write(root, name, rows)
    target = RunTarget(root / "out", "run")
    plan_job.outcome(spark, find([root]), PlanOptions(everything=True), target)
    found = written(target)
    have = {tuple(row[name] for name in KEY): {**row, "snapshot": ""} for row in found}
    assert len(have) == len(found) == 1000
    for name, rows in told.items():
        for batch in planned(batch_of(rows, {}), Ranking.LAST_RECORD, Strategy.BALANCED):
            for row in batch.to_pylist():
                wanted = row | {"cluster_id": name, "snapshot": ""}
                assert have[name, row["topic"], row["partition"]] == wanted


def test_a_part_of_the_lake_is_in_files_of_its_own(tmp_path: Path) -> None:
    """A reader who asks for a part opens nothing else."""
    root = storage_path(str(tmp_path))
    for number, cluster_id in enumerate(("one", "two")):
        write(root, cluster_id, surveys(number, 20))
        write(root, cluster_id, surveys(number, 20), NOON.replace(day=30), "t")
    table = DeltaTable(table_place(root, PARTITION_STATES).path)
    files = table.file_uris()
    part = [file for file in files if "/day=2026-01-30/" in file]
    assert [pq.read_metadata(file).num_rows for file in part] == [20, 20] and len(files) == 4
