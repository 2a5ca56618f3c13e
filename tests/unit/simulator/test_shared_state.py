"""A simulation that a console has open can be read from a second terminal, and changed by nobody else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import Mock

import pytest

from backends.base.errors import BackendError
from backends.simulator.adapter import SimulatorBackend
from console.simulator_backend import scenario
from tests.unit.cli.command_process import invoke

NAME = "last-replica-standing"


async def test_a_second_command_reads_what_was_saved_and_writes_nothing(tmp_path: Path) -> None:
    state, told = tmp_path / "state.json", []
    console = SimulatorBackend(scenario(NAME), 1, state)
    second = SimulatorBackend(scenario(NAME), 1, state, lambda: told.append("shared"))
    await console.open()
    await console.partitions()
    saved = state.read_bytes()
    try:
        assert (await second.open()).cluster_id == console.cluster_id
        found = await second.partitions()
        assert sum(one.offline for one in found.states) == 1
        assert told == ["shared"]
        assert state.read_bytes() == saved, "the console's state is the console's"
        with pytest.raises(BackendError, match="another command is using this simulation"):
            await second.elect(True, [found.states[0].tp], Mock())
    finally:
        await second.close()
        await console.close()


async def test_without_being_told_so_a_second_command_is_refused(tmp_path: Path) -> None:
    console = SimulatorBackend(scenario(NAME), 1, tmp_path / "state.json")
    await console.open()
    try:
        with pytest.raises(BackendError, match="another command is using this simulation"):
            await SimulatorBackend(scenario(NAME), 1, tmp_path / "state.json").open()
    finally:
        await console.close()


@pytest.mark.parametrize(
    "words", [("status",), ("quorum", "status"), ("quorum", "replication"), ("timeline",), ("handover",)]
)
async def test_every_command_that_only_reads_runs_beside_an_open_console(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    state = tmp_path / "state.json"
    console = SimulatorBackend(scenario(NAME), 1, state)
    await console.open()
    await console.partitions()
    try:
        line = (*words, "--simulate", NAME, "--state", str(state))
        ended = await asyncio.to_thread(invoke, tmp_path, "ktriage", *line)
    finally:
        await console.close()
    assert "this is its last saved state" in ended.err, ended
    assert "another command is using this simulation" not in ended.err + ended.out
