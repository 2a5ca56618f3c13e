"""A history that continues an earlier run says what reading every snapshot says."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.history import history_job
from pipeline.history.earlier_run import TABLES
from pipeline.history.history_sources import HistorySources, find_history
from pipeline.results import JobResult, commit, run_target
from pipeline.snapshot.observation import Observation, SnapshotKind
from pipeline.storage import StoragePath, storage_path
from pipeline.tables.delta_table import delete_partitions
from pipeline.tables.history_schemas import EVENTS, HISTORY_MARKS, HISTORY_STATES, INCIDENTS
from pipeline.tables.schemas import QUARANTINED_ROWS, TableDefinition
from recovery.model import Survey
from tests.pipeline.partition_histories import Diary, broker_row, file_of, minute_of, partition, quorum_row
from tests.pipeline.random_history import RandomHistory

# Some of them run the job four times.
pytestmark = pytest.mark.timeout(1200)

SAME = (INCIDENTS, EVENTS, QUARANTINED_ROWS)
"""The rows of a result."""


def rows_of(result: JobResult, definition: TableDefinition) -> list[str]:
    rows = [row for table in result.rows(definition) for row in table.drop("run_id").to_pylist()]
    return sorted(map(repr, rows))


def run(spark: Any, sources: HistorySources, out: StoragePath, acts: Sequence[Any] = ()) -> JobResult:
    """A run that is finished."""
    now = datetime.now(UTC)
    target = run_target(out, "history", now, f"{random.getrandbits(32):08x}")
    done = history_job.outcome(spark, sources, acts, target)
    return commit(JobResult(target, "history", now, "test", done.asked, done.summary))


def continued(spark: Any, lake: StoragePath, out: StoragePath, **more: Any) -> JobResult:
    return run(spark, find_history([lake], results=out), out, **more)


def test_an_incident_of_an_earlier_run_ends_in_the_later_one_and_stands_there_once(
    spark: Any, tmp_path: Path
) -> None:
    lake, out = storage_path(str(tmp_path / "lake")), storage_path(str(tmp_path / "out"))
    diary = Diary(lake)
    diary.write(0, [partition(0), partition(1)], brokers=[broker_row(1)], quorum=quorum_row(100))
    diary.write(1, [_offline(0)], kind=SnapshotKind.CHANGES, brokers=[broker_row(1)])
    diary.write(2, [], kind=SnapshotKind.CHANGES, brokers=[broker_row(1, fenced=True)])
    first = continued(spark, lake, out)
    assert [row["outcome"] for row in first.summary["counts"]] == ["ongoing"]
    assert first.summary["continued"] is None
    diary.write(3, [partition(0)], kind=SnapshotKind.CHANGES, quorum=quorum_row(101))
    acts = [("c", "orders", 0, minute_of(2.5), "ann@ops", "elect")]
    second = continued(spark, lake, out, acts=acts)
    (only,) = second.summary["longest"]
    assert (only["outcome"], only["at_least_s"], only["at_most_s"]) == ("recovered", 60.0, 180.0)
    assert (only["how"], only["who"]) == ("elected from the ELR", "ann@ops")
    assert [(row["subject"], row["now"]) for row in second.summary["events"]] == [
        ("quorum leader", "101"),
        ("broker 1", "fenced"),
    ]
    assert second.summary["continued"] == {"run": first.target.run_id, "clusters": 1, "read_whole": {}}
    # What a plain reader sees of the newest run: the incident once, and not as ongoing.
    assert len(rows_of(second, INCIDENTS)) == 1


def test_only_later_snapshots_are_read(spark: Any, tmp_path: Path) -> None:
    lake, out = storage_path(str(tmp_path / "lake")), storage_path(str(tmp_path / "out"))
    diary = Diary(lake)
    old = diary.write(0, [_offline(0), partition(1)])
    continued(spark, lake, out)
    diary.write(1, [partition(0), partition(1)])
    file_of(lake, old).unlink()
    second = continued(spark, lake, out)
    assert [row["outcome"] for row in second.summary["counts"]] == ["recovered"]
    assert second.summary["refused"] == []


def test_a_late_snapshot_leads_to_reading_its_cluster_whole_and_says_so(spark: Any, tmp_path: Path) -> None:
    lake, out = storage_path(str(tmp_path / "lake")), storage_path(str(tmp_path / "out"))
    other = Diary(lake, "d")
    other.write(0, [_offline(0)])
    _full(lake, 0, [_offline(0)])
    newest = _full(lake, 2, [_offline(0)])
    continued(spark, lake, out)
    _full(lake, 1, [partition(0)])
    second = continued(spark, lake, out)
    why = f"1 of its snapshots before {newest.snapshot} came after the earlier run"
    assert second.summary["continued"]["read_whole"] == {"c": why}
    assert second.summary["continued"]["clusters"] == 1
    counts = {(row["cluster_id"], row["outcome"]): row["incidents"] for row in second.summary["counts"]}
    assert counts == {("c", "recovered"): 1, ("c", "ongoing"): 1, ("d", "ongoing"): 1}


@pytest.mark.parametrize("lost", [INCIDENTS, HISTORY_STATES])
def test_a_run_whose_rows_were_removed_is_not_continued(
    spark: Any, tmp_path: Path, lost: TableDefinition
) -> None:
    lake, out = storage_path(str(tmp_path / "lake")), storage_path(str(tmp_path / "out"))
    diary = Diary(lake)
    diary.write(0, [_offline(0)])
    first = continued(spark, lake, out)
    delete_partitions(out, lost, [f"run_id = '{first.target.run_id}'"])
    diary.write(1, [partition(0)], kind=SnapshotKind.CHANGES)
    sources = find_history([lake], results=out)
    assert (sources.earlier, sources.continued) == (None, [])


def test_a_run_with_a_damaged_file_is_not_continued_and_says_so(spark: Any, tmp_path: Path) -> None:
    lake, out = storage_path(str(tmp_path / "lake")), storage_path(str(tmp_path / "out"))
    diary = Diary(lake)
    diary.write(0, [_offline(0)])
    continued(spark, lake, out)
    (torn,) = Path(out.path, INCIDENTS.name).rglob("*.parquet")
    torn.write_bytes(torn.read_bytes()[:-20])
    diary.write(1, [partition(0)], kind=SnapshotKind.CHANGES)
    second = continued(spark, lake, out)
    assert [row["outcome"] for row in second.summary["counts"]] == ["recovered"]
    assert torn.name in second.summary["continued"]["read_whole"]["c"]


@pytest.mark.parametrize("seed", [1])
def test_any_split_of_random_histories_into_runs_gives_the_rows_of_one_run(
    spark: Any, tmp_path: Path, seed: int
) -> None:
    """Each cluster has a history of its own, and is split at moments of its own."""
    lake, out = storage_path(str(tmp_path / "lake")), storage_path(str(tmp_path / "out"))
    chance = random.Random(seed)
    clusters = [RandomHistory(lake, f"c{number:02}", chance).writings() for number in range(20)]
    for number in range(3):
        for writings in clusters:
            # A cluster that appears later has nothing in the first run.
            share = len(writings) if number == 2 else chance.randrange(len(writings) + 1)
            for write in writings[:share]:
                write()
            del writings[:share]
        newest = continued(spark, lake, out)
    whole = run(spark, find_history([lake]), out)
    for definition in SAME:
        assert rows_of(newest, definition) == rows_of(whole, definition), (seed, definition.name)
    # They can also be continued alike.
    for definition in (HISTORY_STATES, HISTORY_MARKS):
        assert len(rows_of(newest, definition)) == len(rows_of(whole, definition))
    assert newest.summary["continued"]["clusters"] >= 5
    assert newest.summary["continued"]["read_whole"]
    assert len(rows_of(newest, INCIDENTS)) > 60


def test_every_table_of_a_run_is_one_that_a_later_run_checks() -> None:
    assert set(TABLES) == {*SAME, HISTORY_STATES, HISTORY_MARKS}


def _offline(number: int) -> Survey:
    return partition(number, leader=-1, isr=(), elr=(1,))


def _full(lake: StoragePath, minute: float, rows: Sequence[Survey]) -> Observation:
    return Diary(lake).write(minute, rows)
