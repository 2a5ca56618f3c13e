"""The long run of the verdicts in parts: what a stopped run did is not done again, by the same code."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from benchmarks.soak import SoakOptions, verdicts
from testbed.histories.history_pool import histories_of

FIRST = 60_010
code_digest = cache(verdicts.code_digest)
"""It takes a process of its own."""


@pytest.fixture
def run_seeds(monkeypatch: pytest.MonkeyPatch) -> list[range]:
    """Small parts of short incidents; the ranges of seeds that were really run."""
    ran: list[range] = []

    def counted(seeds: range, *more: object, **options: object) -> object:
        ran.append(seeds)
        return histories_of(seeds, *more, **options)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(verdicts, "histories_of", counted)
    monkeypatch.setattr(verdicts, "PART", 2)
    monkeypatch.setattr(verdicts, "INCIDENT_SECONDS", 15)
    monkeypatch.setattr(verdicts, "code_digest", code_digest)
    return ran


@pytest.mark.long
def test_a_stopped_run_goes_on_with_the_parts_that_its_record_lacks(
    tmp_path: Path, run_seeds: list[range], capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "verdicts.jsonl"
    whole = SoakOptions(rounds=5, first=FIRST, jobs=1, record=record)
    assert verdicts.run(whole._replace(rounds=3)) == 0
    assert run_seeds == [range(FIRST, FIRST + 2), range(FIRST + 2, FIRST + 3)]
    # The process was ended while it wrote the last line.
    lines = record.read_text().splitlines(keepends=True)
    record.write_text(lines[0] + lines[1][:40] + "\n")
    run_seeds.clear()
    capsys.readouterr()
    assert verdicts.run(whole) == 0
    assert run_seeds == [range(FIRST + 2, FIRST + 4), range(FIRST + 4, FIRST + 5)]
    in_parts = capsys.readouterr().out
    run_seeds.clear()
    assert verdicts.run(whole._replace(record=None)) == 0
    assert len(run_seeds) == 3
    at_once = capsys.readouterr().out
    assert _counts(in_parts) == _counts(at_once)


def test_what_other_code_did_is_done_again(
    tmp_path: Path, run_seeds: list[range], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = SoakOptions(rounds=2, first=FIRST, jobs=1, record=tmp_path / "verdicts.jsonl")
    assert verdicts.run(options) == 0
    monkeypatch.setattr(verdicts, "code_digest", lambda _root: "of other code")
    assert verdicts.run(options) == 0
    assert run_seeds == [range(FIRST, FIRST + 2)] * 2


def test_a_failure_in_a_recorded_part_is_not_forgotten(tmp_path: Path, run_seeds: list[range]) -> None:
    record = tmp_path / "verdicts.jsonl"
    code = verdicts.code_digest(verdicts.ROOT)
    failed = verdicts.SoakPart(FIRST, FIRST + 2, code, failed=["a choice loses more; replay: …"])
    record.write_text(failed.line() + "\n")
    assert verdicts.run(SoakOptions(rounds=2, first=FIRST, jobs=1, record=record)) == 1
    assert not run_seeds


def _counts(printed: str) -> list[str]:
    """The lines with the counts, without the seconds."""
    return [line.split(" s: ")[-1] if " s: " in line else line for line in printed.splitlines()]
