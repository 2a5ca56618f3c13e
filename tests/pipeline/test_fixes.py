"""The fixes of several clusters over Spark, and the files that a command writes for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from console.jobs.pipeline.run_fixes import written
from pipeline.exposure import fix_job
from pipeline.exposure.fix_choice import FixLimits, parsed_tiers
from pipeline.results import JobResult, RunTarget, commit
from pipeline.snapshot.observation import SnapshotKind
from pipeline.snapshot.state_sources import find
from pipeline.storage import StoragePath, storage_path
from tests.pipeline.broken_files import set_rows
from tests.pipeline.partition_histories import Diary, broker_row, partition, rewrite
from tests.pipeline.survey_strategies import NOON

ROOM = {"total_bytes": 10_000_000, "usable_bytes": 9_000_000}


def brokers(racks: str) -> list[dict[str, Any]]:
    rows = [broker_row(number, rack=rack) for number, rack in enumerate(racks, 1)]
    return [row | {"log_dirs": [row["log_dirs"][0] | ROOM]} for row in rows]


def in_one_rack(root: StoragePath, cluster_id: str) -> Diary:
    """A snapshot of three partitions with both replicas in one rack; a broker in another rack has room."""
    diary = Diary(root, cluster_id)
    rows = [partition(n, assignment=(1, 2), min_isr=1) for n in range(3)]
    diary.write(0, rows, brokers=brokers("aab"))
    return diary


def test_each_cluster_gets_its_fixes_and_a_file_for_kafkas_tool(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path / "lake"))
    one, other = in_one_rack(root, "one"), Diary(root, "other")
    # What changed since counts: partition 2 was moved already.
    moved = [partition(2, assignment=(1, 3), min_isr=1)]
    one.write(1, moved, kind=SnapshotKind.CHANGES, brokers=brokers("aab"))
    other.write(0, [partition(0, assignment=(1,), min_isr=1), partition(1)], brokers=brokers("abc"))
    rewrite(root, lambda table: set_rows(table, isr={0: None}), cluster_id="other")
    target = RunTarget(root / "out", "run")
    done = fix_job.outcome(spark, find([root]), target, FixLimits())
    summary = done.summary
    # A broken row is counted, and its partition never changed.
    assert [(row["cluster_id"], row["rows"]) for row in summary["quarantined"]] == [("other", 1)]
    assert [
        (row["cluster_id"], row["kind"], row["saves"], row["partitions"]) for row in summary["kinds"]
    ] == [("one", "move", "copies", 2)]
    (failure,) = summary["failures"]
    assert [failure[name] for name in ("failure", "before", "before_copies", "after")] == ["rack a", 2, 2, 0]
    result = commit(JobResult(target, "fixes", NOON, "0.1.0", done.asked, summary))
    (files,) = written(result, tmp_path / "fixes")
    assert files.settings is None and files.reassignment == tmp_path / "fixes" / "one" / "reassignment.json"
    told = json.loads(files.reassignment.read_text())
    assert told["version"] == 1
    assert [(row["partition"], row["replicas"]) for row in told["partitions"]] == [(0, [1, 3]), (1, [1, 3])]


def test_the_first_fixes_are_listed_in_the_order_in_which_they_are_carried_out(
    spark: Any, tmp_path: Path
) -> None:
    root = storage_path(str(tmp_path / "lake"))
    spread = partition(0, topic="spread", assignment=(1, 3, 4), min_isr=1)
    single = partition(0, topic="single", assignment=(1,), min_isr=1)
    beside = partition(
        1, topic="single", assignment=(1, 3), min_isr=1
    )  # so that its min.insync.replicas is known
    rows = [spread, single, beside, *(partition(n, assignment=(1, 2), min_isr=1) for n in range(2))]
    Diary(root).write(0, rows, brokers=brokers("aabc"))
    limits = FixLimits(tiers=parsed_tiers(["single=10"]))
    summary = fix_job.outcome(spark, find([root]), RunTarget(root / "out", "run"), limits).summary
    assert [(row["kind"], row["topic"], row["partition"]) for row in summary["fixes"]] == [
        ("min ISR", "spread", None),
        ("extra replica", "single", 0),
        ("move", "orders", 0),
        ("move", "orders", 1),
    ]
