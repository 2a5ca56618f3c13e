"""A snapshot is there whole or not at all, and reads back as it was written."""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from backends.base.answers import Partitions
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.scenario.files import read
from console.jobs.pipeline.snapshot_series import Series, SnapshotSettings
from pipeline.errors import PipelineError
from pipeline.history.history_sources import find_history
from pipeline.snapshot.catalog import read_catalog, snapshots
from pipeline.snapshot.observation import Observation, SnapshotKind
from pipeline.snapshot.snapshot_writer import SnapshotWriter, new_name
from pipeline.snapshot.state_sources import find
from pipeline.snapshot.survey_rows import Fingerprints, batch_of, keys, survey_of
from pipeline.snapshot.upkeep import keep_newest, merge_all, merge_recent
from pipeline.storage import StoragePath, storage_path
from pipeline.tables.delta_table import delete_rows, merge_files, newest_tier
from pipeline.tables.schemas import OBSERVATIONS, PARTITION_STATES
from recovery.compacted_logs import NOT_READ
from recovery.model import EpochSpan, Lineage, ReplicaLog, Survey, Unknown, Why
from recovery.plan.topic_marks import Mark
from tests.pipeline.broken_files import cut
from tests.pipeline.partition_histories import Diary, files_of, forget, minute_of, offline, partition
from tests.pipeline.survey_strategies import NOON, surveys, write
from tests.unit.pipeline.read_states import state_of


@given(st.integers(0, 2**32))
def test_every_survey_reads_back_as_it_was_written(seed: int) -> None:
    told = surveys(seed, 40)
    batch = batch_of(told, {"topic-1": (Mark.COMPACTED,)})
    rows = batch.to_pylist()
    # It is known that such logs are compacted, and not what they still hold.
    wanted = [one._replace(compacted=NOT_READ) if one.state.topic == "topic-1" else one for one in told]
    assert [survey_of(row) for row in rows] == wanted
    assert {tuple(row["marks"]) for row in rows if row["topic"] == "topic-1"} == {("compacted",)}


def test_what_was_written_is_read_from_the_tables(tmp_path: Path) -> None:
    root, told = storage_path(str(tmp_path)), surveys(3, 200)
    write(root, "c", told)
    found = {(row["topic"], row["partition"]): survey_of(row) for row in state_of(root)}
    assert found == {(one.state.topic, one.state.partition): one for one in told}


def test_a_writer_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    with pytest.raises(KeyboardInterrupt), SnapshotWriter(root, new_name("c", NOON, "t")) as writer:
        writer.partitions(batch_of(surveys(1, 10), {}))
        raise KeyboardInterrupt
    assert not list(root.walk())
    with pytest.raises(PipelineError, match="there are no snapshots here"):
        read_catalog(root)


def test_rows_of_a_writer_that_died_before_its_observation_do_not_count(tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [partition(0), partition(1)])
    dead = diary.write(1, [partition(0, leader=-1)], kind=SnapshotKind.CHANGES)
    forget(diary.root, dead)
    assert _leaders(diary.root) == {0: 1, 1: 1}


def _leaders(root: StoragePath, cluster_id: str = "c", at: datetime | None = None) -> dict[int, int]:
    return {row["partition"]: row["leader"] for row in state_of(root, cluster_id, at)}


def test_changes_build_on_the_full_snapshot(tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [partition(0), partition(1)])
    diary.write(1, [partition(0, leader=-1)], kind=SnapshotKind.CHANGES)
    diary.write(2, [partition(2)], kind=SnapshotKind.CHANGES)
    assert _leaders(diary.root) == {0: -1, 1: 1, 2: 1}
    assert _leaders(diary.root, at=NOON + timedelta(seconds=90)) == {0: -1, 1: 1}
    assert _leaders(diary.root, at=NOON) == {0: 1, 1: 1}


def test_merging_small_files_changes_the_files_and_not_the_state(tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [partition(0), partition(1)])
    for minute in range(1, 5):
        diary.write(minute, [partition(minute % 2, leader=minute)], kind=SnapshotKind.CHANGES)
    before = [_leaders(diary.root, at=minute_of(minute)) for minute in range(5)]
    assert len(files_of(diary.root)) == len(files_of(diary.root, OBSERVATIONS)) == 5
    assert merge_all(diary.root).merged == 10
    assert len(files_of(diary.root)) == len(files_of(diary.root, OBSERVATIONS)) == 1
    assert [_leaders(diary.root, at=minute_of(minute)) for minute in range(5)] == before
    # A running series goes on.
    diary.write(5, [partition(1, leader=9)], kind=SnapshotKind.CHANGES)
    assert _leaders(diary.root) == {0: 4, 1: 9}
    assert merge_all(diary.root).merged == 4


def test_a_series_merges_the_files_of_the_last_hour_and_those_of_the_day_before(tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)), series="s")

    def counts() -> list[list[int]]:
        """For each table the files of either day."""
        days = [
            [file.partition["day"].day for file in files_of(diary.root, definition)]
            for definition in (OBSERVATIONS, PARTITION_STATES)
        ]
        return [[mine.count(31), mine.count(1)] for mine in days]

    many = [partition(number) for number in range(9)]
    for minute in (600, 601, 602, 603):
        changes = minute > 600
        kind = SnapshotKind.CHANGES if changes else SnapshotKind.FULL
        diary.write(minute, [partition(0)] if changes else many, kind=kind)
    merge_recent(diary.root)
    # A full snapshot has more rows than the changes after it, and is not written again.
    assert counts() == [[1, 0], [2, 0]]
    diary.write(720, many)
    merge_recent(diary.root)
    assert counts() == [[1, 1], [1, 1]]
    assert _leaders(diary.root) == dict.fromkeys(range(9), 1)


def test_merging_each_hour_does_not_write_the_whole_day_again(tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)), series="s")
    written: list[set[str]] = []
    for hour in range(8):
        for minute in range(3):
            kind = SnapshotKind.CHANGES if minute else SnapshotKind.FULL
            diary.write(60 * hour + minute, [partition(0)], kind=kind)
        merge_recent(diary.root)
        written.append({file.place.path for file in files_of(diary.root, OBSERVATIONS)})
    kept = [len(now & before) for before, now in pairwise(written)]
    assert sum(count > 0 for count in kept) >= 4, "files of earlier hours stay as they are"
    assert max(map(len, written)) <= 4
    assert len(read_catalog(diary.root).clusters["c"]) == 24 and not find_history([diary.root]).refused
    assert [one.place.path for one in newest_tier(files_of(diary.root, OBSERVATIONS))]


def _days(root: StoragePath, count: int, **fields: str) -> Diary:
    """A full snapshot each twelve hours, and changes after it."""
    diary = Diary(root, **fields)
    for number in range(count):
        diary.write(number * 720, [partition(0, leader=number), partition(1)])
        diary.write(number * 720 + 1, [partition(1, leader=number)], kind=SnapshotKind.CHANGES)
    return diary


def test_keep_removes_the_days_without_any_of_the_newest_full_ones(tmp_path: Path) -> None:
    diary = _days(storage_path(str(tmp_path)), 5)
    _days(diary.root, 5, cluster_id="d")
    # Noon of one day, midnight and noon of the next two.
    assert keep_newest(diary.root, 2, minute_of(4 * 720), ["c"]) == {"c": 6}
    left = read_catalog(diary.root).clusters
    assert [one.day.day for one in left["c"]] == [2, 2, 2, 2] and len(left["d"]) == 10
    days = {(file.cluster_id, file.partition["day"].day) for file in files_of(diary.root)}
    assert days == {("c", 2), ("d", 31), ("d", 1), ("d", 2)}
    assert _leaders(diary.root) == {0: 4, 1: 4}
    assert keep_newest(diary.root, 2, minute_of(4 * 720), ["c"]) == {}


def test_what_is_merged_into_one_file_stays_the_state_of_each_cluster(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    for name in ("c", "d", "e"):
        _days(root, 3, cluster_id=name)
    before = {name: state_of(root, name) for name in "cde"}
    merge_all(root)
    assert len(files_of(root)) == 2 and {file.cluster_id for file in files_of(root)} == {None}
    assert {name: state_of(root, name) for name in "cde"} == before
    assert sorted(chain.full.cluster_id for chain in find([root]).chains) == ["c", "d", "e"]
    # Keeping rewrites the file that other clusters share.
    assert keep_newest(root, 1, minute_of(4 * 720), ["d"]) == {"d": 2}
    assert [one.day.day for one in read_catalog(root).clusters["d"]] == [1] * 4
    assert {name: state_of(root, name) for name in "cde"} == before
    assert not find_history([root]).refused


def test_rows_that_are_lost_of_one_cluster_refuse_that_cluster_and_no_other(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    for name in ("c", "d"):
        _days(root, 1, cluster_id=name)
    merge_all(root)
    delete_rows(root, PARTITION_STATES, ["cluster_id = 'c' AND partition = 0"])
    found = find([root])
    assert [chain.full.cluster_id for chain in found.chains] == ["d"]
    assert [(one.cluster_id, "are left in partition_states" in one.reason) for one in found.refused] == [
        ("c", True)
    ]
    assert {one.cluster_id for one in find_history([root]).refused} == {"c"}


def test_an_unreadable_file_of_observations_refuses_every_cluster_in_it(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    for name in ("c", "d"):
        _days(root, 1, cluster_id=name)
    merge_all(root)
    _days(root, 1, cluster_id="e")
    (torn,) = (file for file in files_of(root, OBSERVATIONS) if file.cluster_id is None)
    cut(Path(torn.place.path))
    found = find([root])
    assert [chain.full.cluster_id for chain in found.chains] == ["e"]
    assert [one.cluster_id for one in found.refused] == ["c", "d"]


def test_changes_after_midnight_are_in_the_day_of_their_full_snapshot(tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(719, [partition(0), partition(1)])
    diary.write(721, [partition(0, leader=2)], kind=SnapshotKind.CHANGES)
    assert {file.partition["day"].day for file in files_of(diary.root)} == {31}
    assert _leaders(diary.root) == {0: 2, 1: 1}


def test_a_log_that_moves_on_is_no_change_while_its_partition_has_a_leader() -> None:
    def written(survey: Survey, end: int) -> Survey:
        lineage = Lineage(2, (EpochSpan(2, 0, end),), 0)
        replicas = tuple(
            one._replace(log=ReplicaLog(4, end, 0, end, lineage, "/kafka", end)) for one in survey.replicas
        )
        return survey._replace(replicas=replicas)

    def changed(*surveys: Survey) -> list[tuple[str, int]]:
        found = keys(prints.changed(batch_of(surveys, {})))
        prints.commit()
        return found

    prints = Fingerprints()
    led, leaderless = partition(0), offline(1)
    assert changed(written(led, 100), written(leaderless, 100)) == [("orders", 0), ("orders", 1)]
    assert changed(written(led, 200), written(leaderless, 100)) == []
    assert changed(written(led, 300), written(leaderless, 101)) == [("orders", 1)]
    # What a failure would do depends on who answers, and on the log dir.
    silent = led._replace(
        replicas=(led.replicas[0]._replace(log=Unknown(Why.NOT_ANSWERED, "refused")), *led.replicas[1:])
    )
    assert changed(written(led, 300), written(leaderless, 101)) == []
    assert changed(silent, written(leaderless, 101)) == [("orders", 0)]


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
        series = Series(backend, SnapshotSettings(root, 5.0, Clock(), lambda: "t", "0.1.0", batch))
        for _ in range(snapshots):
            await series.changes()
        await backend.close()

    asyncio.run(take())


class SameIdOtherTopics(SimulatorBackend):
    """Another cluster that was formatted with the same cluster id."""

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        found = await super().partitions(topics)
        return replace(
            found, states=tuple(one._replace(topic_id=f"B{one.topic_id[1:]}") for one in found.states)
        )


class SomeTopicsUnseen(SameIdOtherTopics):
    """A caller that may not see every topic: those of the snapshots may be among the others."""

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        found = await super().partitions(topics)
        return replace(found, not_compared=Unknown(Why.NOT_ANSWERED, "broker 3 lists no log dirs"))


def test_the_snapshots_of_two_clusters_with_one_id_are_kept_apart(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    scenario = "stale-long-tail"
    taken(root, scenario)
    before = sorted(path.name for path in tmp_path.rglob("*"))

    async def opened(kind: type[SimulatorBackend]) -> None:
        series = Series(kind(read(scenario), 1), SnapshotSettings(root, 5.0, Clock(), lambda: "t", "0.1.0"))
        await series.open()

    asyncio.run(opened(SimulatorBackend))
    with pytest.raises(PipelineError, match="another cluster with the same id"):
        asyncio.run(opened(SameIdOtherTopics))
    asyncio.run(opened(SomeTopicsUnseen))
    assert sorted(path.name for path in tmp_path.rglob("*")) == before, "nothing was written"


def test_the_next_snapshot_tells_of_those_that_failed_and_is_full(tmp_path: Path) -> None:
    async def take() -> list[Observation]:
        backend = SimulatorBackend(read("stale-long-tail"), 1)
        await backend.open()
        here = storage_path(str(tmp_path / "lake"))
        series = Series(backend, SnapshotSettings(here, 5.0, Clock(), lambda: "t", "0.1.0"))
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
    assert [one.kind for one in taken] == kinds
    assert [one.missed for one in taken] == [0, 0, 2, 0]


def test_a_cluster_that_does_not_answer_is_an_observation_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = storage_path(str(tmp_path))

    async def take() -> None:
        backend = SimulatorBackend(read("stale-long-tail"), 1)
        await backend.open()
        series = Series(backend, SnapshotSettings(root, 5.0, Clock(), lambda: "t", "0.1.0"))
        await series.changes()
        with monkeypatch.context() as patch:
            patch.setattr(backend, "partitions", _silent)
            with pytest.raises(PipelineError, match="nobody answers"):
                await series.changes()
        assert (await series.changes()).missed == 0
        await backend.close()

    asyncio.run(take())
    (found,) = read_catalog(root).clusters.values()
    assert [(one.kind.value, one.failure) for one in found] == [
        ("full", ""),
        ("failed", "nobody answers"),
        ("full", ""),
    ]
    assert len({one.series for one in found}) == 1 and len(snapshots(found)) == 2


async def _silent() -> None:
    raise PipelineError("nobody answers")


def _with_another_collector(
    root: StoragePath, between: Callable[[str, datetime], object]
) -> list[Observation]:
    """A series takes two snapshots, another collector takes one alone, something happens, the series goes on."""

    async def take() -> list[Observation]:
        backend = SimulatorBackend(read("stale-long-tail"), 1)
        await backend.open()
        clock = Clock()
        running = Series(backend, SnapshotSettings(root, 5.0, clock, lambda: "running", "0.1.0"))
        alone = Series(backend, SnapshotSettings(root, 5.0, clock, lambda: "alone", "0.1.0"))
        taken = [await running.changes(), await running.changes(), await alone.full()]
        between(taken[0].cluster_id, clock.now)
        taken.append(await running.changes())
        await backend.close()
        return taken

    return asyncio.run(take())


def test_a_second_collector_that_keeps_one_snapshot_does_not_break_a_running_series(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    taken = _with_another_collector(root, lambda name, now: keep_newest(root, 1, now, [name]))
    assert [one.kind for one in taken] == ["full", "changes", "full", "changes"]
    catalog = read_catalog(root)
    (cluster_id,) = catalog.clusters
    chain = catalog.chain(cluster_id)
    assert chain is not None and catalog.cut_off(cluster_id) is None
    assert chain.observations == (taken[0], taken[1], taken[3])


def test_the_base_of_a_running_series_stays_as_long_as_something_may_build_on_it(tmp_path: Path) -> None:
    running = Diary(storage_path(str(tmp_path)), series="r")
    first = running.write(700, [partition(0)])
    running.write(730, [partition(0, leader=2)], kind=SnapshotKind.CHANGES)
    Diary(running.root).write(740, [partition(0)])
    assert keep_newest(running.root, 1, first.began + timedelta(minutes=100), ["c"]) == {}
    assert keep_newest(running.root, 1, first.began + timedelta(hours=3)) == {"c": 2}


def test_a_series_whose_full_snapshot_was_removed_takes_a_full_one(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))

    def remove_all(cluster_id: str, _now: datetime) -> None:
        for definition in (OBSERVATIONS, PARTITION_STATES):
            DeltaTable((root / definition.name).path).delete(f"cluster_id = '{cluster_id}'")

    taken = _with_another_collector(root, remove_all)
    assert taken[-1].kind is SnapshotKind.FULL and taken[-1].missed == 0
    assert _leaders(root, taken[-1].cluster_id)


@pytest.mark.long
def test_collectors_that_write_at_once_all_succeed_and_each_builds_on_its_own_base(tmp_path: Path) -> None:
    root, failed = storage_path(str(tmp_path)), []

    def collect(number: int) -> None:
        try:
            diary = Diary(root, "c" if number < 2 else f"c{number}", series=f"s{number}")
            # Names of two collectors of one cluster differ by their moment.
            diary.write(number / 100, [partition(0, leader=1), partition(1, leader=number)])
            for minute in range(1, 8):
                leader = partition(0, leader=10 * number + minute)
                diary.write(minute + number / 100, [leader], kind=SnapshotKind.CHANGES)
                merge_files(root, OBSERVATIONS, {"day": "2026-01-31"})
        except PipelineError as error:
            failed.append(error)

    threads = [threading.Thread(target=collect, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    clusters = read_catalog(root).clusters
    assert {name: len(found) for name, found in clusters.items()} == {"c": 16, "c2": 8, "c3": 8}
    # The newest observation is of the second collector, and so is all of the state.
    assert _leaders(root) == {0: 17, 1: 1}
    assert _leaders(root, at=minute_of(7.005)) == {0: 7, 1: 0}
    assert _leaders(root, "c3") == {0: 37, 1: 3}


def test_a_scenario_is_a_cluster_like_any_other(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    taken(root, "disk-failure", snapshots=2, batch=3)
    first, second = read_catalog(root).clusters["simulated.disk-failure.1"]
    assert (first.kind, second.kind, second.previous, second.base) == (
        SnapshotKind.FULL,
        SnapshotKind.CHANGES,
        first.snapshot,
        first.snapshot,
    )
    assert first.partitions == second.partitions == 14
    rows = DeltaTable((root / OBSERVATIONS.name).path).to_pyarrow_dataset().to_table().to_pylist()
    assert all(any(d["error"] for one in row["brokers"] for d in one["log_dirs"] or ()) for row in rows)
    assert [len(row["quorum"]["voters"]) for row in rows] == [3, 3]


@pytest.mark.long
def test_memory_does_not_grow_with_the_cluster(tmp_path: Path) -> None:
    def peak(pieces: int) -> int:
        tracemalloc.start()
        with SnapshotWriter(storage_path(str(tmp_path)), new_name(f"c{pieces}", NOON, "t")) as writer:
            for start in range(pieces):
                writer.partitions(batch_of([partition(start * 500 + n) for n in range(500)], {}))
            writer.commit(NOON, "0.1.0")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(2)
    assert peak(20) < 2 * peak(4)


def test_a_cluster_whose_name_would_come_back_as_another_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    for name in ("ü#1", "a%20b"):
        with pytest.raises(PipelineError, match=f"cluster {name}: .* ASCII"):
            write(storage_path(str(tmp_path)), name, surveys(1, 10))
    assert not list(storage_path(str(tmp_path)).walk())
