"""Commands in this process, with settings and records in a directory of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.jobs.elect import revert_orders
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


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """``resume`` reads again at once."""
    monkeypatch.setattr(revert_orders, "READ_PAUSE", 0.001)


class SteadyTime:
    """Stands for the clock of ``resume`` while it waits: at each look ``STEP`` seconds have passed."""

    STEP = 2.0

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += self.STEP
        return self.seconds


@pytest.fixture
def short_doubt(monkeypatch: pytest.MonkeyPatch) -> SteadyTime:
    """A request without an answer is dead after some dozens of looks at the clock."""
    steady = SteadyTime()
    monkeypatch.setattr(revert_orders, "time", steady)
    return steady
