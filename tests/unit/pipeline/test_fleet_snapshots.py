"""One collector for many clusters: one commit an interval, and no cluster holds the others up."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from deltalake import DeltaTable

from backends.base.answers import Partitions
from backends.base.errors import Unreachable
from backends.base.protocol import Backend
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.scenario.files import read
from console.jobs.pipeline.snapshot_fleet import Fleet, FleetRound
from console.jobs.pipeline.snapshot_series import SnapshotSettings
from pipeline.errors import PipelineError
from pipeline.snapshot.catalog import read_catalog
from pipeline.snapshot.observation import SnapshotKind
from pipeline.snapshot.state_sources import find
from pipeline.storage import StoragePath, storage_path
from pipeline.tables.schemas import OBSERVATIONS, PARTITION_STATES
from tests.pipeline.partition_histories import files_of
from tests.unit.pipeline.read_states import state_of
from tests.unit.pipeline.test_snapshot import Clock

SCENARIOS = ("stale-long-tail", "zone-power-loss", "disk-failure")


class Member(SimulatorBackend):
    """A cluster that can stop answering, or answer late."""

    silent = False
    waits_for: asyncio.Event | None = None

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        if self.silent:
            raise Unreachable("no broker answers")
        if self.waits_for is not None:
            await self.waits_for.wait()
        return await super().partitions(topics)


def members() -> dict[str, Member]:
    return {name: Member(read(name), 1) for name in SCENARIOS}


def collected(
    root: StoragePath, backends: dict[str, Member], work: Callable[[Fleet], Awaitable[None]]
) -> list[str]:
    """What was said for good."""
    said: list[str] = []
    tokens = (f"t{number}" for number in itertools.count())
    clock = Clock()

    async def run() -> None:
        asked: list[tuple[str, Backend]] = list(backends.items())
        fleet = Fleet(
            asked,
            lambda name, keys: SnapshotSettings(
                root, 5.0, clock, lambda: next(tokens), "0.1.0", asked=name, keys=keys
            ),
            root,
            said.append,
        )
        try:
            await work(fleet)
        finally:
            await fleet.close()

    asyncio.run(run())
    return said


def _versions(root: StoragePath) -> tuple[int, int]:
    return tuple(DeltaTable((root / one.name).path).version() for one in (PARTITION_STATES, OBSERVATIONS))  # type: ignore[return-value]


def test_an_interval_is_one_commit_and_one_file_however_many_clusters(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    rounds: list[FleetRound] = []

    async def twice(fleet: Fleet) -> None:
        for _ in range(2):
            rounds.append(await fleet.round(None))

    assert collected(root, members(), twice) == []
    assert [{one.kind for one in found.taken} for found in rounds] == [
        {SnapshotKind.FULL},
        {SnapshotKind.CHANGES},
    ]
    assert [len(found.taken) for found in rounds] == [3, 3] and not any(found.failed for found in rounds)
    # Version 0 makes a table; nothing changed in the second interval.
    assert _versions(root) == (1, 2)
    assert (len(files_of(root)), len(files_of(root, OBSERVATIONS))) == (1, 2)
    names = [f"simulated.{name}.1" for name in SCENARIOS]
    assert sorted(chain.full.cluster_id for chain in find([root]).chains) == sorted(names)
    assert all(state_of(root, name) for name in names)


def test_a_cluster_that_does_not_answer_is_recorded_beside_the_others(tmp_path: Path) -> None:
    root, backends = storage_path(str(tmp_path)), members()

    async def fails_once(fleet: Fleet) -> None:
        await fleet.round(None)
        backends["disk-failure"].silent = True
        found = await fleet.round(None)
        assert [(one.asked, one.failure) for one in found.failed] == [("disk-failure", "no broker answers")]
        assert len(found.taken) == 2
        backends["disk-failure"].silent = False
        kinds = {one.asked: one.kind for one in (await fleet.round(None)).taken}
        assert kinds["disk-failure"] is SnapshotKind.FULL and kinds["zone-power-loss"] is SnapshotKind.CHANGES

    collected(root, backends, fails_once)
    mine = read_catalog(root).clusters["simulated.disk-failure.1"]
    assert [one.kind.value for one in mine] == ["full", "failed", "full"]


def test_a_slow_cluster_is_in_a_later_commit_and_is_not_asked_twice(tmp_path: Path) -> None:
    root, backends = storage_path(str(tmp_path)), members()

    async def late(fleet: Fleet) -> None:
        slow = backends["zone-power-loss"]
        slow.waits_for = asyncio.Event()
        first = FleetRound((), ())
        while len(first.taken) < 2:
            first = await fleet.round(0.2)
        assert first.late == ("zone-power-loss",)
        slow.waits_for.set()
        second = await fleet.round(None)
        assert "zone-power-loss" in {one.asked for one in second.taken} and not second.late

    collected(root, backends, late)
    assert len(find([root]).chains) == 3


def test_what_cannot_be_written_is_told_and_the_next_snapshot_is_full_and_counts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = storage_path(str(tmp_path))

    async def full_disk(fleet: Fleet) -> None:
        await fleet.round(None)
        with monkeypatch.context() as patch:

            def fail(*_: object) -> None:
                raise PipelineError("lake: no space left")

            patch.setattr("console.jobs.pipeline.snapshot_fleet.append_snapshots", fail)
            lost = await fleet.round(None)
        assert lost.problem == "lake: no space left" and not lost.written
        again = await fleet.round(None)
        assert {(one.kind, one.missed) for one in again.taken} == {(SnapshotKind.FULL, 1)}

    collected(root, members(), full_disk)


def test_one_cluster_under_two_names_is_taken_once(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    twins = {"one": Member(read("stale-long-tail"), 1), "two": Member(read("stale-long-tail"), 1)}

    async def once(fleet: Fleet) -> None:
        assert len((await fleet.round(None)).taken) == 1
        assert fleet.names == ["one"]

    assert collected(root, twins, once) == ["two is left out from now on: it is the same cluster as one"]
