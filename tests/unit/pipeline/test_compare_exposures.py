"""Two exposures are compared: what got worse is named, and a limit gives an exit status for a nightly run."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.results import JobResult, commit, run_target
from pipeline.storage import storage_path
from pipeline.tables.delta_table import append
from pipeline.tables.schemas import EFFECTS, EXPOSURES
from tests.pipeline.survey_strategies import NOON
from tests.unit.cli.command_process import Caller


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


def failure(
    name: str, offline: int, under: int = 0, *, cluster: str = "c", kind: str = "broker"
) -> dict[str, Any]:
    counts = dict.fromkeys(EFFECTS, 0) | {"offline": offline, "under_min_isr": under}
    return {"cluster_id": cluster, "kind": kind, "failed": name.split(" + ")} | counts


def result(call: Caller, name: str, rows: list[dict[str, Any]], **asked: Any) -> None:
    at = NOON + timedelta(hours=len(name))
    target = run_target(storage_path(f"{call.home}/{name}"), "exposure", at, "t")
    table = pa.Table.from_pylist([row | {"run_id": target.run_id} for row in rows], EXPOSURES.schema)
    append(target.root, EXPOSURES, lambda: table)
    clusters = {row["cluster_id"]: ["s"] for row in rows}
    commit(JobResult(target, "exposure", at, "0.1.0", {"clusters": clusters} | asked, {}))


def test_what_got_worse_stands_first_and_a_limit_is_an_exit_status(call: Caller) -> None:
    result(
        call,
        "old",
        [failure("1", 5), failure("2", 3, 4), failure("3", 2), failure("9", 1), failure("1 + 2", 7)],
    )
    result(
        call,
        "new",
        [
            failure("1", 5),
            failure("2", 3, 6),
            failure("3", 9),
            failure("b", 4, kind="rack"),
            failure("1 + 2", 90),
            failure("broker=1", 9, kind="what if"),
        ],
    )
    ended = call("ktriage", "pipeline", "compare", "old", "new")
    assert ended.status == 0, ended.err
    assert ended.out.startswith(
        "2 failures would take more partitions offline than before, 1 fewer;\n1 changed otherwise"
    )
    ended = call(
        "ktriage", "pipeline", "compare", "old", "new", "--max-more-offline", "4", "--output", "json"
    )
    found = json.loads(ended.out)
    assert ended.status == 1
    assert [
        (row["failed"], row["offline"]["before"], row["offline"]["after"]) for row in found["changed"]
    ] == [
        ("3", 2, 9),
        ("b", 0, 4),
        ("2", 3, 3),
        ("9", 1, 0),
    ]
    assert (found["same"], found["overLimit"]) == (1, 1)


def test_a_cluster_in_one_result_only_is_named_and_is_no_change(call: Caller) -> None:
    result(call, "old", [failure("1", 5), failure("1", 50, cluster="gone")])
    result(call, "new", [failure("1", 5), failure("1", 50, cluster="fresh")])
    ended = call("ktriage", "pipeline", "compare", "old", "new", "--max-more-offline", "0")
    assert ended.status == 0 and "0 failures would take more" in ended.out
    assert "only the result before has them: gone" in ended.err
    assert "only the result after has them: fresh" in ended.err


def test_results_that_count_differently_are_not_compared(call: Caller) -> None:
    result(call, "old", [failure("1", 5)])
    result(call, "new", [failure("1", 5)], what_if={"lose": [], "min_isr": 1})
    ended = call("ktriage", "pipeline", "compare", "old", "new")
    assert ended.status == 2 and len(ended.err.splitlines()) == 1
    assert "one counts the clusters as they are, the other as if min ISR of every topic were 1" in ended.err


def test_records_at_risk_have_a_limit_of_their_own_and_an_old_result_does_not_count_them(
    call: Caller,
) -> None:
    result(call, "old", [failure("1", 5), failure("2", 5) | {"acknowledged_at_risk": 1}])
    result(call, "new", [failure("1", 5) | {"acknowledged_at_risk": 4}, failure("2", 9)])
    words = ("ktriage", "pipeline", "compare", "old", "new", "--output", "json")
    ended = call(*words, "--max-more-at-risk", "3")
    found = json.loads(ended.out)
    assert (ended.status, found["overLimit"]) == (1, 1)
    assert [row["acknowledgedAtRisk"] for row in found["changed"]] == [
        {"before": 0, "after": 4},
        {"before": 1, "after": 0},
    ]
    assert call(*words, "--max-more-at-risk", "4").status == 0
    result(call, "older", [failure("1", 5) | {"acknowledged_at_risk": None}])
    ended = call("ktriage", "pipeline", "compare", "older", "new")
    assert ended.status == 0 and "records at risk are not compared: one of the results is of an" in ended.out
    ended = call("ktriage", "pipeline", "compare", "older", "new", "--max-more-at-risk", "0")
    assert (
        ended.status == 2 and "--max-more-at-risk: one of the results is of an earlier version" in ended.err
    )
