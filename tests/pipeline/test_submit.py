"""Every job by spark-submit, on a cluster of two workers of their own processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from pipeline import spark_python
from pipeline.plan.result_to_plan import plan_of
from pipeline.results import read_result
from pipeline.storage import storage_path
from release.build_backend import with_namespace
from tests.built_wheel import built_wheel, python_without_ktriage, submit_script
from tests.pipeline import submitted_commands
from tests.pipeline.brief_java import BRIEF_JAVA
from tests.pipeline.partition_histories import partition
from tests.pipeline.small_data import SMALL_DATA
from tests.pipeline.survey_strategies import NOON, write
from tests.pipeline.test_fixes import in_one_rack
from tests.pipeline.watched_logs import expected_rows, written_logs, written_rows
from tests.repetitions import soaking
from tests.shipped_metadata_logs import LogWriter

# A cluster of three Java processes is started.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

WORKERS = "local-cluster[2,1,1024]"
COMMANDS = (
    ("exposure", "--in", "lake", "--out", "results"),
    ("fixes", "--in", "racks", "--out", "results"),
    ("history", "--in", "lake", "--out", "results"),
    ("history", "--in", "lake", "--out", "results"),
    ("watch", "--in", "shipped", "--out", "out", "--every", "1s", "--once"),
    (
        *("plan", "--in", "lake", "--at", "2026-01-31T12:30:00Z"),
        *("--strategy", "aggressive", "--out", "results"),
    ),
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Each job has run in the driver's directory, all with one start of Java and of the workers: the plan by the
    script that is submitted, and the others as that script runs them.
    """
    home = tmp_path_factory.mktemp("submit")
    lake = storage_path(str(home / "lake"))
    write(lake, "c", [partition(n, leader=-1, isr=()) for n in range(50)])
    write(lake, "c", [partition(n) for n in range(50)], NOON + timedelta(hours=1), "later")
    in_one_rack(storage_path(str(home / "racks")), "near")
    logs = written_logs(home, 200)
    submit = Submit(home, built_wheel(home / "dist"), python_without_ktriage(home / "python"))
    script = submit_script(submit.wheel, submit.wheel.parent)
    if soaking():
        for words in COMMANDS:
            submit(script, "pipeline", *words)
    else:
        listed = json.dumps([("pipeline", *words) for words in COMMANDS])
        commands = Path(submitted_commands.__file__)
        # It imports the modules of the wheel.
        several = home / "commands" / commands.name
        several.parent.mkdir()
        several.write_text(with_namespace(commands.read_text("utf-8"), commands.name), "utf-8")
        submit(several, str(script), listed)
    return Ran(home, logs)


@pytest.fixture(scope="module")
def results(ran: Ran) -> Path:
    return ran.home / "results"


class Ran(NamedTuple):
    """``logs``: what the watch has read."""

    home: Path
    logs: dict[str, LogWriter]


class Submit(NamedTuple):
    """spark-submit, with a driver and workers that have nothing of ktriage but its wheel."""

    home: Path
    wheel: Path
    python: str

    def __call__(self, script: Path, *words: str) -> None:
        environment = os.environ | {
            "PYSPARK_PYTHON": self.python,
            "PYSPARK_DRIVER_PYTHON": self.python,
            "SPARK_LOCAL_IP": "127.0.0.1",
            # Nothing of ktriage but how Python processes start; PySpark is compiled in each of them otherwise.
            "PYTHONPATH": "" if soaking() else os.pathsep.join(spark_python.__path__),
        }
        settings: dict[str, str] = {} if soaking() else SMALL_DATA
        ended = subprocess.run(
            [
                str(Path(sys.executable).with_name("spark-submit")),
                *("--master", WORKERS, "--driver-memory", "1g", "--py-files", str(self.wheel)),
                *("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.bindAddress=127.0.0.1"),
                *("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.executor.memory=512m"),
                *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")),
                *("--driver-java-options", BRIEF_JAVA),
                *("--conf", f"spark.executor.extraJavaOptions={BRIEF_JAVA}"),
                *(str(script), *words),
            ],
            cwd=self.home,
            env=environment,
            capture_output=True,
            text=True,
            timeout=1500,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr[-3000:]


def test_a_plan_that_was_submitted_is_a_plan_like_any_other(results: Path) -> None:
    result = read_result(storage_path(str(results)), "plan")
    plan = plan_of(result, "c", "me")
    assert [row.tp.partition for row in plan.rows] == list(range(50))
    assert result.summary["partitions"] == {"c": 50}
    assert {row.leader for row in plan.rows} == {1} and all(row.loss.none for row in plan.rows)


def test_exposure_and_history_that_were_submitted_are_results_like_any_other(results: Path) -> None:
    exposed = read_result(storage_path(str(results)), "exposure").summary
    counts = {(row["kind"], tuple(row["failed"])): row["partitions"] for row in exposed["worst"]}
    assert counts["broker", ("1",)] == 50 and exposed["refused"] == []
    told = read_result(storage_path(str(results)), "history").summary
    assert [(row["kind"], row["outcome"], row["incidents"]) for row in told["counts"]] == [
        ("offline", "recovered", 50)
    ]
    # The second time it has continued the first.
    assert told["continued"]["clusters"] == 1


def test_fixes_that_were_submitted_are_a_result_like_any_other(results: Path) -> None:
    told = read_result(storage_path(str(results)), "fixes").summary["kinds"]
    assert [(row["cluster_id"], row["kind"], row["partitions"]) for row in told] == [("near", "move", 3)]


def test_a_watch_that_was_submitted_has_found_every_incident(ran: Ran) -> None:
    expected = expected_rows(ran.logs)
    assert all(expected) and written_rows(ran.home) == expected
