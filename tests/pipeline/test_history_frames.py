"""What Spark and its tasks find in a history is what one partition after the other tells."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.history import history_frames
from pipeline.history.history_job import summary
from pipeline.history.history_sources import HistorySources, find_history
from pipeline.snapshot.observation import SnapshotKind
from pipeline.storage import storage_path
from pipeline.tables.history_schemas import EVENTS, HISTORY_MARKS, INCIDENTS
from pipeline.tables.schemas import PARTITION_STATES, QUARANTINED_ROWS, TableDefinition
from recovery.model import Survey
from tests.pipeline.partition_histories import Diary, forget, minute_of, offline, partition
from tests.pipeline.random_history import RandomHistory
from tests.pipeline.scalar_history import scalar_incidents
from tests.repetitions import repetitions


def rows_in(
    spark: Any, sources: HistorySources, definition: TableDefinition, actions: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    frame = history_frames.history_frames(spark, sources, actions).tables[definition.name]
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows


def told(row: Iterable[Any]) -> tuple[str, ...]:
    """As text, with times in one zone."""
    return tuple(str(value.astimezone(UTC) if isinstance(value, datetime) else value) for value in row)


def test_no_table_reads_the_snapshots_again(spark: Any, tmp_path: Path) -> None:
    """Spark uses what is persisted only where it recognizes the plan in a query."""
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [partition(0)])
    diary.write(1, [offline(0)], kind=SnapshotKind.CHANGES)
    frames = history_frames.history_frames(spark, find_history([diary.root]), (), keep=True)
    try:
        plans = {
            name: rows._jdf.queryExecution().executedPlan().toString() for name, rows in frames.tables.items()
        }
        assert [name for name, plan in plans.items() if "InMemoryTableScan" not in plan] == []
    finally:
        for rows in frames.persisted:
            rows.unpersist()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(repetitions(1, 4)))
def test_random_histories_tell_what_one_partition_after_the_other_tells(
    spark: Any, tmp_path: Path, seed: int
) -> None:
    lake, chance = storage_path(str(tmp_path)), random.Random(seed)
    for number in range(6):
        for write in RandomHistory(lake, f"c{number:02}", chance).writings():
            write()
    sources = find_history([lake])
    acted = ("who", "act")
    found = [
        told(value for name, value in row.items() if name not in acted)
        for row in rows_in(spark, sources, INCIDENTS)
    ]
    assert sorted(found) == sorted(map(told, scalar_incidents(sources)))
    assert len(found) > 20
    marks = [row["cluster_id"] for row in rows_in(spark, sources, HISTORY_MARKS)]
    assert sorted(marks) == [name for name, one in sources.clusters.items() if one.timeline.moments]


def test_the_summary_has_the_first_of_all_in_their_order(spark: Any, tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [partition(n) for n in range(150)])
    diary.write(1, [offline(n) for n in range(150)], kind=SnapshotKind.CHANGES)
    diary.write(2, [partition(n) for n in range(140)], kind=SnapshotKind.CHANGES)
    diary.write(3, [offline(7)], kind=SnapshotKind.CHANGES)
    tables = history_frames.history_frames(spark, find_history([diary.root]), ()).tables
    told_of = summary(tables[INCIDENTS.name], tables[EVENTS.name])
    assert [(row["partition"], row["at_least_s"]) for row in told_of["longest"]] == [
        *((n, 120.0) for n in range(140, 150)),
        # The first eight, 7 once more, and so on.
        *((n, 0.0) for n in (*range(8), *range(7, 89))),
    ]
    assert told_of["longest"][0]["began"] == "2026-01-31 12:01:00"
    offenders = [(row["partition"], row["incidents"]) for row in told_of["offenders"]]
    assert offenders[:3] == [(7, 2), (140, 1), (141, 1)] and len(offenders) == 100
    counts = {row["outcome"]: (row["incidents"], row["at_least_s"]) for row in told_of["counts"]}
    assert counts == {"recovered": (140, 0.0), "ongoing": (11, 1200.0)}


def test_only_an_action_during_an_offline_incident_ended_it(spark: Any, tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [partition(0), partition(1)])
    diary.write(1, [offline(0), partition(1, isr=(1,))], kind=SnapshotKind.CHANGES)
    diary.write(3, [partition(0), partition(1)], kind=SnapshotKind.CHANGES)
    times = [(0.5, "early"), (1.5, "first"), (2.5, "last"), (3.5, "late")]
    acts = [("c", "orders", n, minute_of(at), who, "elect") for n in (0, 1) for at, who in times]
    rows = rows_in(spark, find_history([diary.root]), INCIDENTS, acts)
    assert {row["kind"]: row["who"] for row in rows} == {"offline": "last", "under min ISR": None}


def test_changes_whose_rows_are_gone_are_a_gap_and_no_incident_goes_on_over_it(
    spark: Any, tmp_path: Path
) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [offline(0)])
    diary.write(1, [], kind=SnapshotKind.CHANGES)
    lost = diary.write(2, [partition(0)], kind=SnapshotKind.CHANGES)
    diary.write(3, [], kind=SnapshotKind.CHANGES)
    forget(diary.root, lost, PARTITION_STATES)
    sources = find_history([diary.root])
    (incident,) = rows_in(spark, sources, INCIDENTS)
    assert (incident["outcome"], incident["at_least_s"]) == ("unknown", 60.0)
    assert [(one.snapshot, one.reason) for one in sources.refused] == [
        (lost.snapshot, f"the rows of {lost.snapshot} are missing in partition_states")
    ]
    assert sources.summary["gaps"] == {"c": 1}


def test_each_copy_of_a_partition_is_counted_wherever_it_was_read(spark: Any, tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [offline(0), partition(1), partition(1), partition(1), partition(2), partition(2)])
    nameless = partition(3)._replace(state=partition(3).state._replace(topic=""))
    diary.write(1, [nameless, nameless])
    broken = Counter(
        {
            (row["cluster_id"], row["reason"]): row["rows"]
            for row in rows_in(spark, find_history([diary.root]), QUARANTINED_ROWS)
        }
    )
    assert broken == {
        ("c", "the partition stands in its snapshot 3 times"): 3,
        ("c", "the partition stands in its snapshot 2 times"): 2,
        ("c", "no topic or partition"): 2,
    }


def of_topic(topic_id: str, survey: Survey) -> Survey:
    return survey._replace(state=survey.state._replace(topic_id=topic_id))


def of_cluster(rows: Iterable[dict[str, Any]], diary: Diary, *columns: str) -> list[tuple[Any, ...]]:
    mine = [row for row in rows if row["cluster_id"] == diary.cluster_id]
    return [tuple(row[name] for name in columns) for row in sorted(mine, key=lambda row: row["began_at"])]


def test_a_topic_that_is_made_again_has_incidents_of_its_own(spark: Any, tmp_path: Path) -> None:
    root, changes = storage_path(str(tmp_path)), SnapshotKind.CHANGES
    # Deleted and made again between two snapshots, offline in both.
    remade = Diary(root, "remade")
    remade.write(0, [of_topic("old", partition(0))])
    remade.write(1, [of_topic("old", offline(0))], kind=changes)
    remade.write(2, [of_topic("new", offline(0))], kind=changes)
    remade.write(3, [of_topic("new", partition(0))], kind=changes)
    # The new one has a leader.
    sound = Diary(root, "sound")
    sound.write(0, [of_topic("old", offline(0))])
    sound.write(1, [of_topic("new", partition(0))], kind=changes)
    # A snapshot shows that it is gone.
    again = Diary(root, "again")
    again.write(0, [of_topic("old", offline(0))])
    again.write(1, [], kind=changes, removed=[("orders", 0)])
    again.write(2, [of_topic("new", offline(0))], kind=changes)
    # The same topic all the time.
    same = Diary(root, "same")
    same.write(0, [of_topic("old", offline(0)), of_topic("other", partition(0, topic="audit"))])
    same.write(1, [of_topic("old", partition(0))], kind=changes)
    rows = rows_in(spark, find_history([root]), INCIDENTS)
    told_of = ("topic_id", "outcome", "how", "at_least_s", "at_most_s")
    assert of_cluster(rows, remade, *told_of) == [
        ("old", "deleted", None, 0.0, 120.0),
        ("new", "recovered", "elected outside ISR and ELR", 0.0, 120.0),
    ]
    assert of_cluster(rows, sound, *told_of) == [("old", "deleted", None, 0.0, None)]
    assert of_cluster(rows, again, "topic_id", "outcome") == [("old", "deleted"), ("new", "ongoing")]
    assert of_cluster(rows, same, "topic_id", "outcome") == [("old", "recovered")]
