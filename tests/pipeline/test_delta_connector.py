"""In a session with Delta's connector the jobs read and write by it, and the rows are the same."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from pipeline import jobs
from pipeline.jobs import Tables
from pipeline.results import read_results
from pipeline.snapshot.observation import SnapshotKind
from pipeline.storage import storage_path
from pipeline.tables.history_schemas import INCIDENTS
from pipeline.tables.schemas import EXPOSURES, TableDefinition
from testbed.kafka.jars import delta_jars
from tests.pipeline.brief_java import BRIEF_JAVA
from tests.pipeline.partition_histories import Diary, offline, partition
from tests.unit.cli.command_process import command_line, environment

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

JOBS = {"exposure": EXPOSURES, "history": INCIDENTS}
SECONDS = 900


def connected() -> str:
    """What the documentation says, with jars of this machine."""
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.shuffle.partitions": "2",
    }
    words = [f"--conf {name}={value}" for name, value in settings.items()]
    return " ".join(("--jars", ",".join(map(str, delta_jars())), *words, "pyspark-shell"))


def rows_of(root: Path, definition: TableDefinition) -> list[str]:
    (result,) = (one for one in read_results(storage_path(str(root))) if JOBS[one.job] is definition)
    return in_order(row for table in result.rows(definition) for row in table.drop("run_id").to_pylist())


def in_order(rows: Iterable[dict[str, Any]]) -> list[str]:
    """As text, with times in UTC."""
    return sorted(
        repr(
            {
                name: value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
                for name, value in row.items()
            }
        )
        for row in rows
    )


def test_jobs_of_a_session_with_the_connector_give_the_same_rows(spark: Any, tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path / "lake")))
    diary.write(0, [offline(0), partition(1), partition(2)])
    diary.write(1, [offline(1), partition(2, isr=(1, 2))], kind=SnapshotKind.CHANGES)
    diary.write(2, [partition(1)], kind=SnapshotKind.CHANGES)
    lake = Tables((str(tmp_path / "lake"),))
    plain: dict[str, Callable[..., Any]] = {"exposure": jobs.exposure, "history": jobs.history}
    for job, definition in JOBS.items():
        ended = subprocess.run(
            command_line("ktriage", "pipeline", job, "--in", "lake", "--out", "out", "--output", "json"),
            cwd=tmp_path,
            env=environment(tmp_path, SPARK_SUBMIT_OPTS=BRIEF_JAVA, PYSPARK_SUBMIT_ARGS=connected()),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)["job"] == job
        rows = plain[job](spark, lake)[definition.name].toArrow().to_pylist()
        assert rows and rows_of(tmp_path / "out", definition) == in_order(rows)
        commits = DeltaTable(str(tmp_path / "out" / definition.name)).history()
        assert "Apache-Spark" in str(commits[0]["engineInfo"])
