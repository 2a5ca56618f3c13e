"""A reset deletes a simulation's own state, and never anything else."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from backends.simulator.scenario.files import read
from backends.simulator.session.session_store import SessionStore
from backends.simulator.session.state_file import StateError
from tests.unit.simulator.operators import backend

NAME = "stale-long-tail"


async def _kept(state: Path, name: str = NAME, seed: int = 1) -> None:
    cluster = backend(name, state, seed=seed)
    await cluster.open()
    await cluster.close()


def _left(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("content", ["buy milk", "", "{}", '{"schema": "ktriage.plan/1"}', "[" * 100_000])
def test_a_file_that_is_no_state_stays_and_nothing_is_put_beside_it(tmp_path: Path, content: str) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text(content)
    with pytest.raises(StateError, match="not a simulation's state"):
        SessionStore(read(NAME), 1, notes).reset()
    assert notes.read_text() == content
    assert _left(tmp_path) == ["notes.txt"]


async def test_the_state_of_another_rehearsal_stays(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    await _kept(state, "last-replica-standing", 4)
    before = state.read_bytes()
    for name, seed in ((NAME, 4), ("last-replica-standing", 1)):
        with pytest.raises(StateError, match="the state of last-replica-standing, seed 4, not of"):
            SessionStore(read(name), seed, state).reset()
    assert state.read_bytes() == before


def test_a_directory_gets_one_line(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="not a file"):
        SessionStore(read(NAME), 1, tmp_path).reset()


@pytest.mark.parametrize(
    "change", [{"scenario": "as it was"}, {"format": 1}, {"history": "of another version"}]
)
async def test_the_advice_names_the_file_and_following_it_starts_over(
    tmp_path: Path, change: dict[str, object]
) -> None:
    state = tmp_path / "my state.json"
    await _kept(state)
    state.write_text(json.dumps({**json.loads(state.read_text()), **change}))
    with pytest.raises(StateError) as raised:
        await _kept(state)
    words = shlex.split(str(raised.value).partition("start over with: ")[2])
    assert words == ["ktriage", "simulate", "reset", NAME, "--seed", "1", "--state", str(state)]
    assert SessionStore(read(NAME), 1, state).reset()
    assert _left(tmp_path) == []
    await _kept(state)
