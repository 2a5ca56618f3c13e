"""``ktriage pipeline report`` writes one page of the newest results, and never over another file."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from pipeline.results import JobResult, commit, run_target
from pipeline.storage import storage_path
from tests.pipeline.survey_strategies import NOON
from tests.unit.cli.command_process import Caller
from tests.unit.pipeline.test_pipeline_report import SUMMARIES

JOBS = ("plan", "exposure", "fixes", "history")


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


def test_the_newest_result_of_each_job_is_on_the_page(call: Caller) -> None:
    for job in JOBS:
        asked, summary, _ = SUMMARIES[job]
        for day in (0, 1):
            at = NOON + timedelta(days=day)
            target = run_target(storage_path(f"{call.home}/results"), job, at, "t")
            commit(JobResult(target, job, at, "0.1.0", asked, summary))
    words = ("ktriage", "pipeline", "report", "results", "--out", "page.html")
    ended = call(*words)
    assert ended.status == 0 and ended.out == f"page.html: {', '.join(JOBS)}\n", ended.err
    page = (call.home / "page.html").read_text()
    # A line for each on the first page, and on the pages of clusters c and d; one of them could not be read.
    assert page.count("2026-02-01 12:00 UTC") == 2 * len(JOBS) + 2 and "2026-01-31 12:00" not in page
    again = call(*words)
    assert again.status == 2 and "page.html: it exists, and is never overwritten" in again.err
    assert (call.home / "page.html").read_text() == page


def test_without_a_result_there_is_no_page(call: Caller) -> None:
    ended = call("ktriage", "pipeline", "report", "results", "--out", "page.html")
    assert ended.status == 2 and "results: no finished result is here" in ended.err
    assert not (call.home / "page.html").exists()
