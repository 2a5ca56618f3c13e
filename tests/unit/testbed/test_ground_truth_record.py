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
    counts = PromiseCounts(7, 3, 1, Counter(none=4, open=3), Counter({"records kept": 2}))
    result = IncidentResult(
        3, ["kill [1]"], ["s3-0: loses"], ["1: told"], counts, Counter(elect=2), 9, 8, 7, 1, 31.5
    )
    path = tmp_path / "incidents.jsonl"
    assert recorded(path) == {}
    path.write_text(f"{result.line()}\n{result.line()[:50]}")
    assert recorded(path) == {3: result}
