"""Places, results and the session's settings, without Spark."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import NotInstalled, PipelineError
from pipeline.results import JobResult, RunTarget, commit, read_result, read_results, run_target
from pipeline.spark_session import SparkSettings, check_java, configuration, java_options
from pipeline.storage import storage_path
from pipeline.tables.delta_table import append, create, read_partitions
from pipeline.tables.schema_conversion import ddl
from pipeline.tables.schemas import PARTITION_STATES, PLANS, without_run
from tests.pipeline.survey_strategies import NOON


def test_a_path_is_a_uri_of_this_machine_and_object_stores_are_named_for_each_side(tmp_path: Path) -> None:
    here = storage_path(str(tmp_path / "a b"))
    assert here.uri == here.hadoop == f"file://{tmp_path}/a b"
    for uri in (f"file://{tmp_path}", f"file:{tmp_path}", f"file://localhost{tmp_path}"):
        assert (storage_path(uri).path, storage_path(uri).uri) == (str(tmp_path), f"file://{tmp_path}")
    assert (here / "x").name == "x"


@pytest.mark.parametrize("text", ["lake*", "lake/{a,b}", "nowhere://x/y"])
def test_a_place_that_cannot_be_is_one_clear_line(text: str) -> None:
    with pytest.raises(PipelineError) as told:
        storage_path(text)
    assert text in str(told.value) and "\n" not in str(told.value)


def test_a_result_is_there_when_its_row_in_runs_is(tmp_path: Path) -> None:
    out = storage_path(str(tmp_path))
    target = run_target(out, "plan", NOON, "t")
    rows = pa.Table.from_pylist([{"run_id": target.run_id, "cluster_id": "c"}], PLANS.schema)
    append(out, PLANS, lambda: rows)
    with pytest.raises(PipelineError, match="no finished result of plan"):
        read_result(out, "plan")
    result = JobResult(target, "plan", NOON, "0.1.0", {"ranking": "last-record"}, {"n": 1})
    commit(result)
    assert read_result(out, "plan") == read_result(target.place) == read_results(out)[0] == result
    assert [row["cluster_id"] for table in result.rows(PLANS) for row in table.to_pylist()] == ["c"]
    with pytest.raises(PipelineError, match="a result of plan, not of history"):
        read_result(target.place, "history")
    with pytest.raises(PipelineError, match="no finished result is here"):
        read_result(out / "plan-of-another-day")


def test_a_run_that_fails_leaves_no_row_and_those_of_others(tmp_path: Path) -> None:
    out = storage_path(str(tmp_path))
    for run_id in ("one", "two"):
        rows = pa.Table.from_pylist([{"run_id": run_id, "cluster_id": run_id}], PLANS.schema)
        append(out, PLANS, partial(pa.table, rows))
    (out / "two" / "lost.png").write(b"a picture")
    RunTarget(out, "two").discard()
    left = [row for table in read_partitions(out, PLANS, "", (), PLANS.schema) for row in table.to_pylist()]
    assert [row["cluster_id"] for row in left] == ["one"] and not (out / "two").exists()


def test_a_run_that_fails_before_its_commit_leaves_no_file(tmp_path: Path) -> None:
    out = storage_path(str(tmp_path))
    create(out, PLANS)
    for run_id in ("one", "two"):
        rows = pa.Table.from_pylist([{"cluster_id": "c"}], without_run(PLANS))
        part = out / PLANS.name / f"run_id={run_id}"
        part.make()
        pq.write_table(rows, f"{part.path}/part-0.parquet")
    RunTarget(out, "two").discard()
    assert [file.parent.name for file in tmp_path.glob("plans/run_id=*/*")] == ["run_id=one"]


def test_of_several_results_the_newest_of_the_job_is_read(tmp_path: Path) -> None:
    out = storage_path(str(tmp_path))
    for hour, job in enumerate(("plan", "plan", "fixes")):
        at = NOON + timedelta(hours=hour)
        commit(JobResult(run_target(out, job, at, "t"), job, at, "0.1.0", {}, {"hour": hour}))
    assert read_result(out, "plan").summary == {"hour": 1}
    assert read_result(out).summary == {"hour": 2}


@pytest.mark.parametrize(
    ("told", "found"),
    [
        (None, "no java was found"),
        ('openjdk version "11.0.2" 2019-01-15\nmore', 'found: openjdk version "11.0.2" 2019-01-15'),
        ("", "does not answer"),
    ],
)
def test_a_java_that_will_not_do_is_one_clear_line(told: str | None, found: str) -> None:
    with pytest.raises(NotInstalled, match="Java 17 or newer is needed to run Spark") as said:
        check_java(told)
    assert found in str(said.value) and "\n" not in str(said.value)


def test_a_java_that_will_do_is_taken() -> None:
    check_java('openjdk version "17.0.15" 2025-04-15')
    check_java('openjdk version "21" 2023-09-19')


def test_without_pyspark_the_command_says_how_to_get_it(tmp_path: Path) -> None:
    def ended(before: str, *words: str) -> subprocess.CompletedProcess[str]:
        code = (
            f"{before}import sys; sys.argv = {['ktriage', *words]}; from console.cli.main import main; main()"
        )
        return subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=60,
            check=False,
        )

    missing = (
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'pyspark' else real(name, *a)\n"
    )
    taken = ended("", "snapshot", "--simulate", "stale-long-tail", "--out", "lake")
    planned = ended(missing, "pipeline", "plan", "--in", "lake", "--out", "x")
    assert (taken.returncode, planned.returncode) == (0, 2)
    assert planned.stderr.splitlines()[-1].endswith(
        "the pipeline needs PySpark: pip install 'ktriage[spark]'"
    )


def test_under_spark_submit_the_given_master_stands() -> None:
    own = configuration(SparkSettings("local[2]"), under_submit=False)
    given = configuration(SparkSettings("local[2]"), under_submit=True)
    assert own["spark.master"] == "local[2]" and own["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.master" not in given and "spark.driver.memory" not in given
    elsewhere = configuration(SparkSettings("spark://h:7077", wheel="a.whl"), under_submit=False)
    assert elsewhere["spark.submit.pyFiles"] == "a.whl" and "spark.driver.bindAddress" not in elsewhere


def test_the_written_schema_is_what_spark_reads() -> None:
    text = ddl(PARTITION_STATES.schema)
    assert text.startswith("`cluster_id` string, `day` date, `snapshot` string")
    assert "`taken_at` timestamp" in text and "`replicas` array<struct<`broker`: int" in text


def test_a_job_on_this_machine_is_compiled_once_and_a_stream_to_the_end(tmp_path: Path) -> None:
    brief, stream = SparkSettings(brief=True), SparkSettings()
    elsewhere = SparkSettings("spark://h:7077", brief=True)
    once = ["TieredStopAtLevel=1" in java_options(one, tmp_path) for one in (brief, stream, elsewhere)]
    assert once == [True, False, False]
