"""Every job runs on a session of Spark Connect, which has no JVM and no RDD on the caller's side; a watch as the
command.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.snapshot.observation import SnapshotKind
from pipeline.storage import storage_path
from tests.pipeline.partition_histories import Diary, broker_row, offline, partition
from tests.pipeline.test_fixes import in_one_rack
from tests.pipeline.watched_logs import ONCE, expected_rows, written_logs, written_rows
from tests.shipped_metadata_logs import append_incidents
from tests.unit.cli.command_process import command_line, environment

ROOT = Path(__file__).parents[2]

# Spark may have to start, and every job runs before the first test.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def found(server: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the jobs came to, by their names, and how the caller's session is afterwards."""
    home = tmp_path_factory.mktemp("jobs")
    lake = storage_path(str(home / "lake"))
    for name in ("one", "two"):
        diary = Diary(lake, name)
        brokers = [broker_row(n, rack=f"r{n}") for n in (1, 2, 3)]
        diary.write(0, [*map(offline, range(20)), partition(20)], brokers=brokers)
        if name == "two":
            diary.write(1, [partition(3)], kind=SnapshotKind.CHANGES, brokers=brokers)
    racks = storage_path(str(home / "racks"))
    in_one_rack(racks, "near")
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "tests.pipeline.connect_jobs"),
            *(server, lake.path, racks.path, str(home / "results")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return json.loads(ended.stdout)


def test_plan_and_exposure_are_those_of_any_session(found: Any) -> None:
    assert found["plan"]["partitions"] == {"one": 21, "two": 1} and found["plan"]["refused"] == []
    counts = {(row["cluster_id"], row["kind"], *row["failed"]): row for row in found["exposure"]["worst"]}
    assert counts["one", "broker", "1"]["partitions"] == 1 and counts["two", "rack", "r1"]["partitions"] == 2


def test_fixes_are_those_of_any_session(found: Any) -> None:
    told = [
        (row["cluster_id"], row["kind"], row["saves"], row["partitions"]) for row in found["fixes"]["kinds"]
    ]
    assert told == [("near", "move", "copies", 3)]


def test_history_is_that_of_any_session(found: Any) -> None:
    kinds = {(row["cluster_id"], row["outcome"]): row["incidents"] for row in found["history"]["counts"]}
    assert kinds["two", "recovered"] == 1
    assert found["history again"]["continued"]["clusters"] == 2
    assert found["history again"]["counts"] == found["history"]["counts"]


def test_a_failure_is_one_line(found: Any) -> None:
    assert found["failing"].startswith("failing: Spark: ") and "it broke" in found["failing"]
    assert "\n" not in found["failing"]


def test_the_session_of_the_caller_is_left_as_it_was(found: Any) -> None:
    assert found["caller"]["kind"].startswith("pyspark.sql.connect")
    assert found["caller"] | {"kind": ""} == {
        "zone": "America/New_York",
        "rows": 3,
        "active": True,
        "kind": "",
    }


def test_a_watch_on_the_server_finds_every_incident_and_continues_where_it_ended(
    server: str, tmp_path: Path
) -> None:
    logs = written_logs(tmp_path, 100)

    def watch(*words: str) -> str:
        ended = subprocess.run(
            command_line("ktriage", "pipeline", "watch", *ONCE, "--master", server, *words),
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr[-3000:]
        return ended.stdout

    assert "read to the end" in watch()
    assert written_rows(tmp_path) == expected_rows(logs)
    for log in logs.values():
        append_incidents(log, 7, 20)
        log.write()
    last = json.loads(watch("--output", "json").splitlines()[-1])
    assert [cluster["unreadBytes"] for cluster in last["clusters"]] == [0, 0]
    assert written_rows(tmp_path) == expected_rows(logs)
