"""A long run is not replayed twice: what is gone on from is the same run, or it is not gone on from."""

from __future__ import annotations

import asyncio
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from backends.base.answers import Outcome
from backends.simulator.scenario.build import Scenario
from backends.simulator.scenario.files import names, read
from backends.simulator.session import checkpoint, session_store
from backends.simulator.simulation import Simulation
from tests.unit.simulator.operators import backend, chosen, elect, survey

SMALL = [name for name in names() if name != "partitions-200000"]


@pytest.mark.long
@pytest.mark.parametrize("name", SMALL)
def test_a_run_goes_on_from_its_checkpoint_as_if_it_had_never_stopped(name: str, tmp_path: Path) -> None:
    scenario = read(name)
    run = Simulation(scenario, 1)
    run.advance_to(scenario.operator_at)
    checkpoint.write(tmp_path / "run", {}, run)
    again = checkpoint.load(tmp_path / "run")
    assert again is not None
    for one in (run, again):
        one.advance_to(scenario.operator_at + 20_000_000)
    assert again.world.history.digest() == run.world.history.digest()
    assert again.world.history.lines == run.world.history.lines


@pytest.fixture(autouse=True)
def checkpoints(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    return home / "ktriage" / "checkpoints"


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every run is worth a checkpoint; returns the steps of each run that began at nothing."""
    monkeypatch.setattr(session_store, "WORTH_KEEPING", 1)
    begun: list[int] = []

    begin = Simulation.__init__

    def counted(run: Simulation, scenario: Scenario, seed: int) -> None:
        begun.append(seed)
        begin(run, scenario, seed)

    monkeypatch.setattr(Simulation, "__init__", counted)
    return begun


async def test_commands_go_on_from_the_last_one_and_what_was_elected_lasts(
    tmp_path: Path, always: list[int]
) -> None:
    state = tmp_path / "state.json"
    for step in range(4):
        cluster = backend("zone-power-loss", state)
        await cluster.open()
        rows = chosen(await survey(cluster))
        if step == 1:
            assert {election.outcome for election in await elect(cluster, rows)} == {Outcome.ELECTED}
        await cluster.advance(5)
        assert (cluster.simulation.offline() == ()) == (step >= 1)
        await cluster.close()
    assert always == [1]


async def test_a_checkpoint_of_something_else_or_a_broken_one_is_left_alone(
    tmp_path: Path, always: list[int]
) -> None:
    state = tmp_path / "state.json"

    async def digest() -> str:
        cluster = backend("stale-long-tail", state)
        await cluster.open()
        found = cluster.simulation.world.history.events_digest()
        await cluster.close()
        return found

    wanted = await digest()
    assert await digest() == wanted and always == [1]
    held = checkpoint.place(state)
    assert held is not None
    whole = held.read_bytes()
    head, _, body = whole.partition(b"\n")
    other = head.replace(b'"seed": 1', b'"seed": 2')
    assert other != head
    for number, broken in enumerate(
        (whole[:-100], b"", b"nothing\n", other + b"\n" + body, head + b"\n"), start=2
    ):
        held.write_bytes(broken)
        assert await digest() == wanted
        assert len(always) == number, broken[:50]


def _left(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def test_after_a_reset_nothing_is_left_and_the_operator_comes_again(
    tmp_path: Path, checkpoints: Path, always: list[int]
) -> None:
    state = tmp_path / "state.json"
    for _ in range(2):
        cluster = backend("last-replica-standing", state)
        await cluster.open()
        assert cluster.simulation.now >= read("last-replica-standing").operator_at
        assert cluster.simulation.offline()
        await cluster.close()
        assert session_store.SessionStore(read("last-replica-standing"), 1, state).reset()
        assert _left(tmp_path) == [] and _left(checkpoints) == []
    assert always == [1, 1]


class _Malicious:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path(os.environ["RAN"]),)


@pytest.mark.parametrize("where", ["beside the state", "in a directory that others can write"])
def test_a_checkpoint_that_another_may_have_written_is_never_read(
    tmp_path: Path, checkpoints: Path, always: list[int], monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    ran, state = tmp_path / "ran", tmp_path / "state.json"
    monkeypatch.setenv("RAN", str(ran))

    async def command() -> None:
        cluster = backend("last-replica-standing", state)
        await cluster.open()
        await cluster.close()

    asyncio.run(command())
    (own,) = checkpoints.iterdir()
    head = own.read_bytes().partition(b"\n")[0]
    foreign = head + b"\n" + pickle.dumps(_Malicious())
    assert checkpoint.load(_written(tmp_path / "any", foreign)) is None and ran.exists()  # it does run code
    ran.unlink()
    if where == "beside the state":
        own.unlink()
        _written(state.with_name("state.json.checkpoint"), foreign)
    else:
        _written(own, foreign)
        checkpoints.chmod(0o777)
    asyncio.run(command())
    assert not ran.exists()
    assert always == [1, 1]


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_only_the_newest_checkpoints_are_kept(tmp_path: Path) -> None:
    for number in range(checkpoint.MOST_CHECKPOINTS + 3):
        os.utime(_written(tmp_path / f"{number:02}", b""), (number, number))
    checkpoint.delete_old(tmp_path)
    assert _left(tmp_path) == [f"{number:02}" for number in range(3, checkpoint.MOST_CHECKPOINTS + 3)]


def test_a_full_disk_costs_the_checkpoint_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_self: Path, _target: Path) -> None:
        raise OSError("no space left on device")

    run = Simulation(read("last-replica-standing"), 1)
    old = tmp_path / "run"
    old.write_bytes(b"of an earlier run")
    monkeypatch.setattr(Path, "replace", full)
    checkpoint.write(old, {}, run)
    assert list(tmp_path.iterdir()) == []
    run.advance_to(1_000_000)
