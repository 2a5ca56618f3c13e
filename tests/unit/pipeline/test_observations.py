"""Each time that a cluster is asked is an observation: also in vain, and whatever the collector's clock says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from backends.simulator.adapter import SimulatorBackend
from backends.simulator.scenario.files import read
from console.jobs.pipeline.snapshot_series import Series, SnapshotSettings
from pipeline.errors import PipelineError
from pipeline.history.timeline import timeline
from pipeline.snapshot.catalog import read_catalog
from pipeline.snapshot.observation import UNKNOWN_CLUSTER, Observation, SnapshotKind
from pipeline.snapshot.state_sources import find
from pipeline.storage import StoragePath, storage_path
from tests.pipeline.survey_strategies import NOON
from tests.unit.pipeline.test_snapshot import Clock


async def _silent() -> None:
    raise PipelineError("nobody answers")


def _asked(root: StoragePath, *silent: str, clock: Callable[[], datetime]) -> None:
    """A new process asks the cluster once; those calls of the backend are not answered."""

    async def ask() -> None:
        backend = SimulatorBackend(read("stale-long-tail"), 1)
        series = Series(backend, SnapshotSettings(root, 5.0, clock, lambda: "t", "0.1.0", asked="production"))
        with pytest.MonkeyPatch.context() as patch:
            for name in silent:
                patch.setattr(backend, name, _silent)
            try:
                await series.open()
                await series.changes()
            except PipelineError:
                assert silent
        await backend.close()

    asyncio.run(ask())


@pytest.mark.parametrize("silent", ["open", "cluster", "partitions"])
def test_an_outage_that_a_new_process_meets_is_an_observation_of_the_cluster(
    tmp_path: Path, silent: str
) -> None:
    root, clock = storage_path(str(tmp_path)), Clock()
    _asked(root, clock=clock)
    _asked(root, silent, clock=clock)
    _asked(root, clock=clock)
    ((cluster_id, found),) = read_catalog(root).clusters.items()
    assert cluster_id == "simulated.stale-long-tail.1"
    assert [(one.kind.value, one.failure, one.asked) for one in found] == [
        ("full", "", "production"),
        ("failed", "nobody answers", "production"),
        ("full", "", "production"),
    ]
    # Nobody knows how it was in between.
    assert timeline(cluster_id, found).gaps == 1


def test_a_cluster_that_has_never_answered_is_an_observation_that_no_job_takes_for_a_cluster(
    tmp_path: Path,
) -> None:
    root, clock = storage_path(str(tmp_path)), Clock()
    _asked(root, "open", clock=clock)
    ((cluster_id, (found,)),) = read_catalog(root).clusters.items()
    assert (cluster_id, found.asked, found.failure) == (UNKNOWN_CLUSTER, "production", "nobody answers")
    _asked(root, "partitions", clock=clock)
    with pytest.raises(PipelineError, match="it has no snapshot: reading it failed"):
        find([root])
    _asked(root, clock=clock)
    sources = find([root])
    assert [one.chain.full.cluster_id for one in sources.clusters] == ["simulated.stale-long-tail.1"]
    assert sources.refused == ()


class ClockSetBack(Clock):
    """At its third minute it is set back by an hour."""

    def __call__(self) -> datetime:
        now = super().__call__()
        if self.now == NOON + timedelta(minutes=7):
            self.now -= timedelta(hours=1)
        return now


@pytest.mark.parametrize("process", ["the same", "a new one"])
def test_a_clock_that_is_set_back_hides_no_newer_state(tmp_path: Path, process: str) -> None:
    root, clock = storage_path(str(tmp_path)), ClockSetBack()

    async def take() -> list[Observation]:
        backend = SimulatorBackend(read("stale-long-tail"), 1)
        await backend.open()
        taking = SnapshotSettings(root, 5.0, clock, lambda: "t", "0.1.0")
        series, taken = Series(backend, taking), []
        for _ in range(6):
            if process != "the same":
                series = Series(backend, taking)
            taken.append(await series.changes())
        await backend.close()
        return taken

    taken = asyncio.run(take())
    catalog = read_catalog(root)
    (cluster_id,) = catalog.clusters
    assert list(catalog.clusters[cluster_id]) == taken, "in the order in which they were taken"
    assert [one.snapshot for one in taken] == sorted(one.snapshot for one in taken)
    newest = catalog.chain(cluster_id)
    assert newest is not None and newest.newest == taken[-1]
    behind = [one for one in taken if one.clock_behind_ms > 3_000_000]
    assert behind and taken[0].clock_behind_ms == 0
    # Times that were moved on are no durations.
    assert timeline(cluster_id, taken).gaps >= len(behind)


def test_a_series_whose_clock_is_set_back_takes_a_full_snapshot(tmp_path: Path) -> None:
    root, clock = storage_path(str(tmp_path)), Clock()

    async def take() -> list[bool]:
        backend = SimulatorBackend(read("stale-long-tail"), 1)
        await backend.open()
        series = Series(backend, SnapshotSettings(root, 5.0, clock, lambda: "t", "0.1.0"))
        asked = [series.needs_full]
        await series.changes()
        asked.append(series.needs_full)
        clock.now -= timedelta(hours=2)
        asked.append(series.needs_full)
        clock.now += timedelta(hours=4)
        asked.append(series.needs_full)
        await backend.close()
        return asked

    assert asyncio.run(take()) == [True, False, True, True]


def test_a_lake_that_cannot_be_read_before_a_snapshot_is_counted_as_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = storage_path(str(tmp_path))

    async def take() -> list[Observation]:
        backend = SimulatorBackend(read("stale-long-tail"), 1)
        await backend.open()
        series = Series(backend, SnapshotSettings(root, 5.0, Clock(), lambda: "t", "0.1.0"))
        await series.changes()
        (tmp_path / "observations" / "_delta_log").rename(tmp_path / "away")
        with pytest.raises(PipelineError, match="is gone"):
            await series.changes()
        (tmp_path / "away").rename(tmp_path / "observations" / "_delta_log")
        taken = [await series.changes()]
        await backend.close()
        return taken

    (taken,) = asyncio.run(take())
    assert (taken.kind, taken.missed) == (SnapshotKind.FULL, 1)
