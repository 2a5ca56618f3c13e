"""Many clusters in one table, the worst first, and how they changed from run to run."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from console.jobs.pipeline.exposure_parts import fleet_parts
from console.output.bar_table import terminal_lines
from pipeline.exposure.fleet import COUNTED, fleet_rows
from pipeline.results import JobResult, commit, run_target
from pipeline.snapshot.catalog import Chain
from pipeline.snapshot.observation import Observation, SnapshotKind
from pipeline.snapshot.state_sources import ClusterFiles, RefusedSnapshot, Sources
from pipeline.storage import storage_path
from tests.pipeline.survey_strategies import NOON
from tests.unit.cli.command_process import Caller


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


def cluster(name: str, offline: int = 0) -> ClusterFiles:
    taken = Observation("s", name, SnapshotKind.FULL, NOON, NOON, "s", 100, offline)
    return ClusterFiles(Chain(storage_path("/lake"), taken, ()), (), ())


def worst(at_risk: int, offline: int, under: int, failed: str = "1") -> dict[str, Any]:
    counts = dict(zip(COUNTED, (at_risk, offline, under), strict=True))
    return counts | {"kind": "broker", "failed": [failed], "failures_offline": 1, "failures_at_risk": 1}


def test_the_worst_cluster_comes_first_and_one_that_could_not_be_read_is_named_last() -> None:
    refused = (RefusedSnapshot("torn", "s", "its rows are missing", -1),)
    sources = Sources(
        tuple(cluster(name, name == "down") for name in ("calm", "down", "b", "a", "c")), refused
    )
    rows = fleet_rows(sources, {"a": worst(0, 9, 0), "b": worst(1, 1, 1), "c": worst(0, 9, 1)})
    assert [row["cluster_id"] for row in rows] == ["down", "b", "c", "a", "calm", "torn"]
    assert rows[-1]["refused"] == "its rows are missing" and rows[-1]["offline"] is None
    assert (rows[-2]["offline"], rows[-2]["kind"]) == (0, None)
    (said, table) = fleet_parts(rows, 0)
    assert said == (
        "5 clusters: 1 with partitions offline now, 3 where one failure takes partitions offline, 1 where one puts"
        " acknowledged records at risk; 1 more could not be read, and are named below"
    )
    lines = "\n".join(terminal_lines(table))
    assert "broker 1" in lines and "none takes anything" in lines


def test_five_hundred_clusters_are_one_table_of_the_rows_that_were_asked_for() -> None:
    names = [f"cluster-{number:03}" for number in range(500)]
    sources = Sources(tuple(cluster(name) for name in names), ())
    rows = fleet_rows(sources, {name: worst(number, number, 0) for number, name in enumerate(names)})
    _, table, more = fleet_parts(rows, 20)
    assert not isinstance(table, str)
    assert [row[0] for row in table.rows[:2]] == ["cluster-499", "cluster-498"] and len(table.rows) == 20
    assert more == "… and 480 more clusters (--rows 0 shows all)"


def run(
    call: Caller, hour: int, counts: dict[str, tuple[int, int, int]], torn: tuple[str, ...] = (), **asked: Any
) -> None:
    at = NOON + timedelta(hours=hour)
    target = run_target(storage_path(f"{call.home}/results"), "exposure", at, "t")
    refused = tuple(RefusedSnapshot(name, "s", "its rows are missing", -1) for name in torn)
    sources = Sources(tuple(cluster(name) for name in counts), refused)
    fleet = fleet_rows(sources, {name: worst(*told) for name, told in counts.items()})
    commit(JobResult(target, "exposure", at, "0.1.0", {"clusters": {}} | asked, {"fleet": fleet}))


def test_a_trend_tells_what_got_worse_between_the_newest_runs(call: Caller) -> None:
    run(call, 0, {"a": (0, 5, 5), "b": (0, 1, 1), "gone": (0, 0, 0)})
    run(call, 1, {"a": (0, 5, 5), "b": (0, 1, 1), "gone": (0, 0, 0)})
    run(call, 2, {"a": (0, 9, 9)}, what_if={"lose": [], "min_isr": 1})
    run(call, 3, {"a": (0, 4, 5), "b": (2, 3, 1), "new": (0, 7, 7)})
    words = ("ktriage", "pipeline", "trend", "results")
    ended = call(*words)
    assert ended.status == 1 and "cluster gone is not in the newest run" in ended.err
    assert "1 run left out" in ended.out
    told = json.loads(call(*words, "--output", "json").out)
    assert [point["offline"] for point in told["runs"]] == [6, 6, 14]
    assert [point["clusters"] for point in told["runs"]] == [3, 3, 3]
    assert [row["clusterId"] for row in told["clusters"]] == ["b", "new", "a"]
    assert told["clusters"][0]["acknowledgedAtRisk"] == {"before": 0, "after": 2}
    assert told["clusters"][1]["offline"] == {"before": None, "after": 7}


@pytest.mark.parametrize(
    ("limit", "over"),
    [
        (("--max-offline", "6"), ["new"]),
        (("--max-at-risk", "1"), ["b"]),
        (("--max-more-offline", "1"), ["b"]),
        (("--max-more-at-risk", "2"), []),
        (("--max-offline", "0", "--cluster-id", "a"), ["a"]),
    ],
)
def test_a_limit_is_an_exit_status(call: Caller, limit: tuple[str, ...], over: list[str]) -> None:
    run(call, 1, {"a": (0, 5, 5), "b": (0, 1, 1)})
    run(call, 3, {"a": (0, 4, 5), "b": (2, 3, 1), "new": (0, 7, 7)})
    ended = call("ktriage", "pipeline", "trend", "results", "--output", "json", *limit)
    assert (ended.status, json.loads(ended.out)["overLimit"]) == (1 if over else 0, over), ended.err


def test_a_cluster_that_nobody_read_is_not_taken_for_one_without_exposure(call: Caller) -> None:
    run(call, 1, {"a": (0, 5, 5)})
    ended = call("ktriage", "pipeline", "trend", "results", "--cluster-id", "typo", "--max-offline", "0")
    assert ended.status == 1 and "cluster typo is not in the newest run" in ended.err


def test_a_cluster_that_the_newest_run_could_not_read_is_named_and_not_counted(call: Caller) -> None:
    run(call, 1, {"a": (0, 5, 5), "b": (0, 1, 1)})
    run(call, 2, {"a": (0, 5, 5)}, torn=("b",))
    ended = call("ktriage", "pipeline", "trend", "results", "--output", "json")
    told = json.loads(ended.out)
    assert (ended.status, told["clustersGone"]) == (1, ["b"])
    assert [point["clusters"] for point in told["runs"]] == [2, 1]


def test_results_that_do_not_count_by_cluster_are_one_clear_line(call: Caller) -> None:
    target = run_target(storage_path(f"{call.home}/results"), "exposure", NOON, "t")
    commit(JobResult(target, "exposure", NOON, "0.1.0", {"clusters": {}}, {}))
    ended = call("ktriage", "pipeline", "trend", "results")
    assert ended.status == 2 and len(ended.err.splitlines()) == 1
    assert "no run of exposure here counts by cluster" in ended.err
