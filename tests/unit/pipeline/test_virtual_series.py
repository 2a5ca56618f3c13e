"""A series of snapshots of a simulation: its time goes by at once, so somebody has to say where it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.command_process import Caller


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


@pytest.mark.timeout(60)
def test_a_series_of_a_simulation_needs_its_end(call: Caller) -> None:
    ended = call("ktriage", "snapshot", "--simulate", "stale-long-tail", "--out", "lake", "--every", "60s")
    assert ended.status == 2 and "--count" in ended.err and len(ended.err.splitlines()) == 1
    assert not (call.home / "lake").exists()


def test_with_its_end_it_is_taken(call: Caller) -> None:
    series = ("--every", "60s", "--count", "2")
    ended = call("ktriage", "snapshot", "--simulate", "stale-long-tail", "--out", "lake", *series)
    assert ended.status == 0, ended.err
    assert len(ended.out.splitlines()) == 2
