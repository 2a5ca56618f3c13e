"""A history that continues an earlier run says what reading every snapshot says."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pipeline.history import history_job
from pipeline.history.earlier_run import TABLES
from pipeline.history.history_sources import HistorySources, find_history
from pipeline.results import JobResult, commit, run_target
from pipeline.snapshot.observation import Observation, SnapshotKind
from pipeline.storage import StoragePath, storage_path
from pipeline.tables.delta_table import delete_rows
from pipeline.tables.history_schemas import EVENTS, HISTORY_MARKS, HISTORY_STATES, INCIDENTS
from pipeline.tables.schemas import QUARANTINED_ROWS, TableDefinition
from recovery.model import Survey
from tests.pipeline.partition_histories import Diary, broker_row, file_of, minute_of, partition, quorum_row
from tests.pipeline.random_history import RandomHistory

# Four runs of the job are made for the first test.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

SEED = 1
STORIES = ("ends_later", "read_once", "late", "still")
"""The clusters whose history is not random."""
ACTS = [("ends_later", "orders", 0, minute_of(2.5), "ann@ops", "elect")]

SAME = (INCIDENTS, EVENTS, QUARANTINED_ROWS)
"""The rows of a result."""


def rows_of(result: JobResult, definition: TableDefinition, *clusters: str) -> list[dict[str, Any]]:
    """Without the name of the run; of those clusters, or of all."""
    return [
        row
        for table in result.rows(definition)
        for row in table.drop("run_id").to_pylist()
        if not clusters or row["cluster_id"] in clusters
    ]


def in_order(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def run(spark: Any, sources: HistorySources, out: StoragePath) -> JobResult:
    """A run that is finished."""
    now = datetime.now(UTC)
    target = run_target(out, "history", now, f"{random.getrandbits(32):08x}")
    done = history_job.outcome(spark, sources, ACTS, target)
    return commit(JobResult(target, "history", now, "test", done.asked, done.summary))


class Runs(NamedTuple):
    """Three runs, each of which continues the one before; what each has added to the snapshots stands in
    :func:`runs`.

    ``after_first``: the results with the first run alone. ``newest``: the last of the three. ``whole``: a run that
    reads every snapshot. ``late``: the snapshot before which another came late.
    """

    first: JobResult
    second: JobResult
    newest: JobResult
    whole: JobResult
    lake: StoragePath
    after_first: Path
    late: Observation


@pytest.fixture(scope="module")
def runs(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Of clusters with a random history, each split at moments of its own, and of four with a story."""
    home = tmp_path_factory.mktemp("continued")
    lake, out = storage_path(str(home / "lake")), storage_path(str(home / "out"))
    chance = random.Random(SEED)
    clusters = [RandomHistory(lake, f"c{number:02}", chance).writings() for number in range(20)]
    ends_later, read_once, late, still = (Diary(lake, name) for name in STORIES)

    def continued(number: int) -> JobResult:
        for writings in clusters:
            # A cluster that appears later has nothing in the first run.
            share = len(writings) if number == 2 else chance.randrange(len(writings) + 1)
            for write in writings[:share]:
                write()
            del writings[:share]
        return run(spark, find_history([lake], results=out), out)

    brokers = [broker_row(1)]
    ends_later.write(0, [partition(0), partition(1)], brokers=brokers, quorum=quorum_row(100))
    ends_later.write(1, [_offline(0)], kind=SnapshotKind.CHANGES, brokers=brokers)
    ends_later.write(2, [], kind=SnapshotKind.CHANGES, brokers=[broker_row(1, fenced=True)])
    old = file_of(lake, read_once.write(0, [_offline(0), partition(1)]))
    late.write(0, [_offline(0)])
    newest_of_late = late.write(2, [_offline(0)])
    still.write(0, [_offline(0)])
    first = continued(0)
    shutil.copytree(home / "out", home / "after_first")

    ends_later.write(3, [partition(0)], kind=SnapshotKind.CHANGES, quorum=quorum_row(101))
    read_once.write(1, [partition(0), partition(1)])
    late.write(1, [partition(0)])
    hidden = old.rename(home / "hidden")
    second = continued(1)
    newest = continued(2)
    hidden.rename(old)
    whole = run(spark, find_history([lake]), out)
    return Runs(first, second, newest, whole, lake, home / "after_first", newest_of_late)


def test_an_incident_of_an_earlier_run_ends_in_the_later_one_and_stands_there_once(runs: Runs) -> None:
    name = "ends_later"
    assert [row["outcome"] for row in rows_of(runs.first, INCIDENTS, name)] == ["ongoing"]
    assert runs.first.summary["continued"] is None
    # What a plain reader sees of the later run: the incident once, and not as ongoing.
    (only,) = rows_of(runs.second, INCIDENTS, name)
    assert (only["outcome"], only["at_least_s"], only["at_most_s"]) == ("recovered", 60.0, 180.0)
    assert (only["how"], only["who"]) == ("elected from the ELR", "ann@ops")
    events = sorted(rows_of(runs.second, EVENTS, name), key=lambda row: row["at"])
    assert [(row["subject"], row["now"]) for row in events] == [
        ("broker 1", "fenced"),
        ("quorum leader", "101"),
    ]
    told = runs.second.summary["continued"]
    assert told["run"] == runs.first.target.run_id and name not in told["read_whole"]


def test_only_later_snapshots_are_read(runs: Runs) -> None:
    """The first one is not there any more."""
    assert [row["outcome"] for row in rows_of(runs.second, INCIDENTS, "read_once")] == ["recovered"]
    assert "read_once" not in {row["cluster_id"] for row in runs.second.summary["refused"]}


def test_a_late_snapshot_leads_to_reading_its_cluster_whole_and_says_so(runs: Runs) -> None:
    told = runs.second.summary["continued"]["read_whole"]
    assert told["late"] == f"1 of its snapshots before {runs.late.snapshot} came after the earlier run"
    assert "still" not in told
    found = [row["outcome"] for row in rows_of(runs.second, INCIDENTS, "late")]
    assert sorted(found) == ["ongoing", "recovered"]
    assert [row["outcome"] for row in rows_of(runs.second, INCIDENTS, "still")] == ["ongoing"]


def copied(after_first: Path, place: Path) -> StoragePath:
    """The results of the first run alone."""
    return storage_path(str(shutil.copytree(after_first, place)))


@pytest.mark.parametrize("lost", [INCIDENTS, HISTORY_STATES])
def test_a_run_whose_rows_were_removed_is_not_continued(
    runs: Runs, tmp_path: Path, lost: TableDefinition
) -> None:
    out = copied(runs.after_first, tmp_path / "out")
    assert find_history([runs.lake], results=out).continued
    delete_rows(out, lost, [f"run_id = '{runs.first.target.run_id}'"])
    sources = find_history([runs.lake], results=out)
    assert (sources.earlier, sources.continued) == (None, [])


def test_a_run_with_a_damaged_file_is_not_continued_and_says_so(
    spark: Any, runs: Runs, tmp_path: Path
) -> None:
    out = copied(runs.after_first, tmp_path / "out")
    torn = min(Path(out.path, INCIDENTS.name).rglob("*.parquet"))
    torn.write_bytes(torn.read_bytes()[:-20])
    again = run(spark, find_history([runs.lake], results=out), out)
    (why,) = {why for name, why in again.summary["continued"]["read_whole"].items() if name in STORIES}
    assert torn.name in why
    assert [row["outcome"] for row in rows_of(again, INCIDENTS, "ends_later")] == ["recovered"]


def test_any_split_of_random_histories_into_runs_gives_the_rows_of_one_run(runs: Runs) -> None:
    """Each cluster has a history of its own, and is split at moments of its own."""
    newest, whole = runs.newest, runs.whole
    for definition in SAME:
        found = in_order(rows_of(newest, definition))
        assert found == in_order(rows_of(whole, definition)), (SEED, definition.name)
    # They can also be continued alike.
    for definition in (HISTORY_STATES, HISTORY_MARKS):
        assert len(rows_of(newest, definition)) == len(rows_of(whole, definition))
    read_whole = newest.summary["continued"]["read_whole"]
    assert newest.summary["continued"]["clusters"] - len(STORIES) >= 5
    assert any(name not in STORIES for name in read_whole)
    random_ones = [row for row in rows_of(newest, INCIDENTS) if row["cluster_id"] not in STORIES]
    assert len(random_ones) > 60


def test_every_table_of_a_run_is_one_that_a_later_run_checks() -> None:
    assert set(TABLES) == {*SAME, HISTORY_STATES, HISTORY_MARKS}


def _offline(number: int) -> Survey:
    return partition(number, leader=-1, isr=(), elr=(1,))
