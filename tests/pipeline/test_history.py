"""What happened, told from snapshots: a gap is never taken for a recovery."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.history import history_job
from pipeline.history.history_sources import HistorySources, find_history
from pipeline.results import RunTarget
from pipeline.snapshot.observation import SnapshotKind
from pipeline.storage import storage_path
from pipeline.tables.history_schemas import EVENTS
from pipeline.tables.schemas import OBSERVATIONS, QUARANTINED_ROWS
from recovery.model import Survey, Unknown, Why
from tests.pipeline.partition_histories import (
    Diary,
    broker_row,
    file_of,
    forget,
    minute_of,
    partition,
    quorum_row,
    rot_pages,
)


def offline(number: int) -> Survey:
    return partition(number, leader=-1, isr=(), elr=(2,))


def looked_at(diary: Diary) -> HistorySources:
    return find_history([diary.root])


def told(spark: Any, diary: Diary, acts: list[Any] | None = None) -> list[dict[str, Any]]:
    found = [row.asDict() for row in history_job.history(spark, looked_at(diary), acts or []).collect()]
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["kind"], row["began_at"]))


def test_incidents_are_bounded_from_both_sides_and_say_how_they_ended(spark: Any, tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [partition(0), partition(1), partition(2)])
    diary.write(1, [offline(0)], kind=SnapshotKind.CHANGES)
    diary.write(2, [], kind=SnapshotKind.CHANGES)
    diary.write(3, [partition(0, leader=2, isr=(2,))], kind=SnapshotKind.CHANGES)
    diary.write(4, [partition(0), partition(1, leader=-1, isr=()), partition(2)])
    acts = [("c", "orders", n, minute_of(at), "ann@ops", "elect") for n, at in ((0, 2.5), (1, 5))]
    first, under, second = told(spark, diary, acts)
    assert (first["kind"], first["outcome"], first["how"]) == ("offline", "recovered", "elected from the ELR")
    assert (first["at_least_s"], first["at_most_s"], first["who"]) == (60.0, 180.0, "ann@ops")
    assert (under["kind"], under["outcome"]) == ("under min ISR", "recovered")
    assert (second["partition"], second["outcome"], second["at_most_s"]) == (1, "ongoing", None)
    # What was done after the last look is of no incident that anybody saw end.
    assert second["who"] is None


def test_what_a_missing_snapshot_hides_is_unknown_and_not_recovered(spark: Any, tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [offline(0)])
    lost = diary.write(1, [], kind=SnapshotKind.CHANGES)
    diary.write(2, [partition(0)], kind=SnapshotKind.CHANGES)
    diary.write(3, [partition(0)])
    forget(diary.root, lost)
    (only,) = told(spark, diary)
    assert (only["outcome"], only["ended_at"], only["at_most_s"]) == ("unknown", None, None)


def test_a_snapshot_that_is_lost_in_a_series_leaves_unknown_only_what_did_not_change_after_it(
    spark: Any, tmp_path: Path
) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [offline(0), offline(1), partition(2), offline(3)])
    for minute in range(1, 50):
        changed = {3: [partition(0)], 20: [offline(2)], 25: [offline(3)], 30: [partition(2)]}
        found = diary.write(minute, changed.get(minute, []), kind=SnapshotKind.CHANGES)
        if minute == 2:
            lost = found
    forget(diary.root, lost)
    sources = looked_at(diary)
    (refused,) = sources.refused
    assert f"it builds on {lost.snapshot}, which is missing" in refused.reason
    assert (sources.summary["gaps"], sources.asked["clusters"]) == ({"c": 1}, {"c": 49})
    rows = [(row["partition"], row["outcome"], row["at_least_s"]) for row in told(spark, diary)]
    assert rows == [
        (0, "unknown", 60.0),
        (1, "unknown", 60.0),
        (2, "recovered", 540.0),
        (3, "unknown", 60.0),
        (3, "ongoing", 1440.0),
    ]
    # The snapshot before may have shown it too: what changed in minute 20 or 25 may be something else.
    assert [row["at_most_s"] for row in told(spark, diary)] == [None] * 5


def test_after_an_unreadable_newest_snapshot_nothing_is_said_to_be_ongoing(
    spark: Any, tmp_path: Path
) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [offline(0)])
    torn = diary.write(1, [partition(0)], kind=SnapshotKind.CHANGES)
    file_of(diary.root, torn).write_bytes(b"PAR1")
    done = history_job.outcome(spark, looked_at(diary), [], RunTarget(diary.root / "out", "run"))
    assert [row["outcome"] for row in done.summary["counts"]] == ["unknown"]
    assert done.summary["gaps"] == {"c": 1}


def test_after_an_unreadable_newest_observation_nothing_is_said_to_be_ongoing(
    spark: Any, tmp_path: Path
) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [offline(0)], quorum=quorum_row(100))
    torn = diary.write(1, [partition(0)], kind=SnapshotKind.CHANGES, quorum=quorum_row(101))
    name = file_of(diary.root, torn, OBSERVATIONS)
    name.write_bytes(b"PAR1")
    done = history_job.outcome(spark, looked_at(diary), [], RunTarget(diary.root / "out", "run"))
    assert [row["outcome"] for row in done.summary["counts"]] == ["unknown"]
    assert [name.name in row["reason"] for row in done.summary["refused"]] == [True]


def test_after_the_cluster_did_not_answer_nothing_is_said_to_be_ongoing(spark: Any, tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)), series="s")
    diary.write(0, [offline(0)])
    diary.write(1, [], kind=SnapshotKind.CHANGES)
    diary.fail(2)
    assert [row["outcome"] for row in told(spark, diary)] == ["unknown"]
    assert looked_at(diary).summary["gaps"] == {"c": 1}


def test_after_another_collector_asked_in_vain_nothing_is_said_to_be_ongoing(
    spark: Any, tmp_path: Path
) -> None:
    died, goes_on = (Diary(storage_path(str(tmp_path)), series=name) for name in ("first", "second"))
    died.write(0, [offline(0)])
    died.write(1, [], kind=SnapshotKind.CHANGES)
    for minute in (2, 3, 4):
        goes_on.fail(minute)
    assert [row["outcome"] for row in told(spark, died)] == ["unknown"]


@pytest.mark.parametrize("after", [[], [partition(0)]], ids=["for good", "and comes back"])
def test_a_partition_that_a_later_full_snapshot_does_not_show_ended_as_nobody_knows(
    spark: Any, tmp_path: Path, after: list[Survey]
) -> None:
    """Deleted, or hidden from the collector: it is not offline still, and nobody saw it recover."""
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [offline(0), partition(1)])
    diary.write(1, [], kind=SnapshotKind.CHANGES)
    diary.write(2, [partition(1)])
    diary.write(3, [*after, partition(1)])
    (only,) = told(spark, diary)
    assert (only["outcome"], only["at_least_s"], only["ended_at"]) == ("unknown", 60.0, None)


def test_a_second_collector_of_the_cluster_hides_no_recovery(spark: Any, tmp_path: Path) -> None:
    one, two = Diary(storage_path(str(tmp_path))), Diary(storage_path(str(tmp_path)))
    one.write(0, [offline(0)])
    two.write(0.5, [offline(0)])
    for minute in range(1, 30):
        one.write(minute, [partition(0)] if minute == 3 else [], kind=SnapshotKind.CHANGES)
        two.write(minute + 0.5, [partition(0)] if minute == 3 else [], kind=SnapshotKind.CHANGES)
    (only,) = told(spark, one)
    assert (only["outcome"], only["at_least_s"]) == ("recovered", 120.0)
    sources = looked_at(one)
    # The first collector's series, then the newest snapshot, which is of the second.
    assert sources.asked["clusters"] == {"c": 31}
    assert (sources.summary["other_chains"], sources.refused) == ({"c": 29}, ())


def test_a_full_snapshot_by_hand_does_not_interrupt_a_running_series(spark: Any, tmp_path: Path) -> None:
    diary, hand = Diary(storage_path(str(tmp_path))), Diary(storage_path(str(tmp_path)))
    diary.write(0, [offline(0)])
    diary.write(1, [], kind=SnapshotKind.CHANGES)
    hand.write(1.5, [offline(0)])
    diary.write(2, [partition(0)], kind=SnapshotKind.CHANGES)
    diary.write(3, [], kind=SnapshotKind.CHANGES)
    (only,) = told(spark, diary)
    assert (only["outcome"], only["at_least_s"], only["ended_at"]) == (
        "recovered",
        60.0,
        minute_of(2).replace(tzinfo=None),
    )
    assert looked_at(diary).summary["other_chains"] == {"c": 1}


def test_a_snapshot_that_cannot_be_decoded_is_a_gap_and_is_named(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    diary = Diary(root)
    for minute, rows in enumerate(([offline(0)], [offline(0)], [partition(0)], [partition(0)])):
        rotten = diary.write(minute, [*rows, *(partition(n) for n in range(1, 50))])
        if minute == 2:
            name = rot_pages(file_of(root, rotten), "leader")
    done = history_job.outcome(spark, looked_at(diary), [], RunTarget(root / "out", "run"))
    assert [name in row["reason"] for row in done.summary["refused"]] == [True]
    assert [(row["kind"], row["outcome"]) for row in done.summary["counts"]] == [("offline", "unknown")]


def test_a_long_silence_is_a_gap_too(spark: Any, tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    for minute in range(4):
        diary.write(minute, [offline(0)])
    diary.write(60, [partition(0)])
    (only,) = told(spark, diary)
    assert (only["outcome"], only["at_least_s"]) == ("unknown", 180.0)


def test_a_look_that_could_not_tell_is_unknown_and_not_recovered(spark: Any, tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    under = partition(0, isr=(1,))
    diary.write(0, [under])
    diary.write(1, [under._replace(min_isr=Unknown(Why.NOT_ANSWERED, "refused"))], kind=SnapshotKind.CHANGES)
    diary.write(2, [under], kind=SnapshotKind.CHANGES)
    diary.write(3, [partition(0)], kind=SnapshotKind.CHANGES)
    first, second = told(spark, diary)
    assert (first["outcome"], first["ended_at"], first["at_most_s"]) == ("unknown", None, None)
    # Since when it was so the second time is not known either.
    assert (second["outcome"], second["at_least_s"], second["at_most_s"]) == ("recovered", 0.0, None)


def test_rows_that_are_broken_are_counted_and_tell_nothing(spark: Any, tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [offline(0), offline(1), partition(2)])
    nameless = partition(3)._replace(state=partition(3).state._replace(topic=""))
    diary.write(1, [partition(0), partition(0), offline(1), partition(2), nameless])
    diary.write(2, [partition(0), offline(1), partition(2)])
    broken = history_job.history(spark, looked_at(diary), definition=QUARANTINED_ROWS).collect()
    counts = {row["reason"]: row["rows"] for row in broken}
    assert counts == {"the partition stands in its snapshot 2 times": 2, "no topic or partition": 1}
    assert [(row["partition"], row["outcome"]) for row in told(spark, diary)] == [
        (0, "unknown"),
        (1, "ongoing"),
    ]


def test_the_quorum_brokers_and_log_dirs_stand_on_the_same_timeline(spark: Any, tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [partition()], brokers=[broker_row(1), broker_row(2)], quorum=quorum_row(100))
    diary.write(
        1,
        [],
        kind=SnapshotKind.CHANGES,
        brokers=[broker_row(1, error="EIO"), broker_row(2, fenced=True)],
        quorum=quorum_row(101, (100, 101, 103)),
    )
    rows = history_job.history(spark, looked_at(diary), definition=EVENTS).collect()
    found = {(row["subject"], row["was"], row["now"]) for row in rows}
    assert found == {
        ("broker 2", "up", "fenced"),
        ("log dir /kafka of broker 1", "online", "failed: EIO"),
        ("quorum leader", "100", "101"),
        ("quorum voters", "100, 101, 102", "100, 101, 103"),
    }
