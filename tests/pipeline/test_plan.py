"""What Spark plans is what the rules say of every row, wherever the rows come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.plan import plan_job
from pipeline.plan.decide_rows import planned
from pipeline.results import RunTarget
from pipeline.snapshot.state_sources import find
from pipeline.snapshot.survey_rows import batch_of
from pipeline.storage import storage_path
from pipeline.tables.schemas import PARTITION_STATES, PLANS
from pipeline.tables.spark_tables import read_table, rows_of_run
from recovery.ranking import Ranking
from recovery.strategy import Strategy
from tests.pipeline.survey_strategies import NOON, surveys, write


def test_the_plan_job_writes_what_is_planned_for_each_row(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    told = {name: surveys(seed, 500) for seed, name in enumerate(("one", "two"))}
    for name, rows in told.items():
        write(root, name, rows)
    target = RunTarget(root / "out", "run")
    plan_job.outcome(spark, find([root]), Ranking.LAST_RECORD, Strategy.BALANCED, target, everything=True)
    found = rows_of_run(spark, target.root, PLANS, "run").drop("snapshot", "run_id").collect()
    key = ("cluster_id", "topic", "partition")
    have = {tuple(row[name] for name in key): row.asDict(recursive=True) for row in found}
    assert len(have) == len(found) == 1000
    for name, rows in told.items():
        for batch in planned(batch_of(rows, {}), Ranking.LAST_RECORD, Strategy.BALANCED):
            for row in batch.drop_columns(["snapshot"]).to_pylist():
                assert have[name, row["topic"], row["partition"]] == row | {"cluster_id": name}


def test_the_plan_is_a_dataframe_for_other_programs(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    for seed, name in enumerate(("one", "twice")):
        told = surveys(seed, 100)
        write(root, name, told if name == "one" else [*told, told[0]])
    target = RunTarget(root / "out", "run")
    asked = Ranking.SPECIFICATION, Strategy.AGGRESSIVE
    plan_job.outcome(spark, find([root]), *asked, target, everything=False)
    written = rows_of_run(spark, target.root, PLANS, "run").drop("run_id")
    rows = plan_job.planned_rows(spark, find([root]), *asked, everything=False)
    assert rows.schema == written.schema
    key = ("cluster_id", "topic", "partition")
    assert rows.orderBy(*key).collect() == written.orderBy(*key).collect() != []


def test_a_part_of_the_lake_is_read_where_a_part_is_asked_for(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    for number, cluster_id in enumerate(("one", "two")):
        write(root, cluster_id, surveys(number, 20))
        write(root, cluster_id, surveys(number, 20), NOON.replace(day=30), "t")
    whole = read_table(spark, root, PARTITION_STATES)
    part = whole.where("cluster_id = 'one' AND day = '2026-01-30'")
    plan = part._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [isnotnull(cluster_id" in plan
    assert part.count() == 20
    read = part.selectExpr("input_file_name() AS file").distinct().collect()
    assert ["day=2026-01-30" in row["file"] and "cluster_id=one" in row["file"] for row in read] == [True]
