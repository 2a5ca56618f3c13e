"""When a cluster was looked at, and where nothing is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pipeline.history.timeline import timeline, usable
from pipeline.snapshot.catalog import read_catalog
from pipeline.snapshot.observation import SnapshotKind
from pipeline.storage import storage_path
from tests.pipeline.partition_histories import Diary, forget, minute_of, partition


def _diary(tmp_path: Path) -> Diary:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [partition()])
    for minute in range(1, 5):
        diary.write(minute, [], kind=SnapshotKind.CHANGES)
    diary.write(5, [partition()])
    return diary


def test_snapshots_that_follow_one_another_are_one_segment(tmp_path: Path) -> None:
    diary = _diary(tmp_path)
    moments = timeline("c", read_catalog(diary.root).clusters["c"]).moments
    assert [moment.segment for moment in moments] == [0] * 6
    assert [moment.last for moment in moments] == [False] * 5 + [True]
    assert moments[0].before is None and moments[3].before == minute_of(2)


def test_after_a_missing_link_only_what_changed_is_known_until_the_next_full_snapshot(tmp_path: Path) -> None:
    diary = _diary(tmp_path)
    forget(diary.root, read_catalog(diary.root).clusters["c"][2])
    found = timeline("c", read_catalog(diary.root).clusters["c"])
    assert [(moment.at, moment.segment, moment.known_before) for moment in found.moments] == [
        (minute_of(0), 0, False),
        (minute_of(1), 0, True),
        (minute_of(3), 1, False),
        (minute_of(4), 1, False),
        (minute_of(5), 1, False),
    ]
    assert (found.moments[2].before, found.gaps) == (None, 1)


def test_since_begins_with_the_full_snapshot_that_it_needs(tmp_path: Path) -> None:
    catalog = read_catalog(_diary(tmp_path).root)
    assert len(usable(catalog, "c", minute_of(3))) == 6
    assert len(usable(catalog, "c", minute_of(4.5))) == 1
    assert usable(catalog, "c", minute_of(9)) == ()


def test_a_snapshot_that_cannot_be_read_is_a_gap_and_so_is_one_that_failed(tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    for minute in range(5):
        diary.write(minute, [partition()])
    manifests = read_catalog(diary.root).clusters["c"]
    assert [moment.segment for moment in timeline("c", manifests).moments] == [0] * 5
    left = [*manifests[:2], *manifests[3:]]
    assert [moment.segment for moment in timeline("c", left, [manifests[2].snapshot]).moments] == [0, 0, 1, 1]
    failed = [*manifests[:3], replace(manifests[3], missed=1), manifests[4]]
    assert [moment.segment for moment in timeline("c", failed).moments] == [0, 0, 0, 1, 1]


def test_that_the_cluster_did_not_answer_is_a_gap_of_its_series_and_of_no_other(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    diary, other = Diary(root, series="a"), Diary(root, series="b")
    for minute in range(4):
        diary.write(minute, [partition()])
        other.fail(minute + 0.5)
        if minute == 1:
            diary.fail(minute + 0.5)
    observations = read_catalog(root).clusters["c"]
    found = timeline("c", observations)
    assert [moment.segment for moment in found.moments] == [0, 0, 1, 1] and found.gaps == 1
    assert found.moments[-1].last
    diary.fail(4)
    assert not timeline("c", read_catalog(root).clusters["c"]).moments[-1].last
