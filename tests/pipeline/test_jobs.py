"""A program gets every job's rows as DataFrames on its own session, the same as the commands write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pipeline import jobs
from pipeline.errors import PipelineError
from pipeline.exposure import exposure_job, fix_job
from pipeline.exposure.fix_choice import FixLimits
from pipeline.exposure.what_if import WhatIf, parsed_losses
from pipeline.history import history_job
from pipeline.history.history_sources import find_history
from pipeline.jobs import Frames, Tables
from pipeline.plan import plan_job
from pipeline.plan.plan_job import PlanOptions
from pipeline.results import RESULT_TABLES, RunTarget, rows_of_runs
from pipeline.snapshot.state_sources import find
from pipeline.storage import StoragePath, storage_path
from pipeline.tables.schema_conversion import ddl
from pipeline.tables.schemas import without_run
from recovery.strategy import Strategy
from tests.pipeline.broken_files import set_rows
from tests.pipeline.partition_histories import Diary, offline, partition, rewrite
from tests.pipeline.test_fixes import brokers

ZONE = "spark.sql.session.timeZone"
DOCS = Path(__file__).parents[2] / "docs" / "pipeline.md"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> StoragePath:
    """Two clusters, one of which has a broken row; partition 1 was offline, partition 0 still is."""
    root = storage_path(str(tmp_path_factory.mktemp("jobs") / "lake"))
    for name in ("one", "two"):
        diary = Diary(root, name)
        rows = [partition(0, assignment=(1, 2)), offline(1), *(partition(n) for n in (2, 3))]
        diary.write(0, rows, brokers=brokers("aab"))
        diary.write(1, [offline(0), partition(1), *rows[2:]], brokers=brokers("aab"))
    rewrite(root, lambda table: set_rows(table, isr={3: None}), cluster_id="two")
    return root


@pytest.fixture
def session(spark: Any) -> Any:
    """The caller's, in another time zone."""
    mine = spark.newSession()
    mine.conf.set(ZONE, "Asia/Tokyo")
    return mine


def plain(rows: list[Any]) -> list[str]:
    return sorted(repr({name: str(value) for name, value in row.items()}) for row in rows)


def check(session: Any, frames: Frames, target: RunTarget) -> None:
    """Every frame has the columns of its table and the rows that the command has written."""
    for definition in RESULT_TABLES:
        if definition.name not in frames:
            continue
        columns = without_run(definition)
        frame = frames[definition.name]
        assert frame.schema == session.createDataFrame([], ddl(columns)).schema
        tables = rows_of_runs(target.root, definition, {target.run_id}, columns.names)
        written = [row for table in tables for row in table.to_pylist()]
        got = [row for batch in [frame.toArrow()] for row in batch.to_pylist()]
        for row in (*written, *got):
            for name, value in row.items():
                # In the session's zone, and in UTC in the table.
                row[name] = value.timestamp() if hasattr(value, "timestamp") else value
        assert plain(got) == plain(written) and written, definition.name
    assert session.conf.get(ZONE) == "Asia/Tokyo"


def test_the_plan(session: Any, lake: StoragePath, tmp_path: Path) -> None:
    target = RunTarget(storage_path(str(tmp_path)), "run")
    options = PlanOptions(strategy=Strategy.AGGRESSIVE)
    plan_job.outcome(session, find([lake]), options, target)
    check(session, jobs.plan(session, Tables((lake.uri,)), options), target)
    (only,) = jobs.plan(session, Tables((lake.uri,), ("one",)), options)["plans"].collect()
    assert (only["cluster_id"], only["partition"], only["verdict"]) == ("one", 0, "elect")
    with pytest.raises(PipelineError, match="no snapshot of cluster three"):
        jobs.plan(session, Tables((lake.uri,), ("three",)))


def test_exposure(session: Any, lake: StoragePath, tmp_path: Path) -> None:
    target = RunTarget(storage_path(str(tmp_path)), "run")
    options = WhatIf(parsed_losses(["broker=1,broker=2"]))
    exposure_job.outcome(session, find([lake]), target, options)
    check(session, jobs.exposure(session, Tables((lake.uri,)), options), target)


def test_fixes(session: Any, lake: StoragePath, tmp_path: Path) -> None:
    target = RunTarget(storage_path(str(tmp_path)), "run")
    fix_job.outcome(session, find([lake]), target, FixLimits())
    check(session, jobs.fixes(session, Tables((lake.uri,))), target)


def test_history(session: Any, lake: StoragePath, tmp_path: Path) -> None:
    target = RunTarget(storage_path(str(tmp_path)), "run")
    history_job.outcome(session, find_history([lake]), (), target)
    frames = dict(jobs.history(session, Tables((lake.uri,))))
    assert frames.pop("events").count() == 0
    check(session, frames, target)


def test_the_notebook_of_the_documentation_runs(session: Any, lake: StoragePath) -> None:
    (cell,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
        if "pipeline.jobs import" in block
    )
    names: dict[str, Any] = {"spark": session}
    # In the repository the modules are not below the package of the wheel.
    exec(cell.replace("s3://ops/lake", lake.uri).replace("from ktriage.", "from "), names)  # noqa: S102  # the code that the documentation shows
    assert [row["cluster_id"] for row in names["worst"].collect()] == ["one", "two"]
