"""What happened, told from snapshots: a gap is never taken for a recovery."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.history import history_job
from pipeline.history.timeline import timeline
from pipeline.snapshot.catalog import read_catalog
from pipeline.snapshot.manifest import SnapshotKind
from pipeline.snapshot.retention import remove
from pipeline.storage import storage_path
from recovery.model import Survey, Unknown, Why
from tests.pipeline.partition_histories import Diary, broker_row, minute_of, partition, quorum_row


def offline(number: int) -> Survey:
    return partition(number, leader=-1, isr=(), elr=(2,))


def looked_at(diary: Diary) -> history_job.HistorySources:
    manifests = read_catalog(diary.root).clusters[diary.cluster_id]
    return history_job.HistorySources([(diary.root, manifests, timeline(diary.cluster_id, manifests))])


def told(spark: Any, diary: Diary, acts: list[Any] | None = None) -> list[dict[str, Any]]:
    looked = looked_at(diary)
    rows = history_job.rows_of(spark, looked)
    found = [row.asDict() for row in history_job.incidents(spark, looked, rows, acts or []).collect()]
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
    remove(diary.root, lost)
    (only,) = told(spark, diary)
    assert (only["outcome"], only["ended_at"], only["at_most_s"]) == ("unknown", None, None)


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
    looked = looked_at(diary)
    counts = {
        row["reason"]: row["rows"]
        for row in history_job.quarantined(history_job.rows_of(spark, looked)).collect()
    }
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
    looked = looked_at(diary)
    found = {(row["subject"], row["was"], row["now"]) for row in history_job.events(spark, looked).collect()}
    assert found == {
        ("broker 2", "up", "fenced"),
        ("log dir /kafka of broker 1", "online", "failed: EIO"),
        ("quorum leader", "100", "101"),
        ("quorum voters", "100, 101, 102", "100, 101, 103"),
    }
