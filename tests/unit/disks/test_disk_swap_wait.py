"""What is said of partitions that do not come back, while a disk is replaced and after it was."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest

from console import backends
from console.cli.base.run import Run
from console.jobs.disks import disk_swap as operations_swap
from console.jobs.disks import log_dir_views
from console.jobs.disks.disk_swap import read_log_dirs
from console.jobs.disks.log_dir_views import _waited
from console.output.screen import Screen
from console.program import Program
from console.reading import leaderless_partitions
from console.reading.leaderless_partitions import SECONDS, Leaderless, leaderless_lines
from console.signals import StopRequest, Supervisor
from console.target import resolve
from recovery.disks.values import LogDirPlace
from tests.unit.disks.clusters import B, state


def program(err: io.StringIO) -> Program:
    return Program("ktriage", (), Screen(lambda: 0.0, io.StringIO(), err), Supervisor(lambda _signum: ""))


def said(*left: Any) -> str:
    err = io.StringIO()
    _waited(
        Run(program(err), resolve("kafka-1:9092", None, None, None), json=False),
        LogDirPlace(1, B),
        list(left),
    )
    return err.getvalue()


def test_no_election_is_offered_where_no_other_copy_is() -> None:
    alone = state(0, (1,), leader=-1, isr=(1,))
    told = said(alone)
    assert "no other replica has a copy" in told
    assert "--strategy" not in told
    assert "--strategy aggressive" in said(state(1, leader=-1, isr=(1,)), alone)


def test_who_has_no_leader_is_told_once_it_is_known_and_again_when_they_are_others() -> None:
    seen, lost, led = Leaderless(), state(0, leader=-1, isr=()), state(1, leader=2, isr=(2,))
    assert seen.news([lost, led], 0.0, back=False) is None, "an election may be under way"
    assert seen.news([lost, led], SECONDS, back=False) == [lost]
    assert seen.news([lost, led], SECONDS + 1, back=False) is None, "said already"
    other = state(2, leader=-1, isr=())
    assert seen.news([lost, other], SECONDS + 2, back=False) is None
    assert seen.news([lost, other], 2 * SECONDS + 2, back=False) == [lost, other]
    assert seen.news([lost, other], 2 * SECONDS + 3, back=True) == [lost, other], (
        "its empty disk is there now"
    )
    assert seen.news([led], 2 * SECONDS + 4, back=True) == []
    assert seen.news([lost], 2 * SECONDS + 5, back=True) is None, "it has only just lost its leader once more"


def test_what_the_empty_disk_would_lead_is_to_be_elected_before_and_the_rest_when_its_leader_is_gone() -> (
    None
):
    lost, other, alone = (state(n, leader=-1, isr=()) for n in range(3))
    alone = alone._replace(replicas=(1,))
    empty, gone, none = leaderless_lines([lost, other, alone], LogDirPlace(1, B), {lost.tp})
    assert str(lost.tp) in empty
    assert "1 would be elected with its empty disk" in empty
    assert f"{other.tp}: bring back a broker that may lead" in gone
    assert f"{alone.tp}: no other replica has a copy" in none


class Heard(io.StringIO):
    """Stops the run as soon as it says what it is to say."""

    def __init__(self, stop: StopRequest) -> None:
        super().__init__()
        self._stop = stop

    def write(self, text: str) -> int:
        if "partitions have no leader" in text:
            self._stop.signum = 15
        return super().write(text)


def test_while_the_disk_is_waited_for_it_is_said_who_has_no_leader(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(leaderless_partitions, "SECONDS", 0.0)
    monkeypatch.setattr(log_dir_views, "POLL", 0.01)
    stop = StopRequest()
    err = Heard(stop)
    run = Run(program(err), resolve(None, None, "disk-failure", None), json=False)
    place = LogDirPlace(2, "/kafka/1")

    async def wait() -> None:
        backend = backends.backend(run.target, run.screen.say)
        disks = await read_log_dirs(backend)
        held = (await operations_swap.disk_swap(backend, disks, place)).replicas
        async with asyncio.timeout(60):
            await log_dir_views._wait(run, backend, place, held, stop)
        await backend.close()

    asyncio.run(wait())
    lines = [line for line in err.getvalue().splitlines() if "have no leader" in line]
    assert len(lines) == len(set(lines)) == 2
    assert "archive-1, archive-3: 2 would be elected with its empty disk" in lines[0]
    assert "sessions-1, sessions-3: no other replica has a copy" in lines[1]
