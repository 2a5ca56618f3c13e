"""What tests leave out in ``make test`` runs in ``make soak``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.soak import SoakOptions
from benchmarks.soak import repetitions as soak
from tests.repetitions import SOAK, repetitions

LEAVES_OUT = re.compile(r"\b(repetitions|soaking)\(|^@given\(", re.MULTILINE)
HERE = Path(__file__)


def test_make_soak_runs_every_test_that_leaves_something_out() -> None:
    tests = (path for path in HERE.parents[2].rglob("test_*.py") if path != HERE)
    leaving = {path.relative_to(HERE.parents[3]) for path in tests if LEAVES_OUT.search(path.read_text())}
    assert leaving
    assert {Path(name) for name in soak.files()} - {HERE.relative_to(HERE.parents[3])} == leaving


@pytest.mark.long
def test_in_make_soak_nothing_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(SOAK, raising=False)
    assert repetitions(2, 90) == 2
    whole = tmp_path / "test_whole.py"
    whole.write_text(
        "from tests.repetitions import repetitions\ndef test_it():\n    assert repetitions(2, 90) == 90\n"
    )
    monkeypatch.setattr(soak, "files", lambda: [str(whole)])
    assert soak.run(SoakOptions()) == 0
    whole.write_text("def test_it():\n    assert False\n")
    assert soak.run(SoakOptions()) == 1
