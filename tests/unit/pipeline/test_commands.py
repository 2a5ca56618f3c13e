"""The commands around snapshots and results, as an operator types them; none of these starts Spark."""

from __future__ import annotations

import json
import shlex
import socket
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from console.jobs.pipeline import take_snapshots
from pipeline.errors import PipelineError
from pipeline.snapshot.catalog import read_catalog
from pipeline.storage import storage_path
from tests.pipeline.partition_histories import forget
from tests.pipeline.survey_strategies import surveys, write
from tests.unit.cli.command_process import Caller


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("pipeline plan --in lake --out results --seeds 5", "ktriage pipeline plan: No such option: --seeds"),
        ("pipeline show results --at 2026-01-31", "ktriage pipeline show: No such option: --at"),
        (
            "pipeline history more --in lake --out results",
            "ktriage pipeline history: Got unexpected extra argument(s) (more)",
        ),
        ("pipeline plan --in lake", "ktriage pipeline plan: Missing option '--out'"),
        (
            "pipeline plan --in lake --out r --driver-memory lots",
            "--driver-memory 'lots': give a size such as 2g",
        ),
        ("snapshot list --out file://elsewhere/lake", "names an absolute path on this machine"),
        ("pipeline plan --in '' --out results", "'' is not a directory or a URI"),
        ("snapshot --simulate stale-long-tail --out ''", "'' is not a directory or a URI"),
        ("snapshot --simulate stale-long-tail --out lake --count 3", "give --every too"),
        ("snapshot compact --out none", "none: there are no snapshots here"),
        ("plan --from results --strategy balanced a.json", "ktriage plan: No such option: --strategy"),
        ("plan --from results --simulate stale-long-tail a.json", "ktriage plan: No such option: --simulate"),
        ("plan --from results --topic orders a.json", "ktriage plan: No such option: --topic"),
    ],
)
def test_what_would_do_nothing_is_refused_in_one_line(call: Caller, words: str, said: str) -> None:
    ended = call("ktriage", *shlex.split(words))
    assert ended.status == 2 and said in ended.err and len(ended.err.splitlines()) == 1
    assert not list(call.home.glob("*.json")) and not (call.home / "observations").exists()


def test_the_next_command_can_be_pasted_whatever_the_place_is_called(call: Caller) -> None:
    ended = call("ktriage", "snapshot", "--simulate", "stale-long-tail", "--out", "la ke#1")
    assert ended.status == 0, ended.err
    (line,) = (line for line in ended.err.splitlines() if line.startswith("next: "))
    assert shlex.split(line)[1:6] == ["ktriage", "pipeline", "plan", "--in", "la ke#1"]
    again = call("ktriage", "snapshot", "list", "--out", f"file://{call.home}/la ke#1")
    assert again.status == 0 and "1 offline" in again.out


def test_a_series_that_cannot_read_its_directory_ends_at_once_and_no_job_on_it_is_next(call: Caller) -> None:
    (call.home / "lake").mkdir()
    (call.home / "lake" / "partition_states").write_text("in the way")
    words = "snapshot --simulate stale-long-tail --out lake --every 60s --count 2"
    ended = call("ktriage", *words.split())
    assert ended.status == 2 and len(ended.err.splitlines()) == 1
    assert "lake/partition_states" in ended.err


@pytest.mark.parametrize("place", ["file", "hdfs://127.0.0.1:1/x", "nope://x/y"])
def test_a_place_that_cannot_be_written_is_one_clear_line(call: Caller, place: str) -> None:
    (call.home / "file").write_text("in the way")
    ended = call("ktriage", "snapshot", "--simulate", "stale-long-tail", "--out", place)
    assert ended.status == 2 and len(ended.err.splitlines()) == 1
    assert place in ended.err


def test_what_a_run_cannot_write_to_is_told_before_spark_is_started(call: Caller) -> None:
    call("ktriage", "snapshot", "--simulate", "stale-long-tail", "--out", "lake")
    (call.home / "file").write_text("in the way")
    ended = call("ktriage", "pipeline", "plan", "--in", "lake", "--out", "file")
    assert ended.status == 2 and len(ended.err.splitlines()) == 1
    assert f"file://{call.home}/file/runs" in ended.err and "Spark" not in ended.err


def test_keeping_the_newest_of_a_cluster_removes_whole_days_and_says_what_went(call: Caller) -> None:
    old = (datetime.now(UTC) - timedelta(days=3)).replace(hour=10)
    root = storage_path(f"{call.home}/lake")
    # The newest ones tell the topics; a cluster without any of them is another one with the same id.
    assert call("ktriage", "snapshot", "--simulate", "zone-power-loss", "--out", "lake").status == 0
    for cluster_id in ("simulated.zone-power-loss.1", "simulated.stale-long-tail.1"):
        for hour in (0, 1):
            write(root, cluster_id, surveys(1, 5), old + timedelta(hours=hour))
    for round_ in range(3):
        ended = call("ktriage", "snapshot", "--simulate", "zone-power-loss", "--out", "lake", "--keep", "2")
        assert ended.status == 0, ended.err
        went = "removed: 2 older snapshots of simulated.zone-power-loss.1" in ended.err
        assert went == (round_ == 0)
    kept = json.loads(call("ktriage", "snapshot", "list", "--out", "lake", "--output", "json").out)
    counts = Counter(one["clusterId"] for one in kept["snapshots"])
    assert counts == {"simulated.stale-long-tail.1": 2, "simulated.zone-power-loss.1": 4}
    ended = call("ktriage", "snapshot", "compact", "--out", "lake", "--keep", "1")
    assert ended.status == 0 and "small files merged" in ended.out, ended.err


@pytest.mark.parametrize("series", [(), ("--every", "60s", "--count", "2")])
def test_a_snapshot_after_which_old_ones_cannot_be_removed_is_there(
    call: Caller, monkeypatch: pytest.MonkeyPatch, series: tuple[str, ...]
) -> None:
    def fail(*_: object) -> int:
        raise PipelineError("lake: Permission denied")

    monkeypatch.setattr(take_snapshots, "keep_newest", fail)
    words = ("snapshot", "--simulate", "stale-long-tail", "--out", "lake", "--keep", "2", *series)
    ended = call("ktriage", *words)
    (full,) = (line for line in ended.out.splitlines() if ": full, 1 partition, 1 offline" in line)
    name = full.partition(":")[0]
    assert ended.status == 1 and "no snapshot at" not in ended.err
    assert f"{name} is written; removing old ones failed: lake: Permission denied" in ended.err


def test_a_history_of_changes_whose_full_snapshot_is_gone_is_told_and_not_empty(call: Caller) -> None:
    every = ("--every", "30s", "--count", "3")
    call("ktriage", "snapshot", "--simulate", "zone-power-loss", "--out", "lake", *every)
    root = storage_path(f"{call.home}/lake")
    full = next(one for mine in read_catalog(root).clusters.values() for one in mine)
    forget(root, full)
    ended = call("ktriage", "pipeline", "history", "--in", "lake", "--out", "results")
    assert ended.status == 2 and "the full snapshot that its changes build on is missing" in ended.err
    ended = call("ktriage", "pipeline", "plan", "--in", "lake", "--out", "results")
    assert ended.status == 2 and f"it builds on {full.snapshot}, which is missing" in ended.err


def test_workers_with_the_wheel_need_a_driver_with_the_wheel(call: Caller) -> None:
    place = ("--in", "lake", "--out", "out")
    ended = call("ktriage", "pipeline", "plan", *place, "--master", "spark://h:7077", "--wheel", "k.whl")
    assert ended.status == 2 and ended.err.splitlines()[-1].endswith(
        "use that ktriage: pip install 'k.whl[spark]'"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no server of Spark Connect can be reached there: [Errno 111] Connection refused"),
        (("--wheel", "ktriage.whl"), "a server of Spark Connect has ktriage in its own Python"),
    ],
)
def test_a_server_of_spark_connect_that_cannot_be_used_is_one_clear_line(
    call: Caller, words: tuple[str, ...], said: str
) -> None:
    call("ktriage", "snapshot", "--simulate", "stale-long-tail", "--out", "lake")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"sc://127.0.0.1:{closed.getsockname()[1]}"
    ended = call("ktriage", "pipeline", "plan", "--in", "lake", "--out", "out", "--master", url, *words)
    assert ended.status == 2 and said in ended.err.splitlines()[-1], ended.err
