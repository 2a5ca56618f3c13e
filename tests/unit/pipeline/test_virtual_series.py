"""A series of snapshots of a simulation: its time goes by at once, so somebody has to say where it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from backends.base.answers import Partitions
from backends.base.errors import Unreachable
from backends.simulator.adapter import SimulatorBackend
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


def test_a_series_of_which_one_fails_does_not_end_as_if_all_were_there(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = SimulatorBackend.partitions
    asked: list[object] = []

    async def once_silent(backend: SimulatorBackend, *of: Any) -> Partitions:
        asked.append(backend)
        if len(asked) == 2:
            raise Unreachable("no broker answers")
        return await answered(backend, *of)

    monkeypatch.setattr(SimulatorBackend, "partitions", once_silent)
    series = ("--every", "60s", "--count", "3")
    ended = call("ktriage", "snapshot", "--simulate", "stale-long-tail", "--out", "lake", *series)
    assert ended.status == 1 and "no snapshot at" in ended.err and "no broker answers" in ended.err
    listed = call("ktriage", "snapshot", "list", "--out", "lake")
    assert [line.split(": ")[1].split(",")[0] for line in listed.out.splitlines()[1:]] == [
        "full",
        "failed of stale-long-tail",
        "full",
    ]
