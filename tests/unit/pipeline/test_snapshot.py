"""A snapshot is there whole or not at all, and reads back as it was written."""

from __future__ import annotations

import asyncio
import json
import re
import tracemalloc
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.simulator.adapter import SimulatorBackend
from backends.simulator.scenario.files import read
from console.operations.history.snapshot_series import Series, Taking
from pipeline.errors import PipelineError
from pipeline.history.timeline import timeline
from pipeline.snapshot.catalog import Catalog
from pipeline.snapshot.fingerprints import Fingerprints
from pipeline.snapshot.manifest import MISSED, Manifest, SnapshotKind, from_json
from pipeline.snapshot.read_catalog import read_catalog
from pipeline.snapshot.read_chain import batches, keys, state
from pipeline.snapshot.retention import compact, keep_newest, remove, sweep
from pipeline.snapshot.snapshot_writer import SnapshotName, SnapshotWriter, snapshot_name
from pipeline.snapshot.survey_columns import batch_of
from pipeline.storage import StoragePath, storage_path
from recovery.plan.topic_marks import Mark
from tests.pipeline.partition_histories import Diary, partition
from tests.pipeline.survey_strategies import NOON, surveys, write
from tests.unit.pipeline.read_surveys import survey_of

SAMPLES = Path(__file__).parent / "samples"


@given(st.integers(0, 2**32))
def test_every_survey_reads_back_as_it_was_written(seed: int) -> None:
    told = surveys(seed, 40)
    batch = batch_of(told, {"topic-1": (Mark.COMPACTED,)})
    rows = batch.to_pylist()
    assert [survey_of(row) for row in rows] == told
    assert {tuple(row["marks"]) for row in rows if row["topic"] == "topic-1"} == {("compacted",)}


def test_a_writer_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    with (
        pytest.raises(KeyboardInterrupt),
        SnapshotWriter(root, SnapshotName("c", snapshot_name(NOON, "t"), NOON)) as writer,
    ):
        writer.partitions(batch_of(surveys(1, 10), {}))
        raise KeyboardInterrupt
    assert not list(root.walk())
    with pytest.raises(PipelineError, match="there are no snapshots here"):
        read_catalog(root)


def test_a_manifest_that_is_not_whole_is_no_snapshot(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", surveys(1, 10))
    late = write(root, "c", surveys(2, 10), NOON + timedelta(hours=1))
    file = next(f for f in (root / "manifests").walk() if late.snapshot in f.path)
    file.write(file.read()[:100])
    catalog = read_catalog(root)
    chain = catalog.chain("c")
    assert chain is not None and chain.newest.taken_at == NOON
    assert [f.name for f in catalog.unfinished] == [f"{late.snapshot}.json"]


def _rows(root: StoragePath, cluster_id: str = "c", at: datetime | None = None) -> dict[int, int]:
    chain = read_catalog(root).chain(cluster_id, at)
    assert chain is not None
    return {row["partition"]: row["leader"] for batch in state(chain) for row in batch.to_pylist()}


def test_changes_build_on_the_full_snapshot(tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [partition(0), partition(1)])
    diary.write(1, [partition(0, leader=-1)], kind=SnapshotKind.CHANGES)
    diary.write(2, [partition(2)], kind=SnapshotKind.CHANGES)
    assert _rows(diary.root) == {0: -1, 1: 1, 2: 1}
    assert _rows(diary.root, at=NOON + timedelta(seconds=90)) == {0: -1, 1: 1}
    assert _rows(diary.root, at=NOON) == {0: 1, 1: 1}


def test_compacting_changes_the_files_and_not_the_state(tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [partition(0), partition(1)])
    for minute in range(1, 5):
        diary.write(minute, [partition(minute % 2, leader=minute)], kind=SnapshotKind.CHANGES)
    before = _rows(diary.root)
    done = compact(read_catalog(diary.root), "x")
    assert (done.made, done.removed) == (1, 4)
    assert _rows(diary.root) == before
    manifests = read_catalog(diary.root).clusters["c"]
    assert [m.kind for m in manifests] == [SnapshotKind.FULL, SnapshotKind.FULL]
    assert manifests[-1].partitions == 2


def test_a_series_that_is_compacted_meanwhile_goes_on(tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [partition(0), partition(1)])
    for minute in (1, 2):
        diary.write(minute, [partition(0, leader=minute)], kind=SnapshotKind.CHANGES)
    compact(read_catalog(diary.root), "x")
    diary.write(3, [partition(1, leader=3)], kind=SnapshotKind.CHANGES)
    assert _rows(diary.root) == {0: 2, 1: 3}
    manifests = read_catalog(diary.root).clusters["c"]
    assert [moment.segment for moment in timeline("c", manifests).moments] == [0, 0, 0]
    # The one that took the place of its forerunner is the newest full one: what builds on it is kept.
    assert keep_newest(read_catalog(diary.root), 1, NOON).removed == 1
    assert _rows(diary.root) == {0: 2, 1: 3}


def test_keep_leaves_the_newest_full_ones_with_their_changes(tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    for hour in range(4):
        diary.write(hour * 60, [partition(0, leader=hour)])
        diary.write(hour * 60 + 1, [partition(1, leader=hour)], kind=SnapshotKind.CHANGES)
    assert keep_newest(read_catalog(diary.root), 2, NOON).removed == 4
    kept = read_catalog(diary.root).clusters["c"]
    assert [m.kind for m in kept] == [SnapshotKind.FULL, SnapshotKind.CHANGES] * 2
    named = {part.path for manifest in kept for part in manifest.parts}
    on_disk = {
        f.path.removeprefix(f"{diary.root.path}/") for f in diary.root.walk() if f.name.endswith("parquet")
    }
    assert on_disk == named


def test_what_a_dead_writer_left_is_swept_after_a_day_and_not_before(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", surveys(1, 5))
    name = SnapshotName("c", snapshot_name(NOON, "dead"), NOON)
    (root / name.directory("partitions") / "part-00000.parquet").write(b"PAR1")
    (root / "manifests" / "cluster_id=c" / f"date=2026-01-31/{name.snapshot}.json").write(b'{"form')
    assert sweep(read_catalog(root), NOON + timedelta(hours=1)).swept == 0
    assert sweep(read_catalog(root), NOON + timedelta(days=2)).swept == 2
    assert not read_catalog(root).unfinished
    assert _rows(root)


def test_only_what_differs_is_a_change_and_what_is_gone_is_told() -> None:
    prints = Fingerprints()
    assert prints.changed(batch_of([partition(0), partition(1), partition(2)], {})).num_rows == 3
    prints.commit()
    changed = prints.changed(batch_of([partition(0), partition(1, leader=2)], {}))
    assert keys(changed) == [("orders", 1)]
    gone = prints.gone().to_pylist()
    assert [(row["partition"], row["deleted"]) for row in gone] == [(2, True)]


class Clock:
    """A minute later each time it is read."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


def taken(root: StoragePath, scenario: str, *, snapshots: int = 1, batch: int = 10_000) -> None:
    async def take() -> None:
        backend = SimulatorBackend(read(scenario), 1)
        await backend.open()
        series = Series(backend, Taking(root, 5.0, Clock(), lambda: "t", "0.1.0", batch))
        for _ in range(snapshots):
            await series.changes()
        await backend.close()

    asyncio.run(take())


def test_the_next_snapshot_tells_of_those_that_failed_and_is_full(tmp_path: Path) -> None:
    async def take() -> list[Manifest]:
        backend = SimulatorBackend(read("stale-long-tail"), 1)
        await backend.open()
        here = storage_path(str(tmp_path / "lake"))
        series = Series(backend, Taking(here, 5.0, Clock(), lambda: "t", "0.1.0"))
        taken = [await series.changes(), await series.changes()]
        (tmp_path / "lake").rename(tmp_path / "away")
        (tmp_path / "lake").write_text("no directory")
        for _ in range(2):
            with pytest.raises(PipelineError):
                await series.changes()
        (tmp_path / "lake").unlink()
        (tmp_path / "away").rename(tmp_path / "lake")
        taken += [await series.changes(), await series.changes()]
        await backend.close()
        return taken

    taken = asyncio.run(take())
    kinds = [SnapshotKind.FULL, SnapshotKind.CHANGES, SnapshotKind.FULL, SnapshotKind.CHANGES]
    assert [manifest.kind for manifest in taken] == kinds
    assert [manifest.notes for manifest in taken] == [{}, {}, {MISSED: "2"}, {}]


def _with_another_collector(root: StoragePath, between: Callable[[Catalog], object]) -> list[Manifest]:
    """A series takes two snapshots, another collector takes one alone, something happens, the series goes on."""

    async def take() -> list[Manifest]:
        backend = SimulatorBackend(read("stale-long-tail"), 1)
        await backend.open()
        clock = Clock()
        running = Series(backend, Taking(root, 5.0, clock, lambda: "running", "0.1.0"))
        alone = Series(backend, Taking(root, 5.0, clock, lambda: "alone", "0.1.0"))
        taken = [await running.changes(), await running.changes(), await alone.full()]
        between(read_catalog(root))
        taken.append(await running.changes())
        await backend.close()
        return taken

    return asyncio.run(take())


def test_a_second_collector_that_keeps_one_snapshot_does_not_break_a_running_series(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    taken = _with_another_collector(root, lambda catalog: keep_newest(catalog, 1, NOON))
    assert [manifest.kind for manifest in taken] == ["full", "changes", "full", "changes"]
    catalog = read_catalog(root)
    (cluster_id,) = catalog.clusters
    chain = catalog.chain(cluster_id)
    assert chain is not None and catalog.cut_off(cluster_id) is None
    assert chain.manifests == (taken[0], taken[1], taken[3])
    # It stays as long as something may be based on it, and no longer.
    assert keep_newest(catalog, 1, NOON + timedelta(hours=3)).removed == 3


def test_a_series_whose_full_snapshot_was_removed_takes_a_full_one(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))

    def remove_all(catalog: Catalog) -> None:
        for manifests in catalog.clusters.values():
            for manifest in manifests:
                remove(root, manifest)

    taken = _with_another_collector(root, remove_all)
    assert taken[-1].kind is SnapshotKind.FULL and taken[-1].notes == {}
    assert _rows(root, taken[-1].cluster_id)


def test_a_scenario_is_a_cluster_like_any_other(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    taken(root, "disk-failure", snapshots=2, batch=3)
    first, second = read_catalog(root).clusters["simulated.disk-failure.1"]
    assert (first.kind, second.kind, second.previous) == (
        SnapshotKind.FULL,
        SnapshotKind.CHANGES,
        first.snapshot,
    )
    assert first.partitions == second.partitions == 14
    brokers = [row for batch in batches(root, first, "brokers") for row in batch.to_pylist()]
    assert any(d["error"] for row in brokers for d in row["log_dirs"] or ())
    (quorum,) = [row for batch in batches(root, first, "quorum") for row in batch.to_pylist()]
    assert len(quorum["voters"]) == 3


def test_memory_does_not_grow_with_the_cluster(tmp_path: Path) -> None:
    def peak(pieces: int) -> int:
        name = SnapshotName(f"c{pieces}", snapshot_name(NOON, "t"), NOON)
        tracemalloc.start()
        with SnapshotWriter(storage_path(str(tmp_path)), name) as writer:
            for start in range(pieces):
                writer.partitions(batch_of([partition(start * 500 + n) for n in range(500)], {}))
            writer.commit(NOON, "0.1.0")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(2)
    assert peak(20) < 2 * peak(4)


def test_every_schema_that_was_ever_written_stays_readable() -> None:
    """``samples/vN`` was written by the version that wrote schema N, and is never written again."""
    found = sorted(path.name for path in SAMPLES.iterdir())
    assert found == ["v1"]
    for name in found:
        root = storage_path(str(SAMPLES / name))
        catalog = read_catalog(root)
        told = json.loads((SAMPLES / name / "expected.json").read_text())
        for cluster_id, wanted in told.items():
            chain = catalog.chain(cluster_id)
            assert chain is not None
            rows = [survey_of(row) for batch in state(chain) for row in batch.to_pylist()]
            assert all(row.compacted is None for row in rows), "no part of a snapshot"
            assert all(replica.disk_read_ms is None for row in rows for replica in row.replicas)
            texts = (re.sub(r", (compacted|disk_read_ms)=None\)", ")", repr(row)) for row in rows)
            assert sorted(texts) == wanted


def test_a_manifest_is_told_from_other_files(tmp_path: Path) -> None:
    file = storage_path(str(tmp_path / "x.json"))
    file.write(b'{"format": "other"}')
    with pytest.raises(PipelineError, match="not a manifest"):
        from_json(file)


def test_a_cluster_whose_name_would_come_back_as_another_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    with pytest.raises(PipelineError, match=r"cluster ü#1: .* ASCII"):
        write(storage_path(str(tmp_path)), "ü#1", surveys(1, 10))
    assert not list(storage_path(str(tmp_path)).walk())
