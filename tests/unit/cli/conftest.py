"""Commands in this process, with settings and records in a directory of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.command_process import Caller
from tests.unit.cli.stale_long_tail import AGREED, TAIL


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


@pytest.fixture
def planned(call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Caller:
    """A plan that elects broker 2 and cuts off 500 records of broker 1."""
    monkeypatch.chdir(tmp_path)
    assert call("ktriage", "plan", "--strategy", "aggressive", "plan.json", *TAIL).status == 0
    return call


@pytest.fixture
def elected(planned: Caller) -> Caller:
    assert planned("ktriage", "apply", "plan.json", "--rescue", "saved", *AGREED, *TAIL).status == 0
    return planned
