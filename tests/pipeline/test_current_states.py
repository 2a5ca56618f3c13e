"""The state of every cluster as Spark reads it, and partitions that stand twice in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline import jobs
from pipeline.exposure import exposure_job, fix_job
from pipeline.exposure.fix_choice import FixLimits
from pipeline.jobs import Tables
from pipeline.plan.decide_rows import READ, UNREAD
from pipeline.results import RunTarget
from pipeline.snapshot.current_states import Reading, current_states
from pipeline.snapshot.observation import SnapshotKind
from pipeline.snapshot.state_sources import find
from pipeline.snapshot.upkeep import merge_all
from pipeline.storage import storage_path
from tests.pipeline.broken_files import set_rows
from tests.pipeline.partition_histories import Diary, files_of, offline, partition, rewrite
from tests.pipeline.survey_strategies import write

TWICE = "the partition stands in its snapshot 2 times"


@pytest.mark.parametrize("merged", [False, True])
def test_changes_since_the_full_snapshot_are_in_the_state(
    spark: Any, tmp_path: Path, *, merged: bool
) -> None:
    diary, other = Diary(storage_path(str(tmp_path))), Diary(storage_path(str(tmp_path)))
    diary.write(0, [partition(0), offline(1), partition(2), offline(3), partition(5)])
    # Another collector's snapshots of the same cluster and day are no part of it.
    other.write(0.5, [offline(n) for n in range(9)])
    diary.write(1, [offline(0), partition(1)], kind=SnapshotKind.CHANGES)
    diary.write(2, [offline(2), partition(1, leader=2)], kind=SnapshotKind.CHANGES, removed=[("orders", 5)])
    diary.write(3, [partition(2, leader=3), offline(4), offline(4)], kind=SnapshotKind.CHANGES)
    # A cluster of one full snapshot, with rows that cannot be: they are read, to be quarantined.
    write(diary.root, "d", [partition(0), partition(1), partition(2), offline(3)])
    rewrite(
        diary.root,
        lambda rows: set_rows(rows, leader={0: None, 1: -5}, topic={2: None, 3: None}),
        cluster_id="d",
    )
    if merged:
        merge_all(diary.root)
        assert len(files_of(diary.root)) == 1
    for everything in (False, True):
        found = current_states(spark, find([diary.root]), Reading(READ, UNREAD, leaderless=not everything))
        replica = found.schema["replicas"].dataType.elementType
        assert not UNREAD & set(replica.fieldNames())
        rows = [
            (row["cluster_id"], row["partition"], row["leader"], row["snapshot"][11:13])
            for row in found.collect()
        ]
        wanted = [
            ("c", 0, -1, "01"),
            ("c", 1, 2, "02"),
            ("c", 2, 3, "03"),
            ("c", 3, -1, "00"),
            # Twice in its snapshot: it is not known which is right.
            ("c", 4, -1, "03"),
            ("c", 4, -1, "03"),
            ("d", 0, None, "00"),
            ("d", 1, -5, "00"),
            ("d", 2, 1, "00"),
            ("d", 3, -1, "00"),
        ]
        wanted = [row for row in wanted if everything or row[2] is None or row[2] < 0]
        assert sorted(rows, key=str) == sorted(wanted, key=str)


def test_a_partition_that_a_writer_wrote_twice_is_counted_by_neither_row(spark: Any, tmp_path: Path) -> None:
    """The table has as many rows as the writer says, and one partition is two of them."""
    root = storage_path(str(tmp_path))
    rows = [partition(0), partition(1), partition(2)]
    write(root, "c", [*rows, partition(1, isr=(1,))])
    write(root, "whole", rows)
    told = exposure_job.outcome(spark, find([root]), RunTarget(root / "out", "run")).summary
    counts = {
        (row["cluster_id"], *row["failed"]): row["partitions"]
        for row in told["worst"]
        if row["kind"] == "broker"
    }
    assert (counts["c", "1"], counts["whole", "1"]) == (2, 3)
    quarantined = [{"cluster_id": "c", "reason": TWICE, "rows": 2}]
    assert told["quarantined"] == quarantined
    fixed = fix_job.outcome(spark, find([root]), RunTarget(root / "fixed", "run"), FixLimits()).summary
    assert fixed["quarantined"] == quarantined
    exposed = sum(row["partitions"] for row in fixed["kinds"] if row["cluster_id"] == "c")
    assert (
        exposed == sum(row["partitions"] for row in fixed["kinds"] if row["cluster_id"] == "whole") * 2 // 3
    )
    frame = jobs.exposure(spark, Tables((root.uri,)))["quarantined_rows"]
    assert [tuple(row) for row in frame.collect()] == [("c", TWICE, 2)]


def test_a_file_in_whose_place_there_is_a_directory_is_not_taken_for_no_rows(
    spark: Any, tmp_path: Path
) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", [offline(0)])
    write(root, "whole", [offline(0)])
    (file,) = (Path(file.place.path) for file in files_of(root) if file.cluster_id == "c")
    file.unlink()
    file.mkdir()
    told = exposure_job.outcome(spark, find([root]), RunTarget(root / "out", "run")).summary
    assert [(row["cluster_id"], file.name in row["reason"]) for row in told["refused"]] == [("c", True)]


def test_a_plan_of_no_row_is_a_plan(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", [])
    assert jobs.plan(spark, Tables((root.uri,)))["plans"].toArrow().num_rows == 0
    assert isinstance(jobs.exposure(spark, Tables((root.uri,)))["exposures"].toArrow(), pa.Table)
