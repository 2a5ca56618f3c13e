"""The record of ground-truth incidents: what a run that goes on takes from it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from benchmarks.ground_truth.incident import IncidentResult
from benchmarks.ground_truth.promises import PromiseCounts
from benchmarks.soak.ground_truth import recorded


def test_a_run_takes_finished_incidents_from_its_record_and_drops_a_line_that_was_cut_off(
    tmp_path: Path,
) -> None:
    counts = PromiseCounts(
        7, 3, 1, 5, Counter({"log: none": 4, "log: open": 3}), Counter({"records kept": 2})
    )
    result = IncidentResult(
        3,
        ["kill [1]"],
        kafka="4.3.1, ELR on",
        incidents=2,
        broken=["s3-0: loses"],
        details=["1: told"],
        counts=counts,
        decisions=Counter(elect=2),
        offline=9,
        seconds=31.5,
    )
    path = tmp_path / "incidents.jsonl"
    assert recorded(path) == {}
    path.write_text(f"{result.line()}\n{result.line()[:50]}")
    assert recorded(path) == {3: result}
