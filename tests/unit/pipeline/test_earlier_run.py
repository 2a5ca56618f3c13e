"""A run of history goes on from an earlier one only where the snapshots until then are what they were."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.errors import PipelineError
from pipeline.history.earlier_run import RULES, HistoryMark, find_earlier_run
from pipeline.history.timeline import SnapshotTimeline, timeline
from pipeline.results import JobResult, RunTarget, commit
from pipeline.snapshot.observation import Observation, SnapshotKind
from pipeline.storage import StoragePath, storage_path
from pipeline.tables.delta_table import append
from pipeline.tables.history_schemas import HISTORY_MARKS
from tests.pipeline.partition_histories import minute_of

NAMES = ("a", "b", "c", "d")


def look(minute: int, name: str) -> Observation:
    at = minute_of(minute)
    return Observation(f"{name}", "c", SnapshotKind.FULL, at, at, name)


LOOKS = [look(10 * number, name) for number, name in enumerate(NAMES)]


def mark_of(line: SnapshotTimeline) -> HistoryMark:
    return HistoryMark(line.moments[-1].snapshot, len(line.moments), line.digest(len(line.moments)), RULES)


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (LOOKS, ""),
        ([*LOOKS, look(40, "e"), look(50, "f")], ""),
        ([*LOOKS[:1], look(5, "ab"), *LOOKS[1:]], "1 of its snapshots before d came after the earlier run"),
        ([*LOOKS[:1], *LOOKS[2:]], "1 of its snapshots that were read are no longer used"),
        (LOOKS[:3], "d, the newest that was read, is no longer used"),
        # Many at short intervals: what was usual before is a gap by now.
        ([*LOOKS, *(look(31 + n, f"e{n}") for n in range(9))], "the gaps before d are judged otherwise"),
    ],
)
def test_what_was_read_must_be_what_is_there(now: list[Observation], why: str) -> None:
    why_not = mark_of(timeline("c", LOOKS)).why_not(timeline("c", now))
    assert why_not.startswith(why) and bool(why_not) == bool(why)


def test_an_unreadable_snapshot_among_those_that_were_read_is_seen() -> None:
    why_not = mark_of(timeline("c", LOOKS)).why_not(timeline("c", LOOKS, ["bb"]))
    assert why_not.startswith("the gaps before d are judged otherwise")


def test_a_gap_among_changes_without_their_full_snapshot_is_seen() -> None:
    one, two = (
        replace(look(10 * number, name), kind=SnapshotKind.CHANGES, base="a", previous=previous)
        for number, name, previous in ((2, "c", "b"), (3, "d", "c"))
    )
    looks = [LOOKS[0], one, two]
    assert mark_of(timeline("c", looks)).why_not(timeline("c", looks)) == ""
    assert mark_of(timeline("c", looks)).why_not(timeline("c", looks, ["cc"]))


def test_a_run_by_other_rules_is_not_continued() -> None:
    mark = replace(mark_of(timeline("c", LOOKS)), rules=RULES - 1)
    assert mark.why_not(timeline("c", LOOKS)) == "an earlier version of ktriage read it by other rules"


def finished(
    root: StoragePath, name: str, clusters: str, *, minute: int = 0, since: str | None = None
) -> None:
    """A run of the history of those clusters, with a mark for each and no other row."""
    rows = [
        {"run_id": name, "cluster_id": cluster, "snapshot": "d", "snapshots": 4, "timeline": "x", "rules": 1}
        for cluster in clusters
    ]
    append(root, HISTORY_MARKS, lambda: pa.Table.from_pylist(rows, HISTORY_MARKS.schema))
    written = {"incidents": 0, "events": 0, "quarantined_rows": 0, "history_states": 0}
    asked = {"clusters": dict.fromkeys(clusters, 4), "since": since}
    summary = {"rows": written | {"history_marks": len(rows)}}
    commit(JobResult(RunTarget(root, name), "history", minute_of(minute), "test", asked, summary))


def test_the_run_that_read_most_clusters_is_continued_and_of_equals_the_newest(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    assert find_earlier_run(root, None, "abc") is None
    finished(root, "first", "abc", minute=0)
    finished(root, "second", "abc", minute=1)
    finished(root, "only-a", "a", minute=2)
    finished(root, "since", "abc", minute=3, since="2026-01-31T00:00:00+00:00")
    found = find_earlier_run(root, None, "abc")
    assert found is not None and found.target.run_id == "second" and set(found.marks) == set("abc")
    found = find_earlier_run(root, None, "a")
    assert found is not None and found.target.run_id == "only-a"
    found = find_earlier_run(root, datetime(2026, 1, 31, tzinfo=UTC), "abc")
    assert found is not None and found.target.run_id == "since"


@pytest.mark.parametrize("harm", [Path.unlink, lambda file: file.write_bytes(b"PAR1")])
def test_marks_that_cannot_be_read_are_named_with_the_way_out(
    tmp_path: Path, harm: Callable[[Path], object]
) -> None:
    root = storage_path(str(tmp_path))
    finished(root, "first", "abc")
    (file,) = (tmp_path / HISTORY_MARKS.name).rglob("*.parquet")
    harm(file)
    with pytest.raises(PipelineError, match="--full reads every snapshot again"):
        find_earlier_run(root, None, "abc")
